//! A scripted engine, for behaviour that a real one cannot produce on demand. Its containers speak the launcher's
//! protocol and run programs of a few words, one a line:
//!
//! `out TEXT`, `err TEXT`, `cat` (stdin to stdout), `file NAME TEXT`, `exit N`, `hang`, `oom`, `die` (no trailer; `die
//! oom`, `die killed`, `die removed`, `die unrecorded`, `die N`: the end as the engine reports it), `open` (the start
//! line says that the launcher can be read), `stay` (it runs on after its trailer and tar), `early BYTES` (on standard
//! error, ahead of the start line; first line only), `wait NAME` (until [`Fake::open`] is called with that name).

mod stage;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{
    Attached, ContainerId, ContainerInfo, ContainerSpec, Derivation, Endpoint, Engine, EngineError, EngineInfo,
    EngineTrouble, Exit, ImageInfo, InstanceId, LastEvents, LayerEvent, PullError, Usage, Watched, container_name,
};
use crate::run::RunId;
use stage::{Ending, launch};

/// The time that the container of an image being made takes to go after it is given up.
const GOING: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub struct Fake {
    endpoint: Endpoint,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    gates: watch::Sender<HashSet<String>>,
}

#[derive(Debug, Default)]
struct World {
    images: BTreeMap<String, ImageInfo>,
    pulls: HashMap<String, Vec<Result<LayerEvent, PullError>>>,
    pulls_begun: usize,
    held: HashSet<String>,
    containers: BTreeMap<ContainerId, Container>,
    created: u64,
    trouble: Option<EngineTrouble>,
    start_delay: Duration,
    /// The number of next containers that end on their first input.
    frail: usize,
    no_preload: bool,
    /// The number of next containers that are gone before their start.
    to_vanish: usize,
    pulls_are_held: bool,
    looks: usize,
    derived: usize,
    refuses_to_derive: bool,
    derivations_are_held: bool,
    /// The number of next creations that succeed without an answer.
    unanswered: usize,
    keeps_containers: bool,
    with_volumes: HashSet<String>,
    /// Run labels by image id.
    labelled: HashMap<String, String>,
}

#[derive(Debug)]
struct Container {
    name: String,
    image: String,
    instance: String,
    run: String,
    exit: Exit,
    events: LastEvents,
    /// Dropped when the container is removed, which ends its program.
    alive: Option<watch::Sender<()>>,
}

impl World {
    fn add(&mut self, image: &str, instance: &InstanceId, run: RunId) -> ContainerId {
        self.created += 1;
        let id = ContainerId(format!("fake-{}", self.created));
        let exit = Exit { running: false, exit_code: 0, oom_killed: false, started_at: None };
        let (name, image) = (container_name(run), image.to_owned());
        let (instance, run) = (instance.to_string(), run.to_string());
        self.containers.insert(
            id.clone(),
            Container { name, image, instance, run, exit, events: LastEvents::default(), alive: None },
        );
        id
    }
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

impl Fake {
    pub fn new() -> Self {
        Self {
            endpoint: Endpoint { url: "fake://".into(), found: "a test".into() },
            shared: Arc::new(Shared { world: Mutex::default(), gates: watch::Sender::new(HashSet::new()) }),
        }
    }

    pub fn with_image(self, name: &str) -> Self {
        self.world().images.insert(name.to_owned(), image(name));
        self
    }

    /// Sets the events of a pull of this image. If they contain no error, the image is present afterwards.
    pub fn script_pull(&self, name: &str, events: Vec<Result<LayerEvent, PullError>>) {
        let mut world = self.world();
        world.held.remove(name);
        world.pulls.insert(name.to_owned(), events);
    }

    /// Makes a pull of this image report its events and then hang, until another script is set.
    pub fn hold_pull(&self, name: &str) {
        self.world().held.insert(name.to_owned());
    }

    pub fn set_trouble(&self, trouble: Option<EngineTrouble>) {
        self.world().trouble = trouble;
    }

    pub fn set_start_delay(&self, delay: Duration) {
        self.world().start_delay = delay;
    }

    /// The next `containers` containers end silently on their header.
    pub fn make_frail(&self, containers: usize) {
        self.world().frail = containers;
    }

    /// Containers end when asked to preload an interpreter.
    pub fn refuse_to_preload(&self) {
        self.world().no_preload = true;
    }

    /// The next `containers` containers are gone before they can be started.
    pub fn lose_containers(&self, containers: usize) {
        self.world().to_vanish = containers;
    }

    /// Releases every `wait NAME` of that name, now and later.
    pub fn open(&self, gate: &str) {
        self.shared.gates.send_modify(|gates| {
            gates.insert(gate.to_owned());
        });
    }

    /// Makes the image declare volumes, once it is present.
    pub fn declare_volumes(&self, name: &str) {
        self.world().with_volumes.insert(name.to_owned());
    }

