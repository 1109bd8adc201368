//! Nothing runs before the walls are proved.

use super::*;

#[derive(Debug)]
struct NoWall;

#[async_trait]
impl WallCheck for NoWall {
    async fn check(&self, engine: &Arc<dyn Engine>, _: &ImageInfo, _: &Leases, _: &Limits) -> Result<(), RunError> {
        let endpoint = engine.endpoint().clone();
        Err(RunError::Engine(EngineTrouble::WallMissing { endpoint, wall: "the memory limit".into() }))
    }
}

#[tokio::test]
async fn an_engine_without_a_wall_runs_nothing() {
    let rig = Rig::checked(Fake::new().with_image(PYTHON), Arc::new(NoWall), |_| ());
    for _ in 0..2 {
        let error = rig.start(1, "exit 0").result().await.unwrap_err();
        assert!(matches!(error, RunError::Engine(EngineTrouble::WallMissing { .. })), "{error:?}");
    }
    assert_eq!(rig.fake.created(), 0);
    assert!(matches!(rig.supervisor.snapshot().engine, EngineState::Trouble(EngineTrouble::WallMissing { .. })));
}

/// A check that fails for a reason of its own: the image is gone, say.
#[derive(Debug, Default)]
struct Failing(std::sync::atomic::AtomicU32);

#[async_trait]
impl WallCheck for Failing {
    async fn check(&self, _: &Arc<dyn Engine>, _: &ImageInfo, _: &Leases, _: &Limits) -> Result<(), RunError> {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0..=1 => Err(RunError::Internal("the image is not there".into())),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn a_wall_check_without_a_result_is_made_again_but_not_in_a_spin() {
    let check = Arc::new(Failing::default());
    let rig = Rig::checked(Fake::new().with_image(PYTHON), check.clone(), |_| ());
    tokio::time::timeout(Duration::from_secs(5), async { while rig.start(1, "exit 0").result().await.is_err() {} })
        .await
        .expect("the third check to hold");
    assert_eq!(check.0.load(std::sync::atomic::Ordering::Relaxed), 3);
}
