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
    /// What the system allows, and whether the arena's commit limit is above that.
    memory_limit: Option<(usize, bool)>,
    pools: &'a [(&'a str, PoolSizes)],
}

impl<'a> Sizing<'a> {
    /// Reads an arena's high-water mark, and takes those of its pools by name. Call it at the end of
    /// the warm-up.
    pub fn of(arena: &dyn Arena, pools: &'a [(&'a str, PoolSizes)]) -> Self {
        let sizes = arena.sizes();
        let memory_limit = arena.memory_limit().map(|limit| (limit, sizes.commit_limit > limit));
        let (committed, own, grain) = (sizes.committed_high_water, sizes.own, arena.grain());
        Self { committed, own, grain, memory_limit, pools }
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

    /// The most memory, in bytes, that the system allows the process and those that it shares a limit with, as
    /// containers do; `None` if there is no limit that the arena knows of.
    #[must_use]
    pub fn memory_limit(&self) -> Option<usize> {
        self.memory_limit.map(|(limit, _)| limit)
    }

    /// By how many bytes to extend each pool at Init, by name.
    pub fn pools(&self) -> impl Iterator<Item = (&'a str, usize)> {
        self.pools.iter().map(|(name, sizes)| (*name, sizes.high_water))
    }

    pub(crate) fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.object(|json| {
            json.number("commit_limit", self.commit_limit())?;
            json.number("prefault", self.prefault())?;
            if let Some(limit) = self.memory_limit() {
                json.number("memory_limit", limit)?;
            }
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
        match self.memory_limit {
            Some((limit, true)) => {
                writeln!(f, "  commit limit below {limit} bytes, which the system allows")?
            }
            Some((limit, false)) => writeln!(f, "  the system allows {limit} bytes")?,
            None => {}
        }
        writeln!(f, "  prefault {} bytes", self.prefault())?;
        self.pools().try_for_each(|(name, size)| writeln!(f, "  extend pool {name} by {size} bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};

    #[test]
    fn what_the_system_allows_is_said_if_it_is_known() {
        let texts = |memory_limit| {
            let sizing = Sizing { committed: 300, own: 100, grain: 64, memory_limit, pools: &[] };
            let mut json = String::new();
            sizing.write_json(&mut Json::new(&mut json)).unwrap();
            (sizing.to_string(), json)
        };
        let (text, json) = texts(None);
        assert_eq!(text, "  commit limit at least 300 bytes\n  prefault 256 bytes\n");
        assert_eq!(json, r#"{"commit_limit":300,"prefault":256,"pools":[]}"#);
        let (text, json) = texts(Some((500, true)));
        assert!(text.contains("  commit limit below 500 bytes, which the system allows\n"), "{text}");
        assert!(json.contains(r#""memory_limit":500,"#), "{json}");
        assert!(texts(Some((500, false))).0.contains("  the system allows 500 bytes\n"));
    }
}