    /// Renames the container, as the owner may.
    pub fn rename(&self, id: &ContainerId, name: &str) {
        if let Some(container) = self.world().containers.get_mut(id) {
            container.name = name.to_owned();
        }
    }

    /// Gives the container's image the same labels, as if the container had inherited them.
    pub fn hand_labels_down(&self, id: &ContainerId) {
        let mut world = self.world();
        let inherited = world.containers.get(id).map(|container| (container.image.clone(), container.run.clone()));
        world.labelled.extend(inherited);
    }

    /// The names of all images that are present.
    pub fn images(&self) -> Vec<String> {
        self.world().images.keys().cloned().collect()
    }

    pub fn forget_image(&self, name: &str) {
        self.world().images.remove(name);
    }

    /// Pulls wait for the gate `pull`.
    pub fn hold_pulls(&self) {
        self.world().pulls_are_held = true;
    }

    /// The number of looks at images.
    pub fn looks(&self) -> usize {
        self.world().looks
    }

    /// The number of attempts to make an image from another.
    pub fn derived(&self) -> usize {
        self.world().derived
    }

    pub fn refuse_to_derive(&self) {
        self.world().refuses_to_derive = true;
    }

    /// Keeps each image that is being made unfinished. Its container stays until it is given up, and a moment longer.
    pub fn hold_derivations(&self) {
        self.world().derivations_are_held = true;
    }

    /// The next `creations` containers are made, but the request never returns.
    pub fn lose_creations(&self, creations: usize) {
        self.world().unanswered = creations;
    }

    /// Sets whether it refuses to remove containers.
    pub fn keep_containers(&self, keep: bool) {
        self.world().keeps_containers = keep;
    }

    pub fn pulls_begun(&self) -> usize {
        self.world().pulls_begun
    }

    pub fn created(&self) -> u64 {
        self.world().created
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn check(&self) -> Result<MutexGuard<'_, World>, EngineError> {
        let world = self.world();
        match &world.trouble {
            Some(trouble) => Err(EngineError::Unavailable(trouble.clone())),
            None => Ok(world),
        }
    }
}

fn image(name: &str) -> ImageInfo {
    ImageInfo { id: format!("sha256:id-of-{name}"), digest: Some(format!("sha256:digest-of-{name}")), size_bytes: 1000 }
}

#[async_trait]
impl Engine for Fake {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    async fn info(&self) -> Result<EngineInfo, EngineError> {
        drop(self.check()?);
        Ok(EngineInfo {
            name: "Fake".into(),
            version: "1".into(),
            api_version: "1.41".into(),
            endpoint: self.endpoint.clone(),
            os: "linux".into(),
            arch: "x86_64".into(),
            cpus: 2,
            memory_bytes: 1 << 30,
            fingerprint: "as it was".into(),
        })
    }

    fn watch(&self) -> BoxFuture<'static, Watched> {
        std::future::pending().boxed()
    }

    async fn image(&self, name: &str) -> Result<Option<ImageInfo>, EngineError> {
        self.world().looks += 1;
        let world = self.check()?;
        match world.images.get(name) {
            Some(_) if world.with_volumes.contains(name) => Err(EngineError::DeclaresVolumes),
            image => Ok(image.cloned()),
        }
    }

