//! How a step knows whether to go on: by what its caller says, or by the time that it is allowed
//! (design/gc-steps.md `.within`).

use core::time::Duration;

use tripoint_core::StepTime;

/// Whether to go on with a step.
pub(crate) trait Pace {
    /// The first of some pieces begins.
    fn begin_pieces(&mut self) {}

    /// A piece has ended. Returns whether another one may begin.
    fn goes_on(&mut self) -> bool;

    /// The time so far, if there is a clock.
    fn time(&mut self) -> Option<StepTime> {
        None
    }
}

/// As the caller of a step says.
impl<F: FnMut() -> bool> Pace for F {
    fn goes_on(&mut self) -> bool {
        self()
    }
}

/// As long as two more pieces would end in the time that is allowed, if they took as long as the longest one so far: one
/// to be done, and one in reserve, for a piece that takes longer and for the end of the step.
#[derive(Debug)]
pub(crate) struct Within<C> {
    clock: C,
    began: Duration,
    allowed: Duration,
    /// When the present piece began.
    piece: Duration,
    longest_piece: Duration,
}

impl<C: FnMut() -> Duration> Within<C> {
    /// The time begins here.
    pub(crate) fn begin(allowed: Duration, mut clock: C) -> Self {
        let began = clock();
        Self { clock, began, allowed, piece: Duration::ZERO, longest_piece: Duration::ZERO }
    }

    /// The time since it began. A clock that was set back shows none.
    fn taken(&mut self) -> Duration {
        (self.clock)().saturating_sub(self.began)
    }
}

impl<C: FnMut() -> Duration> Pace for Within<C> {
    fn begin_pieces(&mut self) {
        self.piece = self.taken();
    }

    fn goes_on(&mut self) -> bool {
        let taken = self.taken();
        self.longest_piece = self.longest_piece.max(taken.saturating_sub(self.piece));
        self.piece = taken;
        taken.saturating_add(self.longest_piece.saturating_mul(2)) <= self.allowed
    }

    fn time(&mut self) -> Option<StepTime> {
        Some(StepTime { allowed: self.allowed, taken: self.taken() })
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use core::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    const NS: Duration = Duration::from_nanos(1);

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// If no piece takes more than twice as long as all before it, the time is kept, and not given up early.
        #[test]
        fn a_step_ends_when_another_piece_would_take_too_long(
            began in 0_u32..1000,
            allowed in 0_u32..2000,
            before in 0_u32..100,
            pieces in prop::collection::vec(0_u32..300, 1..200),
        ) {
            let now = Cell::new(began);
            let mut pace = Within::begin(allowed * NS, || now.get() * NS);
            now.set(now.get() + before);
            pace.begin_pieces();
            let (mut longest, mut done) = (0, 0);
            for piece in pieces {
                now.set(now.get() + piece);
                let before = longest;
                longest = longest.max(piece);
                done += 1;
                let taken = now.get() - began;
                let goes_on = pace.goes_on();
                prop_assert_eq!(goes_on, taken + 2 * longest <= allowed);
                prop_assert_eq!(pace.time(), Some(StepTime { allowed: allowed * NS, taken: taken * NS }));
                if !goes_on {
                    prop_assert!(taken <= allowed || done == 1 || piece > 2 * before);
                    break;
                }
            }
        }
    }

    #[test]
    fn what_comes_before_the_pieces_is_no_piece() {
        let now = Cell::new(0);
        let mut pace = Within::begin(10 * NS, || now.get() * NS);
        now.set(6);
        pace.begin_pieces();
        now.set(7);
        assert!(pace.goes_on(), "a piece takes one");
        // The twin: without it, the wait for the stop counts as one.
        let now = Cell::new(0);
        let mut pace = Within::begin(10 * NS, || now.get() * NS);
        now.set(7);
        assert!(!pace.goes_on());
    }

    #[test]
    fn clocks_that_stand_still_or_are_set_back_and_times_without_end_are_no_error() {
        let now = Cell::new(100);
        let mut pace = Within::begin(Duration::MAX, || now.get() * NS);
        now.set(50);
        assert!(pace.goes_on());
        assert_eq!(pace.time().map(|time| time.taken), Some(Duration::ZERO));
        let now = Cell::new(Duration::ZERO);
        let mut pace = Within::begin(Duration::MAX, || now.get());
        now.set(Duration::MAX);
        assert!(pace.goes_on());
        let mut pace = Within::begin(Duration::ZERO, || Duration::ZERO);
        pace.begin_pieces();
        assert!(pace.goes_on(), "no time has passed, as far as the clock shows");
    }

    #[test]
    fn a_caller_without_a_clock_is_asked() {
        let mut left = 2;
        let mut pace = || {
            left -= 1;
            left > 0
        };
        Pace::begin_pieces(&mut pace);
        assert!(Pace::goes_on(&mut pace) && !Pace::goes_on(&mut pace));
        assert_eq!(Pace::time(&mut pace), None);
    }
}
