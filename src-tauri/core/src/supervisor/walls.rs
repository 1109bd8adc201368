//! The registry of wall checks: the images for which the current engine was seen to hold every wall. It decides what
//! the result of a check means; the actor runs the checks.

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;

use crate::error::RunError;

use super::{Proof, Unproved};

/// Bound on remembered images. There is one for each language, and sometimes the owner names another.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Walls {
    /// Keyed by the image's id: the same name with another id has to be checked again.
    images: BTreeMap<String, Image>,
    last: u64,
}

#[derive(Debug)]
struct Image {
    state: State,
    /// Checks in a row without a result.
    failures: u32,
    /// The last check found that the image is gone.
    absent: bool,
}

#[derive(Debug)]
enum State {
    Unproved,
    Checking(Check),
    Held(Held),
    Missing(String),
}

/// Identifies a check, so that one from before the walls were doubted is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Check(u64);

#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) proof: Proof,
    /// Cancelled once the proof is doubted.
    pub(super) doubted: CancellationToken,
}

/// The meaning of a check's result.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Held,
    /// The image lacks this wall, so no run starts in it.
    Missing(String),
    /// The image is gone. `again`: the check before found that too.
    NoImage {
        again: bool,
    },
    /// The check failed and tells nothing about the walls. It is retried with exponential backoff.
    Unknown(RunError),
    /// The walls were doubted during the check, so the result is about an earlier state.
    Stale,
}

impl Walls {
    pub(super) fn held(&self, image: &str) -> Option<&Held> {
        match &self.images.get(image)?.state {
            State::Held(held) => Some(held),
            State::Unproved | State::Checking(_) | State::Missing(_) => None,
        }
    }

    pub(super) fn missing(&self, image: &str) -> Option<&str> {
        match &self.images.get(image)?.state {
            State::Missing(wall) => Some(wall),
            State::Unproved | State::Checking(_) | State::Held(_) => None,
        }
    }

    pub(super) fn are_being_checked(&self) -> bool {
        self.images.values().any(|image| matches!(image.state, State::Checking(_)))
    }

    /// Marks a check as under way, if one is due. Returns it with the number of failed checks before it.
    pub(super) fn begin(&mut self, image: &str) -> Option<(Check, u32)> {
        if self.images.len() >= MOST && !self.images.contains_key(image) {
            self.images.retain(|_, image| matches!(image.state, State::Checking(_)));
        }
        let image =
            self.images.entry(image.to_owned()).or_insert(Image { state: State::Unproved, failures: 0, absent: false });
        if !matches!(image.state, State::Unproved) {
            return None;
        }
        self.last += 1;
        image.state = State::Checking(Check(self.last));
        Some((Check(self.last), image.failures))
    }

    pub(super) fn conclude(&mut self, image: &str, check: Check, result: Result<Proof, Unproved>) -> Verdict {
        let Some(image) = self.under(image, check) else { return Verdict::Stale };
        match result {
            Ok(proof) => {
                let held = Held { proof, doubted: CancellationToken::new() };
                *image = Image { state: State::Held(held), failures: 0, absent: false };
                Verdict::Held
            }
            Err(Unproved::Missing(wall)) => {
                image.state = State::Missing(wall.clone());
                Verdict::Missing(wall)
            }
            Err(Unproved::NoImage) => {
                let again = image.absent;
                *image = Image { state: State::Unproved, failures: image.failures + 1, absent: true };
                Verdict::NoImage { again }
            }
            Err(Unproved::Failed(error)) => {
                *image = Image { state: State::Unproved, failures: image.failures + 1, absent: false };
                Verdict::Unknown(error)
            }
        }
    }

    /// The check ended without a result.
    pub(super) fn broke_off(&mut self, image: &str, check: Check) {
        if let Some(image) = self.under(image, check) {
            *image = Image { state: State::Unproved, failures: image.failures + 1, absent: false };
        }
    }

    fn under(&mut self, image: &str, check: Check) -> Option<&mut Image> {
        self.images.get_mut(image).filter(|image| matches!(image.state, State::Checking(under) if under == check))
    }

    /// Doubts the missing walls only: the owner may have fixed the cause.
    pub(super) fn doubt_missing(&mut self) {
        for image in self.images.values_mut().filter(|image| matches!(image.state, State::Missing(_))) {
            image.state = State::Unproved;
        }
    }