    fn pull(&self, name: &str) -> BoxStream<'static, Result<LayerEvent, PullError>> {
        let (fake, name) = (self.clone(), name.to_owned());
        let mut world = self.world();
        world.pulls_begun += 1;
        if world.held.contains(&name) {
            let events = world.pulls.get(&name).cloned().unwrap_or_default();
            return stream::iter(events).chain(stream::pending()).boxed();
        }
        let events = world.pulls.get(&name).cloned().unwrap_or_else(|| vec![Err(PullError::NoSuchImage)]);
        let mut gates = world.pulls_are_held.then(|| self.shared.gates.subscribe());
        let gate = stream::once(async move {
            if let Some(gates) = &mut gates {
                // Cannot fail, because this engine holds the sender.
                let _ = gates.wait_for(|gates| gates.contains("pull")).await;
            }
        });
        let fails = events.iter().any(Result::is_err);
        let arrive = stream::once(async move {
            if !fails {
                fake.world().images.insert(name.clone(), image(&name));
            }
        });
        gate.filter_map(|()| async { None })
            .chain(stream::iter(events))
            .chain(arrive.filter_map(|()| async { None }))
            .boxed()
    }

    async fn remove_image(&self, name: &str) -> Result<(), EngineError> {
        self.check()?.images.remove(name);
        Ok(())
    }

    async fn derive(&self, derivation: &Derivation, given_up: &CancellationToken) -> Result<(), EngineError> {
        let refused = |message: &str| EngineError::Refused { doing: "prepare an image", message: message.into() };
        if self.check()?.derivations_are_held {
            let id = self.check()?.add(&derivation.base, &derivation.instance, derivation.run);
            given_up.cancelled().await;
            tokio::time::sleep(GOING).await;
            self.world().containers.remove(&id);
            return Err(refused("it was cancelled"));
        }
        let mut world = self.check()?;
        world.derived += 1;
        if world.refuses_to_derive {
            return Err(refused("as the test asked"));
        }
        world.images.insert(derivation.name.clone(), image(&derivation.name));
        Ok(())
    }

    async fn create(&self, spec: &ContainerSpec) -> Result<ContainerId, EngineError> {
        let mut world = self.check()?;
        let named = |(name, image): &(&String, &ImageInfo)| **name == spec.image || image.id == spec.image;
        let image = world.images.iter().find(named).map(|(_, image)| image.id.clone()).ok_or(EngineError::NoImage)?;
        let name = container_name(spec.run);
        if world.containers.values().any(|container| container.name == name) {
            let message = format!("Conflict. The container name \"/{name}\" is already in use.");
            return Err(EngineError::Refused { doing: "create a container", message });
        }
        let id = world.add(&image, &spec.instance, spec.run);
        if world.unanswered > 0 {
            world.unanswered -= 1;
            return Err(EngineError::Broken { doing: "create a container", message: "as the test asked".into() });
        }
        Ok(id)
    }

    async fn start(&self, id: &ContainerId) -> Result<Attached, EngineError> {
        let delay = self.check()?.start_delay;
        tokio::time::sleep(delay).await;
        let (input, stdin) = tokio::io::duplex(64 << 10);
        let (frames, output) = mpsc::channel(16);
        let (alive, mut life) = watch::channel(());
        let (frail, no_preload);
        {
            let mut world = self.check()?;
            if world.to_vanish > 0 {
                world.to_vanish -= 1;
                world.containers.remove(id);
            }
            let container = world.containers.get_mut(id).ok_or(EngineError::NoContainer)?;
            container.exit.running = true;
            container.alive = Some(alive);
            (frail, no_preload) = (world.frail > 0, world.no_preload);
            world.frail = world.frail.saturating_sub(1);
        }
        let (fake, id) = (self.clone(), id.clone());
        tokio::spawn(async move {
            let gates = fake.shared.gates.subscribe();
            // The frames end with the exit, as an engine's streams do, and not before the exit is known.
            let end = frames.clone();
            let Ending { exit, events } = tokio::select! {
                ending = launch(stdin, frames, gates, (frail, no_preload)) => ending,
                _ = life.changed() => Ending::exited(137),
            };
            if events.removed {
                fake.world().containers.remove(&id);
            } else if let Some(container) = fake.world().containers.get_mut(&id) {
                (container.exit, container.events) = (exit, events);
            }
            drop(end);
        });
        let output =
            stream::unfold(output, |mut output| async { output.recv().await.map(|frame| (Ok(frame), output)) });
        Ok(Attached { input: Box::pin(input), output: output.boxed() })
    }

    async fn exit(&self, id: &ContainerId) -> Result<Exit, EngineError> {
        Ok(self.check()?.containers.get(id).ok_or(EngineError::NoContainer)?.exit.clone())
    }

    async fn last_events(&self, id: &ContainerId) -> Result<LastEvents, EngineError> {
        let world = self.check()?;
        let gone = LastEvents { died: true, removed: true, ..LastEvents::default() };
        Ok(world.containers.get(id).map_or(gone, |container| container.events))
    }

    async fn usage(&self, id: &ContainerId) -> Result<Usage, EngineError> {
        let world = self.check()?;
        let container = world.containers.get(id).ok_or(EngineError::NoContainer)?;
        let memory_bytes = if container.exit.running { 1_000_000 } else { 0 };
        Ok(Usage { memory_bytes, cpu: Duration::from_millis(5) })
    }

    async fn remove(&self, id: &ContainerId) -> Result<(), EngineError> {
        let mut world = self.check()?;
        if world.keeps_containers {
            return Err(EngineError::Refused { doing: "remove a container", message: "as the test asked".into() });
        }
        world.containers.remove(id);
        Ok(())
    }

    async fn containers(&self) -> Result<Vec<ContainerInfo>, EngineError> {
        let world = self.check()?;
        let info = |(id, container): (&ContainerId, &Container)| ContainerInfo {
            id: id.clone(),
            name: container.name.clone(),
            image: container.image.clone(),
            instance: container.instance.clone(),
            run: container.run.clone(),
            running: container.exit.running,
        };
        Ok(world.containers.iter().map(info).collect())
    }

    async fn run_label_of_image(&self, id: &str) -> Result<Option<String>, EngineError> {
        Ok(self.check()?.labelled.get(id).cloned())
    }
}
