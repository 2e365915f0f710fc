//! Options for a pool of packets.

#![forbid(unsafe_code)]

/// Options for a [`PacketPool`](crate::PacketPool).
#[derive(Clone, Copy, Debug)]
pub struct PacketPoolOptions {
    /// The number of units, all of which the pool takes from its arena when it is created: at least one.
    /// Default: 4096.
    pub count: u32,
    /// The bytes at the front of each unit that are left free, for headers that are put in front of the data
    /// later. Default: 0.
    pub headroom: u32,
    /// How many caches there may be at once. Default: 4.
    pub caches: u32,
    /// How many units a cache keeps at most: at least one. Default: 256.
    pub cache_size: u32,
}

impl Default for PacketPoolOptions {
    fn default() -> Self {
        Self { count: 4096, headroom: 0, caches: 4, cache_size: 256 }
    }
}
