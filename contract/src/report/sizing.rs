//! Sizing advice: what would have sufficed at Init.

use core::fmt;

use tripoint_core::{Arena, PoolSizes};

use tripoint_core::internal::Json;

/// The most bytes that an arena and its pools ever had, and how large to make them at Init so that
/// the warm-up does not grow them.
#[derive(Clone, Copy, Debug)]
pub struct Sizing<'a> {
    committed: usize,
    own: usize,
    grain: usize,
    pools: &'a [(&'a str, PoolSizes)],
}

impl<'a> Sizing<'a> {
    /// Reads an arena's high-water mark, and takes those of its pools by name. Call it at the end of
    /// the warm-up.
    pub fn of(arena: &dyn Arena, pools: &'a [(&'a str, PoolSizes)]) -> Self {
        let sizes = arena.sizes();
        Self { committed: sizes.committed_high_water, own: sizes.own, grain: arena.grain(), pools }
    }

    /// The least commit limit, in bytes, that the arena needs.
    #[must_use]
    pub const fn commit_limit(&self) -> usize {
        self.committed
    }

    /// How many bytes of that are tracts: prefault them at Init.
    #[must_use]
    pub const fn prefault(&self) -> usize {
        self.committed.saturating_sub(self.own).next_multiple_of(self.grain)
    }

    /// By how many bytes to extend each pool at Init, by name.
    pub fn pools(&self) -> impl Iterator<Item = (&'a str, usize)> {
        self.pools.iter().map(|(name, sizes)| (*name, sizes.high_water))
    }

    pub(crate) fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.object(|json| {
            json.number("commit_limit", self.commit_limit())?;
            json.number("prefault", self.prefault())?;
            json.name("pools")?;
            json.array(&mut self.pools(), |json, (name, size)| {
                json.object(|json| {
                    json.text("name", name)?;
                    json.number("extend", size)
                })
            })
        })
    }
}

impl fmt::Display for Sizing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  commit limit at least {} bytes", self.commit_limit())?;
        writeln!(f, "  prefault {} bytes", self.prefault())?;
        self.pools().try_for_each(|(name, size)| writeln!(f, "  extend pool {name} by {size} bytes"))
    }
}
