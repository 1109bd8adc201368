//! One connection: reads requests, sends replies in any order, and notifications to clients that subscribed.
//! A disconnect ends the client's runs. After a half-close of its side the client still gets its replies.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::batch::Batch;
use super::call::Call;
use super::door::Runs;
use super::outbox::{Answered, Gone, Outbox};
use super::places::Seat;
use super::{FAREWELL, Peer};
use crate::budget::Hold;
use crate::codec::{Frame, Frames, MAX_FRAME};
use crate::error::RunError;
use crate::event::Snapshot;
use crate::policy;
use crate::protocol::batch::{self, BatchRequest};
use crate::protocol::capability::{Capabilities, Capability, HelloReply, capabilities};
use crate::protocol::error::ErrorObject;
use crate::protocol::request::{self, CancelReply, CancelTarget, RunRequest};
use crate::protocol::status::ServiceStatus;
use crate::protocol::{self, CODE_BATCH, CODE_RUN, Id, Message, Notification, Response};
use crate::run::{Cancel, Client, ClientId, EndedBy, RunId, RunSpec};
use crate::visitors::Visit;

const HELLO: &str = "hello";
/// Concurrent runs of one connection, queued ones included. A batch counts as all its runs until it is answered.
pub const MAX_RUNS: usize = 64;
/// Programs of more bytes than this count on their client's account until their run ends.
const COUNTED: usize = 64 << 10;
/// Time limit for the first request. After it, a connection may stay silent indefinitely.
pub const FIRST_WORD: Duration = Duration::from_secs(600);
/// How long a closing connection has to read the reason.
const LAST_WORD: Duration = Duration::from_millis(500);
/// After end-of-file: interval of the check whether the client disconnected or half-closed.
const HANGUP_EVERY: Duration = Duration::from_millis(200);

/// Both halves of a connection, and a check whether the other side closed both directions.
pub struct Link<R, W> {
    pub reader: R,
    pub writer: W,
    pub hung_up: Box<dyn Fn() -> bool + Send>,
}

/// Serves until the client disconnects, or has half-closed and got its replies, or `stop` is cancelled and the runs are
/// answered. Returning drops the runs that are left, which cancels them.
pub async fn serve<D, R, W>(link: Link<R, W>, client: (ClientId, Peer), seat: Seat, door: D, stop: CancellationToken)
where
    D: Runs,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (id, peer) = client;
    let name = request::name_of_program(peer.program.as_deref());
    let snapshots = door.watch();
    let session = Session {
        door,
        client: Client { id, name, pid: peer.pid, program: peer.program },
        outbox: Arc::new(Outbox::new(link.writer, seat.account.clone())),
        runs: JoinSet::new(),
        live: HashMap::new(),
        snapshots,
        told: None,
        seat,
        visit: None,
    };
    let frames = Frames::of_client(link.reader, session.seat.account.clone());
    session.serve(frames, link.hung_up, stop).await;
}

struct Session<D, W> {
    door: D,
    client: Client,
    outbox: Arc<Outbox<W>>,
    runs: JoinSet<()>,
    live: HashMap<task::Id, Live>,
    snapshots: watch::Receiver<Snapshot>,
    /// The capabilities last sent to a subscriber. None without a subscription.
    told: Option<Vec<Capability>>,
    seat: Seat,
    /// Set from the first request on; a `hello` has set the name by then.
    visit: Option<Visit>,
}

