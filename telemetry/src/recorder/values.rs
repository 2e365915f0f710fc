//! What is written of the fields of an event, by their types
//! ([design/telemetry.md `.kinds`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::{Addr, AddrRange, BufferKind, Collected, Error, PoolId, PoolOptions, RankSet, StepTime};

/// A field that is one word.
pub(super) trait Word: Copy {
    fn word(self) -> u64;
}

impl Word for u64 {
    #[inline(always)]
    fn word(self) -> u64 {
        self
    }
}

impl Word for u32 {
    #[inline(always)]
    fn word(self) -> u64 {
        u64::from(self)
    }
}

impl Word for usize {
    #[inline(always)]
    fn word(self) -> u64 {
        self as u64
    }
}

impl Word for Addr {
    #[inline(always)]
    fn word(self) -> u64 {
        self.get() as u64
    }
}

impl Word for PoolId {
    #[inline(always)]
    fn word(self) -> u64 {
        u64::from(self.get())
    }
}

/// Zero for none.
impl Word for Option<PoolId> {
    #[inline(always)]
    fn word(self) -> u64 {
        self.map_or(0, PoolId::word)
    }
}

impl Word for RankSet {
    #[inline(always)]
    fn word(self) -> u64 {
        u64::from(self.bits())
    }
}

/// A field that is several words: the `parts` of the table.
pub(super) trait Parts<const WORDS: usize>: Copy {
    fn parts(self) -> [u64; WORDS];
}

impl Parts<2> for AddrRange {
    fn parts(self) -> [u64; 2] {
        [self.base().word(), self.size().word()]
    }
}

impl Parts<{ PoolOptions::MAX }> for PoolOptions {
    fn parts(self) -> [u64; PoolOptions::MAX] {
        self.values().map(usize::word)
    }
}

/// Whether there is something, and what was kept and freed.
impl Parts<3> for Option<Collected> {
    fn parts(self) -> [u64; 3] {
        self.map_or([0; 3], |Collected { kept, freed }| [1, kept.word(), freed.word()])
    }
}

/// The times allowed and taken in ns; [`u64::MAX`] for none.
impl Parts<2> for Option<StepTime> {
    fn parts(self) -> [u64; 2] {
        self.map_or([u64::MAX; 2], |time| [time.allowed_ns(), time.taken_ns()])
    }
}

/// A field that is a text, which is empty for none.
pub(super) trait Text: Copy {
    fn text(self) -> &'static str;
}

impl Text for &'static str {
    #[inline(always)]
    fn text(self) -> &'static str {
        self
    }
}

impl Text for Option<&'static str> {
    #[inline(always)]
    fn text(self) -> &'static str {
        self.unwrap_or("")
    }
}

impl Text for Error {
    fn text(self) -> &'static str {
        self.name()
    }
}

impl Text for BufferKind {
    fn text(self) -> &'static str {
        match self {
            Self::Mutator => "mutator",
            Self::Internal => "internal",
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn a_step_without_a_clock_or_a_limit_is_written_as_such() {
        assert_eq!((None::<Collected>.parts(), None::<StepTime>.parts()), ([0; 3], [u64::MAX; 2]));
        assert_eq!(Some(Collected { kept: 5, freed: 6 }).parts(), [1, 5, 6]);
        let time = |allowed| Some(StepTime { allowed, taken: Duration::from_nanos(7) });
        assert_eq!(time(Duration::MAX).parts(), [u64::MAX, 7]);
        assert_eq!(time(Duration::ZERO).parts(), [0, 7]);
    }
}
