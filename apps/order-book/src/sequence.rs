//! Binance's procedure, as far as it is about numbers: which updates a book has, which ones wait for a snapshot, and
//! which are missing (design/order-book.md `.sequence`).

use core::fmt;

use crate::record::Span;

/// Updates in a row that are older than a snapshot. A snapshot is at most seconds ahead of the stream, so after
/// this many its number is wrong.
pub const OLD_MAX: u64 = 1_000;

/// Where a book is in the numbers of its symbol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequence {
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// There is no snapshot. Updates are kept: all of this span.
    Waiting(Option<Span>),
    /// The book is a snapshot. `old` counts the updates since then that were older than it.
    Snapshot { number: u64, old: u64 },
    /// The book has all updates up to this number.
    Current { number: u64 },
}

impl Default for State {
    fn default() -> Self {
        Self::Waiting(None)
    }
}

/// What is to be done with an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The book has it already.
    Drop,
    /// It waits for a snapshot.
    Keep,
    Apply,
}

/// What is to be done with a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotStep {
    /// It is older than the book, or than the first update that is kept, so that updates between them are missing.
    Drop,
    /// It is the book. The updates that are kept come on top of it.
    Replace,
}

/// Why a book is not known from here on, until a snapshot comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Updates are missing: the last one that came, and the one before which the next begins.
    Gap { last: u64, before: u64 },
    /// An update has others that came before, as if streams were mixed.
    Overlap { last: u64, before: u64 },
    /// A snapshot whose number is too high: too many updates were older than it.
    Ahead { number: u64 },
    /// No memory to keep more updates until a snapshot comes.
    NoRoom { pieces: usize },
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { last, before } => {
                write!(f, "updates are missing: the last one ended at {last}, and this one follows {before}")
            }
            Self::Overlap { last, before } => {
                write!(
                    f,
                    "the last update ended at {last}, and this one follows {before}: the order is broken"
                )
            }
            Self::Ahead { number } => {
                write!(
                    f,
                    "{OLD_MAX} updates in a row are older than the snapshot {number}: its number is wrong"
                )
            }
            Self::NoRoom { pieces } => write!(
                f,
                "no snapshot has come, and there is memory to keep {pieces} pieces of updates until then (see --kept)"
            ),
        }
    }
}

impl Sequence {
    /// Whether a snapshot covers the updates.
    pub const fn is_known(&self) -> bool {
        !matches!(self.state, State::Waiting(_))
    }

    /// The number of the last update that the book has.
    pub const fn number(&self) -> Option<u64> {
        match self.state {
            State::Waiting(_) => None,
            State::Snapshot { number, .. } | State::Current { number } => Some(number),
        }
    }

    /// Says what is to be done with an update.
    ///
    /// # Errors
    /// [`Break`] if it does not follow the last one.
    pub const fn step(&self, span: Span) -> Result<Step, Break> {
        let (last, step) = match self.state {
            State::Waiting(None) => return Ok(Step::Keep),
            State::Waiting(Some(kept)) => (kept.last, Step::Keep),
            State::Snapshot { number, old } if span.last <= number && old >= OLD_MAX => {
                return Err(Break::Ahead { number });
            }
            // It holds all up to its number, wherever that is within an update.
            State::Snapshot { number, .. } if span.before <= number && span.last > number => {
                return Ok(Step::Apply);
            }
            State::Snapshot { number, .. } | State::Current { number } => (number, Step::Apply),
        };
        let before = span.before;
        if span.last <= last {
            Ok(Step::Drop)
        } else if before > last {
            Err(Break::Gap { last, before })
        } else if before < last {
            Err(Break::Overlap { last, before })
        } else {
            Ok(step)
        }
    }

    /// Notes that this was done with an update.
    pub fn advance(&mut self, span: Span, step: Step) {
        self.state = match (step, self.state) {
            (Step::Drop, State::Snapshot { number, old }) => State::Snapshot { number, old: old + 1 },
            (Step::Drop, state) => state,
            (Step::Keep, State::Waiting(Some(Span { before, .. }))) => {
                State::Waiting(Some(Span { before, last: span.last }))
            }
            (Step::Keep, _) => State::Waiting(Some(span)),
            (Step::Apply, _) => State::Current { number: span.last },
        };
    }

