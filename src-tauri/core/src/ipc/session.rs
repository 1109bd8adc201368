//! One connection: requests in, replies in any order, notifications to those who asked for them.
//! A client that is gone takes its runs with it; one that only closed its own side of the socket still gets its replies.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::batch::Batch;
use super::call::Call;
use super::door::Runs;
use super::outbox::{Answered, Gone, Outbox};
use super::{FAREWELL, Peer};
use crate::codec::{Frame, Frames, MAX_FRAME};
use crate::error::RunError;
use crate::event::Snapshot;
use crate::policy;
use crate::protocol::batch::{self, BatchRequest};
use crate::protocol::capability::{Capability, capabilities};
use crate::protocol::error::ErrorObject;
use crate::protocol::request::{self, CancelTarget, RunRequest};
use crate::protocol::{self, CODE_BATCH, CODE_RUN, Id, Message, Notification, PROTOCOL, Response};
use crate::run::{Client, ClientId, RunId};

/// Runs of one connection at once, waiting ones too. A batch counts as all its runs until it is answered.
pub const MAX_RUNS: usize = 64;
/// After end-of-file: how often to look whether the client closed everything or only its own side.
const HANGUP_EVERY: Duration = Duration::from_millis(200);

/// Both halves of a connection, and the eye that sees whether the other side hung up altogether.
pub struct Link<R, W> {
    pub reader: R,
    pub writer: W,
    pub hung_up: Box<dyn Fn() -> bool + Send>,
}

/// Serves until the client is gone, or has closed its side and got its replies, or `stop` is cancelled and the runs are
/// answered. Returning drops the runs that are left, which cancels them.
pub async fn serve<D, R, W>(link: Link<R, W>, client: (ClientId, Peer), door: D, stop: CancellationToken)
where
    D: Runs,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (id, peer) = client;
    let name = peer.program.clone().unwrap_or_else(|| "unnamed".into());
    let snapshots = door.watch();
    let session = Session {
        door,
        client: Client { id, name, pid: peer.pid, program: peer.program },
        outbox: Arc::new(Outbox::new(link.writer)),
        runs: JoinSet::new(),
        live: HashMap::new(),
        snapshots,
        told: None,
    };
    session.serve(Frames::new(link.reader), link.hung_up, stop).await;
}

struct Session<D, W> {
    door: D,
    client: Client,
    outbox: Arc<Outbox<W>>,
    runs: JoinSet<()>,
    live: HashMap<task::Id, Live>,
    snapshots: watch::Receiver<Snapshot>,
    /// The capabilities that a subscriber was told of last; none while nobody subscribed.
    told: Option<Vec<Capability>>,
}

/// A request whose task goes on. Its id and its places are free once it is answered.
struct Live {
    request: Id,
    /// One, or those of a batch.
    runs: Vec<RunId>,
    /// Ends all of them.
    cancel: CancellationToken,
    answered: Answered,
}

