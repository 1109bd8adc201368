//! Pulls an image. Dropping the stream closes the connection, and that stops the pull.

use bollard::errors::Error;
use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptions;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::time::timeout;

use super::errors::engine_error;
use super::{Docker, names};
use crate::engine::pull::PullFold;
use crate::engine::{Engine, EngineError, LayerEvent, PullError};

pub(super) fn pull(docker: Docker, name: &str) -> BoxStream<'static, Result<LayerEvent, PullError>> {
    if !names::is_plausible(name) {
        return stream::iter([Err(PullError::NoSuchImage)]).boxed();
    }
    let options = CreateImageOptions { from_image: Some(names::with_tag(name)), ..CreateImageOptions::default() };
    let lines = docker.client.create_image(Some(options), None, None).boxed();
    let pull = Pull { docker, name: name.to_owned(), lines, fold: PullFold::default(), ended: false };
    stream::unfold(pull, Pull::next).boxed()
}

struct Pull {
    docker: Docker,
    name: String,
    lines: BoxStream<'static, Result<CreateImageInfo, Error>>,
    /// Also tells how long the stream may be silent.
    fold: PullFold,
    ended: bool,
}

impl Pull {
    async fn next(mut self) -> Option<(Result<LayerEvent, PullError>, Self)> {
        if self.ended {
            return None;
        }
        let (patience, stalled) = self.fold.patience();
        match timeout(patience, self.lines.next()).await {
            Ok(Some(Ok(line))) => match read_line(&line) {
                Ok(event) => {
                    self.fold.apply(&event);
                    Some((Ok(event), self))
                }
                Err(error) => Some(self.fail(error)),
            },
            Ok(Some(Err(error))) => {
                let error = self.reason(error);
                Some(self.fail(error))
            }
            Ok(None) => {
                let missing = missing(self.docker.clone(), self.name.clone()).await?;
                Some(self.fail(missing))
            }
            Err(_) => Some(self.fail(stalled)),
        }
    }

    /// The last item. The connection closes here, even if the reader keeps the stream.
    fn fail(mut self, error: PullError) -> (Result<LayerEvent, PullError>, Self) {
        self.lines = stream::empty().boxed();
        self.ended = true;
        (Err(error), self)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "bollard has some 25 errors; two of them are the registry's")]
    fn reason(&self, error: Error) -> PullError {
        match error {
            Error::DockerResponseServerError { status_code, message } => {
                PullError::classify(Some(status_code), &message)
            }
            Error::DockerStreamError { error } => PullError::classify(None, &error),
            // A failure between Sandtray and the engine, not of the registry's network.
            error => {
                let error = engine_error(&self.docker.endpoint, "pull an image", error);
                PullError::Other { message: error.to_string() }
            }
        }
    }
}

/// Checks that the image is present after the stream has ended without an error. A broken engine may end it early, and
/// bollard drops error lines in some forms.
async fn missing(docker: Docker, name: String) -> Option<PullError> {
    match docker.image(&name).await {
        Ok(Some(_)) => None,
        Ok(None) => Some(PullError::Other { message: "the engine ended the pull without an image.".into() }),
        Err(EngineError::DeclaresVolumes) => Some(PullError::DeclaresVolumes),
        Err(error) => Some(PullError::Other { message: error.to_string() }),
    }
}

fn read_line(line: &CreateImageInfo) -> Result<LayerEvent, PullError> {
    if let Some(detail) = &line.error_detail {
        return Err(PullError::classify(None, detail.message.as_deref().unwrap_or_default()));
    }
    let bytes = |value: Option<i64>| value.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
    let progress = line.progress_detail.as_ref();
    let current = bytes(progress.and_then(|progress| progress.current));
    let total = bytes(progress.and_then(|progress| progress.total));
    let layer = line.id.as_deref().unwrap_or_default();
    Ok(LayerEvent::parse(layer, line.status.as_deref().unwrap_or_default(), current, total))
}