/// A request in progress. Its id and its runs' places are free once it is answered.
struct Live {
    request: Id,
    /// One run, or the runs of a batch.
    runs: Vec<RunId>,
    /// Ends all of them.
    cancel: Cancel,
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
        let mut first_word = Some(Instant::now() + FIRST_WORD);
        while reading || !self.runs.is_empty() {
            let step = tokio::select! {
                () = outbox.broken() => break,
                frame = frames.next(), if reading => match frame {
                    Ok(Some(frame)) => {
                        first_word = None;
                        self.seat.active(self.runs.len());
                        let done = self.frame(frame, frames.take_hold()).await;
                        self.seat.active(self.runs.len());
                        done
                    }
                    Ok(None) if hung_up() => break,
                    Ok(None) => {
                        reading = false;
                        Ok(())
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a connection broke");
                        break;
                    }
                },
                Some(done) = self.runs.join_next_with_id(), if !self.runs.is_empty() => self.ended(done).await,
                changed = self.snapshots.changed(), if self.told.is_some() => self.changed(changed.is_ok()).await,
                () = self.seat.asked_to_leave() => {
                    self.last_word(ErrorObject::gave_way()).await;
                    break;
                }
                () = sleep_until(first_word.unwrap_or_else(Instant::now)), if first_word.is_some() => {
                    self.last_word(ErrorObject::no_word(FIRST_WORD.as_secs())).await;
                    break;
                }
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
        // Shut down instead of dropped, so that the runs are cancelled before the connection counts as closed.
        self.runs.shutdown().await;
    }

    /// `hold` counts the frame's bytes, if it is long.
    async fn frame(&mut self, frame: Frame, hold: Option<Hold>) -> Result<(), Gone> {
        let line = match frame {
            Frame::Line(line) => line,
            Frame::NoRoom(beginning) => {
                let error = RunError::NoRoom { own: !self.seat.account.has_room() };
                return self.refuse(&protocol::id_in_beginning(&beginning), error.into()).await;
            }
            Frame::TooLong => return self.refuse(&Id::null(), ErrorObject::message_too_long(MAX_FRAME)).await,
        };
        match protocol::parse(&line) {
            Ok(message) => self.message(message, hold).await,
            Err(refusal) => self.refuse(&refusal.id, refusal.error).await,
        }
    }

    async fn message(&mut self, message: Message<'_>, hold: Option<Hold>) -> Result<(), Gone> {
        let Message { id, method, params } = message;
        let Some(id) = id else {
            // A notification gets no reply, so only `code.cancel`, which has an effect, makes sense as one.
            if method == "code.cancel" {
                let _ = self.cancel(params).await;
            }
            return Ok(());
        };
        if self.visit.is_none() && method != HELLO {
            self.enter();
        }
        match method.as_str() {
            CODE_RUN => match self.start(&id, params, hold) {
                Ok(()) => Ok(()),
                Err(error) => self.refuse(&id, error).await,
            },
            CODE_BATCH => match self.start_batch(&id, params, hold) {
                Ok(()) => Ok(()),
                Err(error) => self.refuse(&id, error).await,
            },
            "code.cancel" => {
                let answer = self.cancel(params).await;
                self.reply(&id, answer.map(|cancelled| CancelReply { cancelled })).await
            }
            "code.history" => {
                let hold = self.seat.account.hold();
                let answer = match request::history(params) {
                    Ok(request) => self.door.history(request, hold.clone()).await,
                    Err(error) => Err(error),
                };
                // From here on the outbox counts the bytes, as a reply.
                drop(hold);
                self.reply(&id, answer).await
            }
            HELLO => {
                let answer = self.hello(params);
                self.enter();
                self.reply(&id, answer).await
            }
            "subscribe" => {
                let capabilities = self.capabilities();
                let answer = self.reply(&id, Ok(Capabilities { capabilities: &capabilities })).await;
                self.told = Some(capabilities);
                self.seat.subscribed();
                answer
            }
            "status" => {
                // Encoded before it is sent, so that a slow client holds no lock on the snapshot.
                let trouble = self.door.history_trouble();
                let status = to_raw_value(&ServiceStatus::of(&self.snapshots.borrow(), trouble.as_ref()));
                let status = status.map_err(|error| RunError::Internal(error.to_string()));
                self.reply(&id, status).await
            }
            _ => self.refuse(&id, ErrorObject::method_not_found(&method)).await,
        }
    }

    /// Enters the client in the registry of visitors, or updates its name there.
    fn enter(&mut self) {
        let Client { name, program, pid, .. } = &self.client;
        match &mut self.visit {
            Some(visit) => visit.renamed(name),
            None => self.visit = Some(self.door.visitors().came(name, program.as_deref(), *pid)),
        }
    }

    /// Starts a run; its reply is sent when it ends.
    fn start(&mut self, id: &Id, params: Option<&RawValue>, hold: Option<Hold>) -> Result<(), ErrorObject> {
        // Checked before the parameters: to an agent the method does not exist while it is off.
        if !self.snapshots.borrow().enabled {
            return Err(RunError::Off.into());
        }
        let request = RunRequest::decode(params)?;
        let stream = request.stream;
        let spec = policy::spec(request, &self.door.limits(), RunId::generate())?;
        self.admit(id, 1)?;
        let hold = self.keep(hold, spec.weight())?;
        let answered = Answered::default();
        let cancel = Cancel::default();
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
            hold,
        };
        let task = self.runs.spawn(call.answer());
        self.live.insert(task.id(), live);
        Ok(())
    }