impl<D: Runs, W: AsyncWrite + Unpin + Send + 'static> Session<D, W> {
    async fn serve<R: AsyncRead + Unpin>(
        mut self,
        mut frames: Frames<R>,
        hung_up: Box<dyn Fn() -> bool + Send>,
        stop: CancellationToken,
    ) {
        let outbox = Arc::clone(&self.outbox);
        let mut reading = true;
        let mut farewell: Option<Instant> = None;
        while reading || !self.runs.is_empty() {
            let step = tokio::select! {
                () = outbox.broken() => break,
                frame = frames.next(), if reading => match frame {
                    Ok(Some(frame)) => self.frame(frame).await,
                    Ok(None) if hung_up() => break,
                    Ok(None) => {
                        reading = false;
                        Ok(())
                    }
                    Err(_) => break,
                },
                Some(done) = self.runs.join_next_with_id(), if !self.runs.is_empty() => self.ended(done).await,
                changed = self.snapshots.changed(), if self.told.is_some() => self.changed(changed.is_ok()).await,
                () = stop.cancelled(), if farewell.is_none() => {
                    reading = false;
                    farewell = Some(Instant::now() + FAREWELL);
                    Ok(())
                }
                () = sleep_until(farewell.unwrap_or_else(Instant::now)), if farewell.is_some() => break,
                () = sleep(HANGUP_EVERY), if !reading => {
                    if hung_up() {
                        break;
                    }
                    Ok(())
                }
            };
            if step.is_err() {
                break;
            }
        }
        // Ended here and not left to drop: the runs are cancelled before the connection counts as closed.
        self.runs.shutdown().await;
    }

    async fn frame(&mut self, frame: Frame) -> Result<(), Gone> {
        let line = match frame {
            Frame::Line(line) => line,
            Frame::TooLong => return self.refuse(&Id::null(), ErrorObject::message_too_long(MAX_FRAME)).await,
        };
        match protocol::parse(&line) {
            Ok(message) => self.message(message).await,
            Err(refusal) => self.refuse(&refusal.id, refusal.error).await,
        }
    }

    async fn message(&mut self, message: Message<'_>) -> Result<(), Gone> {
        let Message { id, method, params } = message;
        let Some(id) = id else {
            // A notification gets no answer, so only what is done for its effect makes sense as one.
            if method == "code.cancel" {
                let _ = self.cancel(params).await;
            }
            return Ok(());
        };
        match method.as_str() {
            CODE_RUN => match self.start(&id, params) {
                Ok(()) => Ok(()),
                Err(error) => self.refuse(&id, error).await,
            },
            CODE_BATCH => match self.start_batch(&id, params) {
                Ok(()) => Ok(()),
                Err(error) => self.refuse(&id, error).await,
            },
            "code.cancel" => {
                let answer = self.cancel(params).await;
                self.reply(&id, answer.map(|cancelled| json!({ "cancelled": cancelled }))).await
            }
            "code.history" => {
                let answer = match request::history(params) {
                    Ok(request) => self.door.history(request).await,
                    Err(error) => Err(error),
                };
                self.reply(&id, answer).await
            }
            "hello" => {
                let answer = self.hello(params);
                self.reply(&id, answer).await
            }
            "subscribe" => {
                let capabilities = self.capabilities();
                self.told = Some(capabilities.clone());
                self.reply(&id, Ok(json!({ "capabilities": capabilities }))).await
            }
            "status" => self.reply(&id, Ok(self.status())).await,
            _ => self.refuse(&id, ErrorObject::method_not_found(&method)).await,
        }
    }

    /// Starts a run; its reply comes when it is over.
    fn start(&mut self, id: &Id, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        // Before the parameters are looked at: for an agent the method does not exist while it is off.
        if !self.snapshots.borrow().enabled {
            return Err(RunError::Off.into());
        }
        let request = RunRequest::decode(params)?;
        let stream = request.stream;
        let spec = policy::spec(request, &self.door.limits(), RunId::generate())?;
        self.admit(id, 1)?;
        let answered = Answered::default();
        let cancel = CancellationToken::new();
        let live =
            Live { request: id.clone(), runs: vec![spec.id], cancel: cancel.clone(), answered: answered.clone() };
        let call = Call {
            door: self.door.clone(),
            client: self.client.clone(),
            outbox: Arc::clone(&self.outbox),
            id: id.clone(),
            spec,
            stream,
            cancel,
            answered,
        };
        let task = self.runs.spawn(call.answer());
        self.live.insert(task.id(), live);
        Ok(())
    }

    /// Starts the runs of a batch, once all of them may be; its reply comes when the last is over.
    fn start_batch(&mut self, id: &Id, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        if !self.snapshots.borrow().enabled {
            return Err(RunError::Off.into());
        }
        let BatchRequest { runs, max_parallel, stop_on_failure, stream } = BatchRequest::decode(params)?;
        let owner = self.door.limits();
        let check = |(index, request)| {
            policy::spec(request, &owner, RunId::generate()).map_err(|error| batch::in_run(index, error))
        };
        let specs = runs.into_iter().enumerate().map(check).collect::<Result<Vec<_>, _>>()?;
        self.admit(id, specs.len())?;
        let at_once = self.door.at_once();
        let cancel = CancellationToken::new();
        let runs = specs.iter().map(|spec| spec.id).collect();
        let answered = Answered::default();
        let live = Live { request: id.clone(), runs, cancel: cancel.clone(), answered: answered.clone() };
        let batch = Batch {
            door: self.door.clone(),
            client: self.client.clone(),
            outbox: Arc::clone(&self.outbox),
            id: id.clone(),
            specs,
            at_once: max_parallel.map_or(at_once, |most| most.min(at_once)),
            stop_on_failure,
            stream,
            cancel,
            answered,
        };
        let task = self.runs.spawn(batch.answer());
        self.live.insert(task.id(), live);
        Ok(())
    }

    fn unanswered(&self) -> impl Iterator<Item = &Live> {
        self.live.values().filter(|live| !live.answered.yet())
    }

    /// Whether a request for so many runs may be taken on.
    fn admit(&self, id: &Id, runs: usize) -> Result<(), ErrorObject> {
        let key = id.key();
        if self.unanswered().any(|live| live.request.key() == key) {
            return Err(ErrorObject::invalid_request(format!("The request {key} is still running; use another id.")));
        }
        let waiting = self.unanswered().map(|live| live.runs.len()).sum::<usize>();
        if waiting + runs > MAX_RUNS {
            return Err(RunError::QueueFull { waiting, own: true, retry_after: Duration::from_secs(1) }.into());
        }
        Ok(())
    }

    /// A run of ours that failed by a fault in our own code takes nothing else with it, and is answered.
    async fn ended(&mut self, done: Result<(task::Id, ()), JoinError>) -> Result<(), Gone> {
        let id = match &done {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        let (Some(live), Err(error)) = (self.live.remove(&id), done) else { return Ok(()) };
        tracing::error!(request = %live.request.key(), %error, "a run failed");
        if live.answered.yet() {
            return Ok(());
        }
        let error = RunError::Internal("the run broke off; the log says more".into());
        self.refuse(&live.request, error.into()).await
    }

    /// True where what was meant goes on: it will be told that it is over, and unless it ends first, that it was cancelled.
    async fn cancel(&self, params: Option<&RawValue>) -> Result<bool, RunError> {
        // Only this connection's own runs: the supervisor would refuse others too.
        match request::cancel(params)? {
            CancelTarget::Request(id) => {
                let key = id.key();
                let live = self.unanswered().find(|live| live.request.key() == key);
                Ok(live.inspect(|live| live.cancel.cancel()).is_some())
            }
            CancelTarget::Run(run) => match self.unanswered().find(|live| live.runs.contains(&run)) {
                // One of a batch, and its client has its id from what it was told of the run: it is known by now.
                Some(live) if live.runs.len() > 1 => Ok(self.door.cancel(self.client.id, run).await),
                live => Ok(live.inspect(|live| live.cancel.cancel()).is_some()),
            },
        }
    }

    fn hello(&mut self, params: Option<&RawValue>) -> Result<serde_json::Value, RunError> {
        if let Some(name) = request::hello(params)? {
            self.client.name = name;
        }
        Ok(json!({
            "name": "sandtray",
            "version": env!("CARGO_PKG_VERSION"),
            "protocol": PROTOCOL,
            "capabilities": self.capabilities(),
        }))
    }

    fn capabilities(&self) -> Vec<Capability> {
        let enabled = self.snapshots.borrow().enabled;
        capabilities(enabled, &self.door.limits())
    }

    async fn changed(&mut self, alive: bool) -> Result<(), Gone> {
        if !alive {
            // The supervisor is gone: nothing will change any more.
            self.told = None;
            return Ok(());
        }
        self.snapshots.mark_unchanged();
        let now = self.capabilities();
        if self.told.as_ref() == Some(&now) {
            return Ok(());
        }
        let note = Notification::new("capabilities.changed", json!({ "capabilities": now }));
        self.told = Some(now);
        self.outbox.send(&note).await
    }

    /// What the command line shows its owner. Nothing in here can be changed over this connection.
    fn status(&self) -> serde_json::Value {
        let snapshot = self.snapshots.borrow();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "capability": { "name": CODE_RUN, "enabled": snapshot.enabled },
            "engine": engine(&snapshot),
            "images": snapshot.images,
            "running": snapshot.running,
            "queued": snapshot.queued,
            "warm": snapshot.warm,
        })
    }

    async fn reply<T: Serialize>(&self, id: &Id, answer: Result<T, RunError>) -> Result<(), Gone> {
        self.outbox.send(&Response::new(id, answer.map_err(ErrorObject::from))).await
    }

    async fn refuse(&self, id: &Id, error: ErrorObject) -> Result<(), Gone> {
        self.outbox.send(&Response::<()>::new(id, Err(error))).await
    }
}

/// The engine's state with its sentence and its next step, so that each client need not have its own.
fn engine(snapshot: &Snapshot) -> serde_json::Value {
    use crate::engine::EngineState;
    let mut value = json!(snapshot.engine);
    match &snapshot.engine {
        EngineState::Trouble(trouble) => {
            value["message"] = json!(trouble.to_string());
            value["hint"] = json!(trouble.hint());
        }
        EngineState::Ready(info) => {
            if let Some(warning) = info.endpoint.warning() {
                value["warning"] = json!(warning);
            }
        }
        EngineState::Checking => {}
    }
    value
}