    /// The engine may have changed: drops all results, and those of checks under way will be ignored.
    pub(super) fn doubt_all(&mut self) {
        for image in self.images.values_mut() {
            image.absent = false;
            if let State::Held(held) = std::mem::replace(&mut image.state, State::Unproved) {
                held.doubted.cancel();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::walls::Launcher;

    const PROOF: Proof = Proof { launcher: Launcher::Sealed };

    fn missing() -> Result<Proof, Unproved> {
        Err(Unproved::Missing("the memory limit".into()))
    }

    fn begin(walls: &mut Walls, image: &str) -> Check {
        walls.begin(image).expect("a check is due").0
    }

    #[test]
    fn walls_are_proved_once_for_each_image() {
        let mut walls = Walls::default();
        assert!(walls.held("a").is_none());
        let check = begin(&mut walls, "a");
        assert_eq!((walls.begin("a"), walls.are_being_checked()), (None, true));
        assert_eq!(walls.conclude("a", check, Ok(PROOF)), Verdict::Held);
        assert_eq!(walls.held("a").map(|held| held.proof), Some(PROOF));
        walls.doubt_missing();
        assert_eq!((walls.begin("a"), walls.are_being_checked()), (None, false));
        assert!(walls.held("b").is_none() && walls.begin("b").is_some(), "another image is another matter");
    }

    #[test]
    fn a_missing_wall_counts_for_its_image_only_until_the_owner_may_have_mended_it() {
        let mut walls = Walls::default();
        let (a, b) = (begin(&mut walls, "a"), begin(&mut walls, "b"));
        assert_eq!(walls.conclude("a", a, missing()), Verdict::Missing("the memory limit".into()));
        assert_eq!(walls.conclude("b", b, Ok(PROOF)), Verdict::Held);
        assert_eq!((walls.missing("a"), walls.missing("b")), (Some("the memory limit"), None));
        assert_eq!(walls.begin("a"), None);
        walls.doubt_missing();
        assert_eq!(walls.missing("a"), None);
        assert!(walls.begin("a").is_some() && walls.held("b").is_some());
    }

    #[test]
    fn checks_that_came_to_nothing_are_counted_until_one_holds() {
        let mut walls = Walls::default();
        for failures in 0..3 {
            let (check, before) = walls.begin("a").unwrap();
            assert_eq!(before, failures);
            let failed = Err(Unproved::Failed(RunError::ShuttingDown));
            assert_eq!(walls.conclude("a", check, failed), Verdict::Unknown(RunError::ShuttingDown));
        }
        let check = begin(&mut walls, "a");
        walls.broke_off("a", check);
        let (check, failures) = walls.begin("a").unwrap();
        assert_eq!(failures, 4);
        walls.conclude("a", check, Ok(PROOF));
        assert!(walls.held("a").is_some());
    }

    #[test]
    fn an_image_that_is_missing_again_is_told_from_one_that_may_be_fetched() {
        let mut walls = Walls::default();
        for again in [false, true, true] {
            let check = begin(&mut walls, "a");
            assert_eq!(walls.conclude("a", check, Err(Unproved::NoImage)), Verdict::NoImage { again });
        }
        let check = begin(&mut walls, "a");
        walls.conclude("a", check, Err(Unproved::Failed(RunError::ShuttingDown)));
        let check = begin(&mut walls, "a");
        let missing = walls.conclude("a", check, Err(Unproved::NoImage));
        assert_eq!(missing, Verdict::NoImage { again: false }, "another failure stood between");
        let check = begin(&mut walls, "a");
        walls.conclude("a", check, Ok(PROOF));
        walls.doubt_all();
        let check = begin(&mut walls, "a");
        assert_eq!(walls.conclude("a", check, Err(Unproved::NoImage)), Verdict::NoImage { again: false });
    }

    #[test]
    fn a_proof_of_an_earlier_engine_is_void() {
        let mut walls = Walls::default();
        let (a, b) = (begin(&mut walls, "a"), begin(&mut walls, "b"));
        walls.conclude("a", a, Ok(PROOF));
        let held = walls.held("a").unwrap().clone();
        walls.doubt_all();
        assert!(held.doubted.is_cancelled() && walls.held("a").is_none());
        assert_eq!(walls.conclude("b", b, Ok(PROOF)), Verdict::Stale);
        let again = begin(&mut walls, "b");
        walls.broke_off("b", b);
        assert_eq!(walls.begin("b"), None, "the later check is still under way");
        assert_eq!(walls.conclude("b", again, Ok(PROOF)), Verdict::Held);
    }

    #[test]
    fn only_a_bounded_number_is_remembered() {
        let mut walls = Walls::default();
        for image in 0..10 * MOST {
            let check = begin(&mut walls, &image.to_string());
            walls.conclude(&image.to_string(), check, Ok(PROOF));
        }
        assert!(walls.images.len() <= MOST);
        assert!(walls.held(&(10 * MOST - 1).to_string()).is_some());
    }
}
