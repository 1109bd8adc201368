//! Whether the current engine has been seen to hold every wall. It decides what a check means; running it is the actor's.

use crate::engine::EngineTrouble;
use crate::error::RunError;

#[derive(Debug)]
pub(super) struct Walls {
    state: State,
    /// Checks in a row that came to no result.
    failures: u32,
}

#[derive(Debug)]
enum State {
    Unproved,
    Checking,
    Held,
    Missing(EngineTrouble),
}

/// What a check has shown.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Held,
    /// Nothing runs there.
    Missing(EngineTrouble),
    /// It says nothing of the walls: the check is made again, later each time.
    Unknown(RunError),
}

impl Walls {
    /// Of an engine that nothing is known of.
    pub(super) fn unproved() -> Self {
        Self { state: State::Unproved, failures: 0 }
    }

    pub(super) fn held(&self) -> bool {
        matches!(self.state, State::Held)
    }

    pub(super) fn missing(&self) -> Option<&EngineTrouble> {
        match &self.state {
            State::Missing(trouble) => Some(trouble),
            State::Unproved | State::Checking | State::Held => None,
        }
    }

    /// Where a check is due: notes it as under way, and says how many before it came to nothing.
    pub(super) fn begin(&mut self) -> Option<u32> {
        matches!(self.state, State::Unproved).then(|| {
            self.state = State::Checking;
            self.failures
        })
    }

    pub(super) fn conclude(&mut self, result: Result<(), RunError>) -> Verdict {
        match result {
            Ok(()) => {
                *self = Self { state: State::Held, failures: 0 };
                Verdict::Held
            }
            Err(RunError::Engine(trouble @ EngineTrouble::WallMissing { .. })) => {
                self.state = State::Missing(trouble.clone());
                Verdict::Missing(trouble)
            }
            Err(error) => {
                self.broke_off();
                Verdict::Unknown(error)
            }
        }
    }

    /// A check ended without a word.
    pub(super) fn broke_off(&mut self) {
        self.state = State::Unproved;
        self.failures += 1;
    }

    /// A wall that was missing may have been so for a reason that the owner has just mended.
    pub(super) fn doubt(&mut self) {
        if self.missing().is_some() {
            self.state = State::Unproved;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Endpoint;

    fn missing() -> EngineTrouble {
        let endpoint = Endpoint { url: "fake://".into(), found: "a test".into() };
        EngineTrouble::WallMissing { endpoint, wall: "the memory limit".into() }
    }

    #[test]
    fn they_are_proved_once() {
        let mut walls = Walls::unproved();
        assert_eq!((walls.held(), walls.begin(), walls.begin()), (false, Some(0), None));
        assert_eq!(walls.conclude(Ok(())), Verdict::Held);
        walls.doubt();
        assert_eq!((walls.held(), walls.begin()), (true, None));
    }

    #[test]
    fn a_missing_one_is_believed_until_the_owner_may_have_mended_it() {
        let mut walls = Walls::unproved();
        walls.begin();
        assert_eq!(walls.conclude(Err(RunError::Engine(missing()))), Verdict::Missing(missing()));
        assert_eq!(walls.missing(), Some(&missing()));
        assert_eq!(walls.begin(), None);
        walls.doubt();
        assert_eq!(walls.missing(), None);
        assert_eq!(walls.begin(), Some(0));
    }

    #[test]
    fn checks_that_came_to_nothing_are_counted_until_one_holds() {
        let mut walls = Walls::unproved();
        for failures in 0..3 {
            assert_eq!(walls.begin(), Some(failures));
            assert_eq!(walls.conclude(Err(RunError::ShuttingDown)), Verdict::Unknown(RunError::ShuttingDown));
        }
        walls.begin();
        walls.broke_off();
        assert_eq!(walls.begin(), Some(4));
        walls.conclude(Ok(()));
        assert!(walls.held());
    }
}
