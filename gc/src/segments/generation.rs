//! Generations: how many collections objects have survived, as far as it matters.

use crate::segments::card::{CLEAN, WRITTEN};

/// How many generations there are: in a class that moves objects they are allocated in generation 0, and those that a
/// collection of generation `g` keeps are in generation `g + 1` afterwards. Those of the last one stay there, and so do
/// all objects of other classes. See [`Policy::generations`](crate::Policy::generations).
pub const GENERATIONS: usize = 3;

/// The number of a generation: zero is the youngest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(u8);

impl Generation {
    /// Where mutators allocate in classes that move objects.
    pub(crate) const YOUNGEST: Self = Self(0);
    /// Where objects stay.
    pub(crate) const LAST: Self = Self(GENERATIONS as u8 - 1);

    /// All of them, the youngest first.
    pub(crate) fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..GENERATIONS as u8).map(Self)
    }

    /// What `each` returns for them, the youngest first.
    pub(crate) fn array<T>(mut each: impl FnMut(Self) -> T) -> [T; GENERATIONS] {
        core::array::from_fn(|number| each(Self::at_most(number)))
    }

    /// The one with this number, or the last.
    pub(crate) const fn at_most(number: usize) -> Self {
        if number < GENERATIONS { Self(number as u8) } else { Self::LAST }
    }

    /// Where the objects go that a collection of this one keeps.
    pub(crate) const fn next(self) -> Self {
        Self::at_most(self.index() + 1)
    }

    /// Its number: zero is the youngest.
    pub(crate) const fn number(self) -> u8 {
        self.0
    }

    /// Its number, for arrays. The compiler knows by the compare that they have it, so no lookup has a panic.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        if (self.0 as usize) < GENERATIONS { self.0 as usize } else { GENERATIONS - 1 }
    }

    /// The youngest that objects on a card refer to: the last if it is clean.
    pub(crate) const fn of_card(card: u8) -> Self {
        Self::at_most((card as usize).saturating_sub(1))
    }

    /// What a card has whose objects refer to this generation, and to none that is younger.
    pub(crate) const fn card(self) -> u8 {
        self.0 + 1
    }
}

// A card has a value for each generation, and two more.
const _: () = assert!(GENERATIONS >= 1 && GENERATIONS < (CLEAN - WRITTEN) as usize);
