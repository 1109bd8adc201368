//! What goes on for the open window's sake: its subscription and the runs it watches. All of it ends with the window.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Runs watched at the same time: as many as may run.
const MAX_WATCHED: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<View>);

#[derive(Debug, Default)]
struct View {
    /// Of the window, or of its page: a reload subscribes anew.
    page: CancellationToken,
    watched: HashMap<String, CancellationToken>,
}

impl Views {
    /// A new page: whatever an earlier one began ends.
    pub(crate) fn begin(&self) -> CancellationToken {
        let mut view = self.view();
        view.page.cancel();
        *view = View::default();
        view.page.clone()
    }

    pub(crate) fn end(&self) {
        self.view().page.cancel();
    }

    /// Watching the same run again ends the earlier watch. `None` where too many are watched.
    pub(crate) fn watch(&self, run: &str) -> Option<CancellationToken> {
        let mut view = self.view();
        view.watched.retain(|_, watch| !watch.is_cancelled());
        if view.watched.len() >= MAX_WATCHED && !view.watched.contains_key(run) {
            return None;
        }
        let watch = view.page.child_token();
        if let Some(earlier) = view.watched.insert(run.to_owned(), watch.clone()) {
            earlier.cancel();
        }
        Some(watch)
    }

    pub(crate) fn unwatch(&self, run: &str) {
        if let Some(watch) = self.view().watched.remove(run) {
            watch.cancel();
        }
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_page_ends_what_the_old_one_watched() {
        let views = Views::default();
        let page = views.begin();
        let watch = views.watch("a").unwrap();
        let next = views.begin();
        assert!(page.is_cancelled() && watch.is_cancelled() && !next.is_cancelled());
        views.end();
        assert!(next.is_cancelled());
    }

    #[test]
    fn one_run_is_watched_once_and_only_so_many_at_a_time() {
        let views = Views::default();
        let first = views.watch("a").unwrap();
        let again = views.watch("a").unwrap();
        assert!(first.is_cancelled() && !again.is_cancelled());
        let others: Vec<_> = (1..MAX_WATCHED).map(|run| views.watch(&run.to_string()).unwrap()).collect();
        assert!(views.watch("one more").is_none());
        others[0].cancel();
        assert!(views.watch("one more").is_some());
        views.unwatch("a");
        assert!(again.is_cancelled());
    }
}
