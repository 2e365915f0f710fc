//! The parts of the day of a comparison (design/exchange.md `.compare.phases`); the table in `compare` says what happens in each.

/// A part of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Open,
    Steady,
    Down,
    Burst,
    Back,
    Night,
    Morning,
    Second,
    Noisy,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Self; 9] = [
        Self::Open,
        Self::Steady,
        Self::Down,
        Self::Burst,
        Self::Back,
        Self::Night,
        Self::Morning,
        Self::Second,
        Self::Noisy,
    ];

    /// Those of a brief comparison.
    pub const BRIEF: [Self; 2] = [Self::Open, Self::Steady];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Steady => "steady",
            Self::Down => "down",
            Self::Burst => "burst",
            Self::Back => "back",
            Self::Night => "night",
            Self::Morning => "morning",
            Self::Second => "second",
            Self::Noisy => "noisy",
        }
    }

    /// How many orders should live all day, of that many at most.
    pub(super) const fn target(self, live: usize) -> usize {
        match self {
            Self::Open | Self::Steady | Self::Burst | Self::Morning | Self::Second | Self::Noisy => live,
            Self::Down | Self::Back => live / 10,
            Self::Night => 0,
        }
    }

    /// Whether it lasts a number of chunks, and not until the books have their size.
    pub(super) const fn is_steady(self) -> bool {
        matches!(self, Self::Steady | Self::Second | Self::Noisy)
    }
}