    /// Starts a batch once all its runs pass the checks; its reply is sent when the last run ends.
    fn start_batch(&mut self, id: &Id, params: Option<&RawValue>, hold: Option<Hold>) -> Result<(), ErrorObject> {
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
        let hold = self.keep(hold, specs.iter().map(RunSpec::weight).sum())?;
        let at_once = self.door.at_once();
        let cancel = Cancel::default();
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
            hold,
            account: self.seat.account.clone(),
        };
        let task = self.runs.spawn(batch.answer());
        self.live.insert(task.id(), live);
        Ok(())
    }

    fn unanswered(&self) -> impl Iterator<Item = &Live> {
        self.live.values().filter(|live| !live.answered.yet())
    }

    /// Checks that the request's id is free and that the connection may have this many more runs.
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

    /// The account of the call: takes over its frame's, with as many bytes as the program needs.
    fn keep(&self, hold: Option<Hold>, bytes: usize) -> Result<Hold, RunError> {
        let hold = hold.unwrap_or_else(|| self.seat.account.hold());
        let kept = hold.coming(if bytes > COUNTED { bytes } else { 0 });
        kept.then_some(hold).ok_or_else(|| RunError::NoRoom { own: !self.seat.account.has_room() })
    }

    /// Handles the end of a call's task. A panic in it is answered with an error; the connection goes on.
    async fn ended(&mut self, done: Result<(task::Id, ()), JoinError>) -> Result<(), Gone> {
        self.seat.active(self.runs.len());
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

    /// Cancels a run, a batch, or one run of a batch. True if the target is still in progress. A run that ends first is
    /// answered with its result, otherwise as cancelled.
    async fn cancel(&self, params: Option<&RawValue>) -> Result<bool, RunError> {
        // Looks only at this connection's runs. The supervisor would refuse others too.
        match request::cancel(params)? {
            CancelTarget::Request(id) => {
                let key = id.key();
                let live = self.unanswered().find(|live| live.request.key() == key);
                Ok(live.inspect(|live| live.cancel.by(EndedBy::Client)).is_some())
            }
            CancelTarget::Run(run) => match self.unanswered().find(|live| live.runs.contains(&run)) {
                // One run of a batch. The client knows its id from a notification, so the supervisor knows the run.
                Some(live) if live.runs.len() > 1 => Ok(self.door.cancel(self.client.id, run).await),
                live => Ok(live.inspect(|live| live.cancel.by(EndedBy::Client)).is_some()),
            },
        }
    }

    fn hello(&mut self, params: Option<&RawValue>) -> Result<HelloReply, RunError> {
        if let Some(name) = request::hello(params)? {
            self.client.name = name;
        }
        Ok(HelloReply::new(self.capabilities()))
    }

    fn capabilities(&self) -> Vec<Capability> {
        let enabled = self.snapshots.borrow().enabled;
        capabilities(enabled, &self.door.limits())
    }

    async fn changed(&mut self, alive: bool) -> Result<(), Gone> {
        if !alive {
            // The supervisor is gone, so the capabilities change no more.
            self.told = None;
            return Ok(());
        }
        self.snapshots.mark_unchanged();
        let now = self.capabilities();
        if self.told.as_ref() == Some(&now) {
            return Ok(());
        }
        let note = Notification::new("capabilities.changed", Capabilities { capabilities: &now });
        let sent = self.outbox.send(&note).await;
        self.told = Some(now);
        sent
    }

    async fn reply<T: Serialize>(&self, id: &Id, answer: Result<T, RunError>) -> Result<(), Gone> {
        self.outbox.send(&Response::new(id, answer.map_err(ErrorObject::from))).await
    }

    /// Tells the client why the connection is closed, within a time limit: it may not be reading.
    async fn last_word(&self, error: ErrorObject) {
        let _ = timeout(LAST_WORD, self.refuse(&Id::null(), error)).await;
    }

    async fn refuse(&self, id: &Id, error: ErrorObject) -> Result<(), Gone> {
        self.outbox.send(&Response::<()>::new(id, Err(error))).await
    }
}

#[cfg(test)]
mod tests;
