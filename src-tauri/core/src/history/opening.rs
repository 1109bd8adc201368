//! Opens the worker's database on demand, and sets a damaged file aside.

use std::path::Path;
use std::time::SystemTime;

use super::HistoryError;
use super::schema::{self, OpenError};
use super::store::Store;
use super::worker::Worker;
use crate::disk;

/// Suffixes of the files that belong to the database.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];
/// Most damaged files set aside by one service. Without a bound, a disk that damages every file would fill up.
const MAX_SET_ASIDE: u32 = 5;

impl Worker {
    /// Does `work`. On damage the file is set aside and the work is retried once, on a new file.
    pub(super) fn with<T>(
        &mut self,
        mut work: impl FnMut(&mut Store) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        match work(self.opened()?) {
            Err(error) if is_damage(&error) => {
                self.set_aside(format!("it is damaged ({error})"))?;
                Ok(work(self.opened()?)?)
            }
            result => Ok(result?),
        }
    }

    pub(super) fn opened(&mut self) -> Result<&mut Store, HistoryError> {
        // The file was removed under an open connection: records written there would be lost at the next start.
        if self.store.is_some() && !self.path.exists() {
            self.store = None;
        }
        if self.store.is_none() {
            let store = match open(&self.path) {
                Err(Refusal::Unusable(reason)) => {
                    self.set_aside(reason)?;
                    match open(&self.path) {
                        Err(Refusal::Unusable(reason)) => return Err(HistoryError::Unusable(reason)),
                        Err(Refusal::Failed(error)) => return Err(error),
                        Ok(store) => store,
                    }
                }
                Err(Refusal::Failed(error)) => return Err(error),
                Ok(store) => store,
            };
            self.readers.retire();
            // A growth bound applied only to the previous connection.
            self.bounded = false;
            self.behind = true;
            self.store = Some(store);
        }
        self.store.as_mut().ok_or(HistoryError::Closed)
    }

    fn set_aside(&mut self, reason: String) -> Result<(), HistoryError> {
        // Closed first, because Windows does not rename open files and because closing folds the log into the database.
        let _alone = self.alone();
        self.readers.retire();
        self.store = None;
        if self.set_asides == MAX_SET_ASIDE {
            return Err(HistoryError::Unusable(reason));
        }
        self.set_asides += 1;
        let aside = disk::set_aside("history", &self.path, &COMPANIONS, reason, SystemTime::now())
            .map_err(|source| HistoryError::File { path: self.path.clone(), source })?;
        tracing::warn!("{aside}");
        self.news.asides.send_replace(Some(aside));
        Ok(())
    }
}

enum Refusal {
    /// The file must be set aside.
    Unusable(String),
    Failed(HistoryError),
}

fn open(path: &Path) -> Result<Store, Refusal> {
    schema::open(path).map(Store::new).map_err(|error| match error {
        OpenError::Unusable(reason) => Refusal::Unusable(reason),
        OpenError::Sql(error) if is_damage(&error) => Refusal::Unusable(format!("it is damaged ({error})")),
        OpenError::Sql(error) => Refusal::Failed(error.into()),
        OpenError::Io(source) => Refusal::Failed(HistoryError::File { path: path.to_owned(), source }),
    })
}

/// Whether a retry cannot help. A full disk, a lock or a missing permission is not damage.
fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase))
}
