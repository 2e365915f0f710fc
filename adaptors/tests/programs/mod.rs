//! Ten programs like those that people write, with all their data in one pool.
//! Each compares its result with that of the same work done with the standard
//! library.

pub(crate) mod graph;
pub(crate) mod hash_map_churn;
pub(crate) mod interning;
pub(crate) mod json_tree;
pub(crate) mod lru_cache;
pub(crate) mod matching_engine;
pub(crate) mod simulation;
pub(crate) mod sparse_matrix;
pub(crate) mod syntax_tree;
pub(crate) mod undo_history;

use allocator_api2::vec::Vec as VecIn;
use tripoint_adaptors::PoolAllocator;

pub(crate) type PoolVec<'p, T, P> = VecIn<T, PoolAllocator<'p, P>>;
pub(crate) type PoolMap<'p, K, V, P> =
    hashbrown::HashMap<K, V, hashbrown::DefaultHashBuilder, PoolAllocator<'p, P>>;

/// Numbers that look random and are the same every time.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // Knuth's MMIX generator; its high bits are the good ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