    /// Says what is to be done with a snapshot.
    pub fn snapshot_step(&self, number: u64) -> SnapshotStep {
        let is_old = match self.state {
            State::Waiting(kept) => kept.is_some_and(|kept| number < kept.before),
            State::Snapshot { number: known, .. } | State::Current { number: known } => number < known,
        };
        if is_old { SnapshotStep::Drop } else { SnapshotStep::Replace }
    }

    /// The book is a snapshot of this number.
    pub const fn begin(&mut self, number: u64) {
        self.state = State::Snapshot { number, old: 0 };
    }

    /// The book is not known any more, and no update is kept.
    pub const fn lose(&mut self) {
        self.state = State::Waiting(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn span(before: u64, last: u64) -> Span {
        Span { before, last }
    }

    /// What is done with each update in turn; a break is not gone on from.
    fn steps(sequence: &mut Sequence, spans: &[(u64, u64)]) -> Vec<Result<Step, Break>> {
        let mut steps = Vec::new();
        for &(before, last) in spans {
            let step = sequence.step(span(before, last));
            step.iter().for_each(|&step| sequence.advance(span(before, last), step));
            steps.push(step);
        }
        steps
    }

    #[test]
    fn updates_wait_for_a_snapshot_that_covers_them() {
        let mut sequence = Sequence::default();
        assert_eq!(steps(&mut sequence, &[(10, 20), (20, 30)]), [Ok(Step::Keep); 2]);
        assert_eq!((sequence.is_known(), sequence.number()), (false, None));
        // What was between it and the first update never came.
        assert_eq!(sequence.snapshot_step(9), SnapshotStep::Drop);
        for number in [10, 15, 20, 25, 30, 99] {
            assert_eq!(sequence.snapshot_step(number), SnapshotStep::Replace);
        }
        sequence.begin(25);
        let again = [(10, 20), (20, 30), (30, 40)];
        assert_eq!(steps(&mut sequence, &again), [Ok(Step::Drop), Ok(Step::Apply), Ok(Step::Apply)]);
        assert_eq!(sequence.number(), Some(40));
        assert_eq!(
            (sequence.snapshot_step(39), sequence.snapshot_step(40)),
            (SnapshotStep::Drop, SnapshotStep::Replace)
        );
    }

    #[test]
    fn what_does_not_follow_is_named() {
        let gap = Err(Break::Gap { last: 20, before: 21 });
        let overlap = Err(Break::Overlap { last: 20, before: 19 });
        let mut waiting = Sequence::default();
        assert_eq!(steps(&mut waiting, &[(10, 20), (21, 30), (19, 30)]), [Ok(Step::Keep), gap, overlap]);
        let mut known = Sequence::default();
        known.begin(15);
        assert_eq!(
            steps(&mut known, &[(10, 20), (21, 30), (19, 30), (10, 20)]),
            [Ok(Step::Apply), gap, overlap, Ok(Step::Drop)]
        );
        // The first after a snapshot may begin before it, but not after it.
        known.begin(15);
        assert_eq!(known.step(span(16, 20)), Err(Break::Gap { last: 15, before: 16 }));
        known.lose();
        assert_eq!(known.step(span(16, 20)), Ok(Step::Keep));
    }

    #[test]
    fn a_snapshot_is_not_far_ahead_of_the_stream() {
        let mut sequence = Sequence::default();
        sequence.begin(1_000_000);
        for number in 0..OLD_MAX {
            assert_eq!(steps(&mut sequence, &[(number, number + 1)]), [Ok(Step::Drop)]);
        }
        assert_eq!(sequence.step(span(5_000, 5_001)), Err(Break::Ahead { number: 1_000_000 }));
        assert_eq!(sequence.step(span(999_999, 1_000_001)), Ok(Step::Apply));
    }
}
