//! The homes that take part in a comparison (design/exchange.md `.compare.homes`).

use core::fmt;

/// A home that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Entrant {
    /// An array with a list of free places, written by hand; its memory is untouched at first.
    Hand,
    /// The array with a list of free places, touched beforehand.
    HandTouched,
    /// The array with a list of free places, touched beforehand, on huge pages.
    HandHuge,
    /// Places that are known beforehand: no allocator at all.
    Known,
    /// An Mfs through an MfsCache.
    Pools,
    /// An Mfs through an MfsCache, in an arena that is prefaulted.
    PoolsPrefault,
    /// An Mfs through an MfsCache, in an arena that is prefaulted, on huge pages.
    PoolsHuge,
    /// An Mfs through an MfsCache, trimmed each night.
    PoolsTrimmed,
    /// An Mfs through an allocation point.
    Point,
    /// An Mfs without a lock, directly.
    Owned,
    /// The allocator of the system.
    System,
    /// The crate slab.
    #[cfg(feature = "slab")]
    Slab,
    /// The allocator mimalloc.
    #[cfg(feature = "mimalloc")]
    Mimalloc,
    /// The allocator jemalloc.
    #[cfg(feature = "jemalloc")]
    Jemalloc,
    /// The allocator snmalloc.
    #[cfg(feature = "snmalloc")]
    Snmalloc,
}

/// All entrants.
pub fn all() -> &'static [Entrant] {
    use clap::ValueEnum;
    Entrant::value_variants()
}

impl Entrant {
    /// What it is, in one line.
    pub fn about(self) -> String {
        use clap::ValueEnum;
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }
}

impl fmt::Display for Entrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use clap::ValueEnum;
        self.to_possible_value().map_or(Ok(()), |value| f.pad(value.get_name()))
    }
}
