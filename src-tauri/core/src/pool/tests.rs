//! The pool over the scripted engine: what is handed out, what is not, and that nothing is left.

use super::state::PRELOAD_TRIES;
use super::*;
use crate::engine::fake::Fake;
use crate::engine::{ContainerId, EngineTrouble};
use crate::settings::Settings;

const IMAGE: &str = "python:3.12-slim";

struct Rig {
    fake: Fake,
    engine: Arc<dyn Engine>,
    image: ImageInfo,
    pool: Pool,
    janitor: Janitor,
    cancel: CancellationToken,
}

impl Rig {
    async fn new() -> Self {
        let fake = Fake::new().with_image(IMAGE);
        let engine: Arc<dyn Engine> = Arc::new(fake.clone());
        let image = engine.image(IMAGE).await.unwrap().unwrap();
        let cancel = CancellationToken::new();
        let (janitor, _) = Janitor::spawn(CancellationToken::new());
        let instance = InstanceId { home: "home".into(), boot: "boot".into() };
        let pool = Pool::new(janitor.clone(), instance);
        tokio::spawn(pool.clone().keep(cancel.clone()));
        let rig = Self { fake, engine, image, pool, janitor, cancel };
        rig.pool.stock(Some(rig.stock(3)));
        rig
    }

    fn stock(&self, cap: usize) -> Stock {
        let images = BTreeMap::from([(Language::Python, self.image.clone())]);
        Stock { engine: Arc::clone(&self.engine), images, limits: limits(), cap }
    }

    fn take(&self) -> (Option<Lease>, Busy) {
        self.take_with(&limits())
    }

    fn take_with(&self, limits: &Limits) -> (Option<Lease>, Busy) {
        self.pool.take(&self.engine, &self.image, Language::Python, limits)
    }

    async fn warm(&self, wanted: usize) {
        let reached = async {
            while self.pool.warm() != wanted {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), reached).await.expect("so many warm ones in time");
    }

    async fn ids(&self) -> Vec<ContainerId> {
        self.fake.containers().await.unwrap().into_iter().map(|container| container.id).collect()
    }
}

fn limits() -> Limits {
    Settings::default().limits()
}

#[tokio::test]
async fn a_language_is_kept_warm_once_it_was_used_and_each_container_is_used_once() {
    let rig = Rig::new().await;
    assert_eq!(rig.fake.created(), 0, "nobody asked for anything");
    let (none, busy) = rig.take();
    assert!(none.is_none());
    drop(busy);
    rig.warm(1).await;
    let (first, busy) = rig.take();
    drop((first.expect("a warm one"), busy));
    rig.warm(2).await;
    let (second, _busy) = rig.take();
    assert!(second.is_some());
    assert_eq!(rig.fake.created(), 3, "the first was not handed out again");
}

#[tokio::test]
async fn a_call_with_other_limits_gets_no_warm_container() {
    let rig = Rig::new().await;
    drop(rig.take());
    rig.warm(1).await;
    let less = Limits { memory_bytes: 64 << 20, ..limits() };
    assert!(rig.take_with(&less).0.is_none());
    let shorter = Limits { millis: 100, output_bytes: 10, file_bytes: 10, ..limits() };
    assert!(rig.take_with(&shorter).0.is_some(), "time, output and files are watched from outside");
}

#[tokio::test]
async fn one_that_died_is_not_handed_out() {
    let rig = Rig::new().await;
    drop(rig.take());
    rig.warm(1).await;
    for id in rig.ids().await {
        rig.fake.remove(&id).await.unwrap();
    }
    tokio::task::yield_now().await;
    let (lease, _busy) = rig.take();
    assert!(lease.is_none());
}

#[tokio::test]
async fn a_changed_image_or_a_lower_cap_empties_what_does_not_fit() {
    let rig = Rig::new().await;
    for _ in 0..3 {
        drop(rig.take());
    }
    rig.warm(3).await;
    rig.pool.stock(Some(rig.stock(1)));
    assert_eq!(rig.pool.warm(), 1);
    let mut other = rig.stock(1);
    other.images.get_mut(&Language::Python).unwrap().id = "sha256:other".into();
    rig.pool.stock(Some(other));
    assert_eq!(rig.pool.warm(), 0);
}

#[tokio::test]
async fn off_leaves_no_container_behind() {
    let rig = Rig::new().await;
    drop(rig.take());
    rig.warm(1).await;
    rig.pool.stock(None);
    rig.janitor.idle().await;
    assert_eq!(rig.ids().await, []);
    let (lease, busy) = rig.take();
    assert!(lease.is_none());
    drop(busy);
    assert_eq!(rig.pool.warm(), 0);
}

#[tokio::test]
async fn off_while_one_is_being_made_leaves_none_either() {
    let rig = Rig::new().await;
    rig.fake.set_start_delay(Duration::from_millis(100));
    drop(rig.take());
    while rig.fake.created() == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    rig.pool.stock(None);
    rig.janitor.idle().await;
    assert_eq!(rig.ids().await, []);
}

#[tokio::test]
async fn calls_under_way_come_before_filling_up() {
    let rig = Rig::new().await;
    drop(rig.take());
    rig.warm(1).await;
    let (lease, busy) = rig.take();
    // None is left, so one is made at once; the second waits for the end of the call.
    rig.warm(1).await;
    assert_eq!(rig.fake.created(), 2);
    drop((lease, busy));
    rig.warm(2).await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_fails_is_not_asked_again_and_again() {
    let rig = Rig::new().await;
    let endpoint = rig.engine.endpoint().clone();
    rig.fake.set_trouble(Some(EngineTrouble::NotRunning { endpoint }));
    drop(rig.take());
    tokio::time::sleep(AFTER_FAILURE * 3).await;
    assert_eq!(rig.pool.warm(), 0);
    rig.fake.set_trouble(None);
    tokio::time::sleep(AFTER_FAILURE * 2).await;
    assert_eq!(rig.pool.warm(), 1);
    rig.cancel.cancel();
}

#[tokio::test]
async fn a_longer_limit_than_it_was_made_with_needs_a_new_one() {
    let rig = Rig::new().await;
    drop(rig.take());
    rig.warm(1).await;
    let longer = Limits { millis: limits().millis * 10, ..limits() };
    let mut stock = rig.stock(1);
    stock.limits = longer;
    rig.pool.stock(Some(stock));
    assert_eq!(rig.pool.warm(), 0, "its limit on CPU seconds would end the run before its time");
}

#[tokio::test(start_paused = true)]
async fn an_image_whose_interpreter_does_not_start_ahead_is_kept_warm_without_it() {
    let rig = Rig::new().await;
    rig.fake.refuse_to_preload();
    drop(rig.take());
    rig.warm(1).await;
    assert_eq!(rig.fake.created(), u64::from(PRELOAD_TRIES) + 1, "those that were tried, and one without");
    let (lease, _busy) = rig.take();
    assert!(lease.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_long_does_not_keep_the_pool_from_filling() {
    let rig = Rig::new().await;
    let held = rig.take();
    drop((rig.take(), rig.take()));
    rig.warm(3).await;
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_language_that_cannot_be_made_holds_up_no_other() {
    let rig = Rig::new().await;
    let mut stock = rig.stock(3);
    let gone = ImageInfo { id: "gone".into(), ..rig.image.clone() };
    stock.images.insert(Language::Javascript, gone.clone());
    rig.pool.stock(Some(stock));
    drop(rig.pool.take(&rig.engine, &gone, Language::Javascript, &limits()));
    drop(rig.take());
    rig.warm(1).await;
}
