//! Keeps the app's snapshot up to date: rebuilt after a change, at most every 50 ms.

use std::sync::Arc;
use std::time::Duration;

use sandtray_core::paths::Paths;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::desk::Here;
use crate::dto::present;
use crate::dto::snapshot::{ImageView, OwnerSnapshot, ServiceView};
use crate::fetched::Fetched;
use crate::link::VERSION;
use crate::speed::Speeds;

/// Debounce interval of snapshots, so that the window does not redraw needlessly.
pub(crate) const COALESCE: Duration = Duration::from_millis(50);

pub(crate) async fn keep(app: Arc<App>, here: Arc<Here>, first_start: bool, over: CancellationToken) {
    let mut snapshots = here.supervisor.watch();
    let mut asides = here.history.set_asides();
    // A file set aside at the start is among the notices already.
    asides.borrow_and_update();
    let mut troubles = here.history.troubles();
    let mut turned_on = app.desk.unseen();
    let mut notices = here.notices.clone();
    let (mut comings, mut visits) = (here.visitors.changes(), 0_u32);
    let mut speeds = Speeds::default();
    let mut fetched = Fetched::read(Paths::of_user().ok().map(|paths| paths.fetched_file()));
    loop {
        let core = snapshots.borrow_and_update().clone();
        let shown = |image| ImageView { fetched: fetched.see(image), ..present::image(image, speeds.of(image)) };
        let images = core.images.iter().map(shown).collect();
        app.desk.publish(OwnerSnapshot {
            version: VERSION.into(),
            first_start,
            service: ServiceView::Here,
            enabled: core.enabled,
            engine: present::engine(&core.engine),
            warm: u32::try_from(core.warm).ok().filter(|_| core.enabled),
            images,
            running: core.running.iter().map(present::live).collect(),
            queued: core.queued.iter().map(present::live).collect(),
            turned_on_ms: *turned_on.borrow_and_update(),
            history_trouble: troubles.borrow_and_update().as_ref().map(present::history_trouble),
            notices: notices.iter().cloned().chain(present::warning(&core.engine)).collect(),
            socket: here.socket.clone(),
            visits,
        });
        fetched.save().await;
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { return },
            Ok(()) = asides.changed() => notices.extend(asides.borrow_and_update().as_ref().map(ToString::to_string)),
            Ok(()) = turned_on.changed() => {}
            true = comings.next() => visits = visits.wrapping_add(1),
            Ok(()) = troubles.changed() => {}
            () = over.cancelled() => return,
        }
        tokio::time::sleep(COALESCE).await;
    }
}
