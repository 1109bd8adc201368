//! The tasks of the open window: its subscription and the runs it watches. They all end with the window.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Most runs watched at a time: as many as may run.
const MAX_WATCHED: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<View>);

#[derive(Debug, Default)]
struct View {
    /// Cancelled when the window closes or its page reloads; the new page subscribes anew.
    page: CancellationToken,
    watched: BTreeMap<WatchId, CancellationToken>,
    last: WatchId,
}

/// The id of one watch of a run. Ids are not reused, so ending one watch never ends another, in whatever order the
/// page's calls arrive.
pub(crate) type WatchId = u32;

impl Views {
    /// Starts a page's subscription and ends everything that an earlier page started.
    pub(crate) fn begin(&self) -> CancellationToken {
        let mut view = self.view();
        view.page.cancel();
        *view = View { last: view.last, ..View::default() };
        view.page.clone()
    }

    pub(crate) fn end(&self) {
        self.view().page.cancel();
    }

    /// Starts a watch. `None` if there are too many.
    pub(crate) fn watch(&self) -> Option<(WatchId, CancellationToken)> {
        let mut view = self.view();
        view.watched.retain(|_, watch| !watch.is_cancelled());
        if view.watched.len() >= MAX_WATCHED {
            return None;
        }
        view.last += 1;
        let (id, watch) = (view.last, view.page.child_token());
        view.watched.insert(id, watch.clone());
        Some((id, watch))
    }

    pub(crate) fn unwatch(&self, id: WatchId) {
        if let Some(watch) = self.view().watched.remove(&id) {
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
        let (old, watch) = views.watch().unwrap();
        let next = views.begin();
        assert!(page.is_cancelled() && watch.is_cancelled() && !next.is_cancelled());
        let (new, watch) = views.watch().unwrap();
        views.unwatch(old);
        assert!(new != old && !watch.is_cancelled(), "what the old page still asks for is not the new one's");
        views.end();
        assert!(next.is_cancelled());
    }

    #[test]
    fn the_end_of_one_watch_leaves_a_later_one_of_the_same_run() {
        let views = Views::default();
        let (first, left) = views.watch().unwrap();
        let (_, opened_again) = views.watch().unwrap();
        views.unwatch(first);
        views.unwatch(first);
        assert!(left.is_cancelled() && !opened_again.is_cancelled());
    }

    #[test]
    fn only_so_many_are_watched_at_a_time() {
        let views = Views::default();
        let watches: Vec<_> = (0..MAX_WATCHED).map(|_| views.watch().unwrap()).collect();
        assert!(views.watch().is_none());
        // One watch that ended by itself, and one that was cancelled.
        watches[0].1.cancel();
        assert!(views.watch().is_some() && views.watch().is_none());
        views.unwatch(watches[1].0);
        assert!(views.watch().is_some());
    }
}
