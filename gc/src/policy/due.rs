//! Which generations are due, for a program that chooses its own moments.

use crate::segments::generation::GENERATIONS;

/// How near a generation is to being due. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nearness {
    /// What is new in the generation: what fills took since it was last collected, less what buffers returned unused.
    pub new: usize,
    /// How much has to be new for it to be due: at least one byte.
    pub due_at: usize,
}

impl Nearness {
    /// With at least one byte for `due_at`.
    pub(crate) fn new(new: usize, due_at: usize) -> Self {
        Self { new, due_at: due_at.max(1) }
    }

    /// Whether the generation is due.
    #[must_use]
    pub const fn is_due(self) -> bool {
        self.new >= self.due_at
    }

    /// How much may be allocated before it is due: zero if it is.
    #[must_use]
    pub const fn left(self) -> usize {
        self.due_at.saturating_sub(self.new)
    }

    /// What is new as a part of what makes it due, in thousandths: a thousand or more if it is due.
    #[must_use]
    pub fn thousandths(self) -> usize {
        let part = (self.new as u128 * 1000).checked_div(self.due_at as u128);
        part.and_then(|part| usize::try_from(part).ok()).unwrap_or(usize::MAX)
    }
}

/// Which generations are due, and how near the others are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Due {
    /// Each generation by itself, the youngest first. What a class allocates in is in
    /// [`Policy::generations`](crate::Policy::generations).
    pub generations: [Nearness; GENERATIONS],
    /// The whole heap while a collection of it is in [steps](crate::Heap::step): what is new in all generations, and
    /// how much makes the last one due. Then none of young generations begins by itself, and one of the whole heap when
    /// this is due.
    pub in_steps: Option<Nearness>,
}

impl Due {
    /// What a collection that is due is of, for [`Heap::collect_up_to`](crate::Heap::collect_up_to): the oldest generation
    /// that is due. `None` if none is.
    #[must_use]
    pub fn oldest(&self) -> Option<usize> {
        match self.in_steps {
            Some(whole) => whole.is_due().then_some(GENERATIONS - 1),
            None => self.generations.iter().rposition(|generation| generation.is_due()),
        }
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_nearness_of_a_generation_does_not_overflow() {
        let near = Nearness::new(750, 1000);
        assert_eq!((near.is_due(), near.left(), near.thousandths()), (false, 250, 750));
        let due = Nearness::new(1001, 1000);
        assert_eq!((due.is_due(), due.left(), due.thousandths()), (true, 0, 1001));
        let never = Nearness::new(usize::MAX - 1, usize::MAX);
        assert_eq!((never.is_due(), never.left(), never.thousandths()), (false, 1, 999));
        // With a capacity of zero each fill makes it due, and nothing else.
        let (none, some) = (Nearness::new(0, 0), Nearness::new(usize::MAX, 0));
        assert_eq!((none.is_due(), none.left(), none.thousandths()), (false, 1, 0));
        assert_eq!((some.is_due(), some.left(), some.thousandths()), (true, 0, usize::MAX));
    }
}
