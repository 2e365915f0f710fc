//! The options of a pool, as its event has them.

#![forbid(unsafe_code)]

/// The options that a pool was created with, as numbers: those of its class, in the order in which the class declares
/// them. `Mfs` has the size and the alignment of its units first. What a class does not have is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions([usize; Self::MAX]);

impl PoolOptions {
    /// How many options a class can have.
    pub const MAX: usize = 5;

    /// The options of a class that has none.
    pub const NONE: Self = Self([0; Self::MAX]);

    /// The options of a class that has `COUNT` of them, at most [`PoolOptions::MAX`].
    #[must_use]
    pub const fn new<const COUNT: usize>(options: [usize; COUNT]) -> Self {
        const { assert!(COUNT <= Self::MAX, "a class has more options than an event has room for") };
        let (mut all, mut at) = ([0; Self::MAX], 0);
        while at < COUNT {
            all[at] = options[at];
            at += 1;
        }
        Self(all)
    }

    /// The options, in the order in which the class declares them.
    #[must_use]
    pub const fn values(self) -> [usize; Self::MAX] {
        self.0
    }
}
