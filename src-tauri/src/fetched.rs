//! Remembers over restarts which images Sandtray pulled itself, for the warning before one is removed. It watches the
//! snapshots. Images that `sandtray serve` pulled, or that were pulled between two snapshots, are not known.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::PathBuf;

use sandtray_core::disk;
use sandtray_core::event::{ImageState, ImageStatus};
use tokio::task::spawn_blocking;
use tracing::warn;

/// Most images remembered. Beyond it the oldest is forgotten.
const REMEMBERED: usize = 64;
/// Most bytes of the file: as many names and digests at their longest.
const FILE_BYTES: u64 = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Fetched {
    /// Images whose pull is downloading.
    coming: HashSet<String>,
    known: VecDeque<String>,
    /// There are changes that are not written yet.
    news: bool,
    file: Option<PathBuf>,
}

impl Fetched {
    /// Reads the file. An unreadable file counts as empty.
    pub(crate) fn read(file: Option<PathBuf>) -> Self {
        let bytes = file.as_ref().and_then(|file| disk::read_bounded(file, FILE_BYTES).ok().flatten());
        let known = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { known, file, ..Self::default() }
    }

    /// Updates from an image's state. Returns whether the present image is one that Sandtray pulled.
    pub(crate) fn see(&mut self, image: &ImageStatus) -> bool {
        let info = match &image.state {
            ImageState::Pulling(figure) => {
                if figure.downloaded_bytes > 0 {
                    self.coming.insert(image.image.clone());
                }
                return false;
            }
            ImageState::Ready(info) | ImageState::Unprepared(info) => info,
            ImageState::NotPulled | ImageState::Failed { .. } => {
                self.coming.remove(&image.image);
                return false;
            }
            ImageState::Unknown => return false,
        };
        // An image prepared for a language has the digest of the pulled one.
        let which = format!("{}@{}", image.image, info.digest.as_ref().unwrap_or(&info.id));
        if self.coming.remove(&image.image) && !self.known.contains(&which) {
            self.known.truncate(REMEMBERED - 1);
            self.known.push_front(which.clone());
            self.news = true;
        }
        self.known.contains(&which)
    }

    /// Writes the changes. One write at a time.
    pub(crate) async fn save(&mut self) {
        if !std::mem::take(&mut self.news) {
            return;
        }
        let (Some(file), Ok(bytes)) = (self.file.clone(), serde_json::to_vec(&self.known)) else { return };
        let written = spawn_blocking(move || disk::write_atomically(&file, &bytes)).await;
        if let Err(failure) = written.unwrap_or_else(|failure| Err(io::Error::other(failure))) {
            warn!(%failure, "it is not remembered that an image was fetched");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtray_core::engine::ImageInfo;
    use sandtray_core::event::PullFigure;
    use sandtray_core::language::Language;

    fn image(name: &str, state: ImageState) -> ImageStatus {
        ImageStatus { language: Language::Go, image: name.into(), state, wall_missing: None, launcher: None }
    }

    fn pulling(downloaded_bytes: u64) -> ImageState {
        ImageState::Pulling(PullFigure { fraction: 0.1, downloaded_bytes, total_bytes: 1000, preparing: false })
    }

    fn info(digest: &str) -> ImageInfo {
        ImageInfo { id: "1".into(), digest: Some(digest.into()), size_bytes: 1 }
    }

    #[test]
    fn only_what_came_in_was_fetched() {
        let mut fetched = Fetched::default();
        assert!(!fetched.see(&image("a", ImageState::Ready(info("d1")))), "it was there before");
        assert!(!fetched.see(&image("a", pulling(0))));
        assert!(!fetched.see(&image("a", ImageState::Ready(info("d1")))), "nothing of it had to come");
        assert!(!fetched.see(&image("a", pulling(10))));
        assert!(fetched.see(&image("a", ImageState::Unprepared(info("d2")))));
        assert!(fetched.see(&image("a", ImageState::Ready(info("d2")))));
        assert!(!fetched.see(&image("a", ImageState::Ready(info("d3")))), "another one under its name");
        fetched.see(&image("b", pulling(10)));
        fetched.see(&image("b", ImageState::NotPulled));
        assert!(!fetched.see(&image("b", ImageState::Ready(info("d4")))), "that pull came to nothing");
    }

    #[tokio::test]
    async fn it_is_known_after_a_restart_and_a_damaged_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fetched.json");
        let mut fetched = Fetched::read(Some(file.clone()));
        for number in 0..REMEMBERED + 2 {
            let name = format!("image-{number}");
            fetched.see(&image(&name, pulling(1)));
            fetched.see(&image(&name, ImageState::Ready(info("d"))));
        }
        fetched.save().await;
        let again = |name: &str| Fetched::read(Some(file.clone())).see(&image(name, ImageState::Ready(info("d"))));
        assert!(!again("image-1") && again("image-2"));
        std::fs::write(&file, "{").unwrap();
        assert!(!again("image-2"));
    }
}
