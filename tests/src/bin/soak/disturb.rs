//! What goes wrong around the service, and the book of when it did.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::engine::{self, Engine};
use super::now;
use super::service::{self, Service};

/// Every container of the engine, those of other programs too.
const REMOVE_ALL: &str = "ids=$(docker ps -aq) || exit 1; [ -z \"$ids\" ] || docker rm -f $ids; true";
/// The disk is full for this long.
const FULL: Duration = Duration::from_secs(5);
/// A disturbance that takes longer is one that hangs.
const BOUND: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Engine,
    /// The engine is killed, and started again.
    Crash,
    Containers,
    Images,
    Prune,
    Service,
    Disk,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] =
        [Self::Engine, Self::Crash, Self::Containers, Self::Images, Self::Prune, Self::Service, Self::Disk];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Crash => "crash",
            Self::Containers => "containers",
            Self::Images => "images",
            Self::Prune => "prune",
            Self::Service => "service",
            Self::Disk => "disk",
        }
    }

    fn every(self) -> Duration {
        Duration::from_secs(match self {
            Self::Engine => 10,
            Self::Crash => 41,
            Self::Containers => 6,
            Self::Images => 23,
            Self::Prune => 37,
            Self::Service => 29,
            Self::Disk => 19,
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Disturbance {
    pub(crate) kind: Kind,
    pub(crate) what: &'static str,
    pub(crate) began: u64,
    /// None while it goes on.
    pub(crate) ended: Option<u64>,
    /// It did what it was meant to: an engine that is away removes nothing.
    pub(crate) done: bool,
}

/// Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Book {
    all: Arc<Mutex<Vec<Disturbance>>>,
    /// What should not have happened on the way.
    strange: Arc<Mutex<Vec<(u64, String)>>>,
}

impl Book {
    pub(crate) fn all(&self) -> Vec<Disturbance> {
        self.all.lock().unwrap().clone()
    }

    pub(crate) fn strange(&self) -> Vec<(u64, String)> {
        std::mem::take(&mut self.strange.lock().unwrap())
    }

    pub(crate) fn note(&self, what: String) {
        self.strange.lock().unwrap().push((now(), what));
    }

    async fn during(&self, kind: Kind, what: &'static str, happening: impl Future<Output = bool>) {
        let at = {
            let mut all = self.all.lock().unwrap();
            all.push(Disturbance { kind, what, began: now(), ended: None, done: false });
            all.len() - 1
        };
        let done = timeout(BOUND, happening).await.unwrap_or_else(|_| {
            self.note(format!("{what}: not over within {} s", BOUND.as_secs()));
            false
        });
        let one = &mut self.all.lock().unwrap()[at];
        (one.ended, one.done) = (Some(now()), done);
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) engine: Arc<Engine>,
    pub(crate) service: Arc<Service>,
    pub(crate) book: Book,
}

/// Until `over` is cancelled, and what has begun by then is over.
pub(crate) async fn all(world: World, kinds: Vec<Kind>, over: CancellationToken) {
    let mut tasks = JoinSet::new();
    for kind in kinds {
        let (world, over) = (world.clone(), over.clone());
        tasks.spawn(async move {
            for turn in 0.. {
                tokio::select! {
                    () = sleep(kind.every()) => {}
                    () = over.cancelled() => return,
                }
                world.disturb(kind, turn).await;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
}

impl World {
    async fn disturb(&self, kind: Kind, turn: u32) {
        match kind {
            Kind::Crash => {
                self.book
                    .during(kind, "the engine is killed and started", self.restart_engine(engine::Stop::Killed))
                    .await;
            }
            Kind::Engine => {
                self.book.during(kind, "the engine is restarted", self.restart_engine(engine::Stop::Asked)).await;
            }
            Kind::Containers => {
                self.book.during(kind, "all containers are removed", self.docker(REMOVE_ALL)).await;
            }
            Kind::Images if turn % 3 == 2 => {
                self.book.during(kind, "the image of Python is removed", self.remove_image("python:3.12-slim")).await;
            }
            Kind::Images => {
                self.book.during(kind, "the image of the shell is removed", self.remove_image("alpine:3.22")).await;
            }
            Kind::Prune if turn % 2 == 1 => {
                let line = format!("{REMOVE_ALL}; docker system prune -af");
                self.book
                    .during(kind, "all containers are removed, and docker system prune -af", self.docker(&line))
                    .await;
            }
            Kind::Prune => {
                self.book.during(kind, "docker system prune -af", self.docker("docker system prune -af")).await;
            }
            Kind::Service if turn % 2 == 1 => {
                self.book.during(kind, "the service is stopped and started", self.restart(service::Stop::Asked)).await;
            }
            Kind::Service => {
                self.book.during(kind, "the service is killed and started", self.restart(service::Stop::Killed)).await;
            }
            Kind::Disk => self.book.during(kind, "the disk is full", self.fill_disk()).await,
        }
    }

    async fn docker(&self, line: &str) -> bool {
        self.engine.docker(line).await
    }

    /// With all that is made of it: an engine keeps an image that a container runs in.
    async fn remove_image(&self, name: &str) -> bool {
        let users = format!("ids=$(docker ps -aq --filter ancestor={name}); [ -z \"$ids\" ] || docker rm -f $ids");
        let line = format!("for try in 1 2 3 4 5 6 7 8; do {users}; docker rmi -f {name} && exit; done; exit 1");
        self.docker(&line).await
    }

    async fn restart_engine(&self, how: engine::Stop) -> bool {
        // Not while it is away already.
        let stopped = self.engine.stop(how).await;
        if stopped {
            self.engine.again().await;
        }
        stopped
    }

    async fn restart(&self, how: service::Stop) -> bool {
        if !self.service.lives().await {
            self.book.note("the service had ended by itself".into());
        }
        if let Err(what) = self.service.stop(how).await {
            self.book.note(what);
        }
        while let Err(what) = self.service.start().await {
            self.book.note(what);
            sleep(Duration::from_secs(1)).await;
        }
        true
    }

    /// Writes until there is no room, then gives all of it back.
    async fn fill_disk(&self) -> bool {
        let service = Arc::clone(&self.service);
        tokio::task::spawn_blocking(move || service.disk.fill()).await.unwrap();
        sleep(FULL).await;
        self.service.disk.empty();
        true
    }
}
