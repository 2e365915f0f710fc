//! Reference ranks (MPS: manual, "rank").

use bitflags::bitflags;

bitflags! {
    /// Which kinds of reference the objects of a pool or buffer may hold.
    ///
    /// Nothing traces the references in manual pools: their set is empty, and a
    /// buffer with an empty set is never flipped.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct RankSet: u8 {
        /// Ambiguous references: their objects may not move.
        const AMBIGUOUS = 1 << 0;
        /// Exact references.
        const EXACT = 1 << 1;
        /// References that keep nothing alive, and are notified when their object dies.
        const FINAL = 1 << 2;
        /// References that keep nothing alive.
        const WEAK = 1 << 3;
    }
}
