//! Walking the memory of a pool, whatever its class (MPS: pool walk).

use crate::aver;
use crate::traits::arena::Arena;
use crate::traits::block::Block;
use crate::traits::pool::PoolClass;
use crate::values::addr::Addr;

/// How a part of a pool's memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It could be allocated.
    Free,
    /// It is in objects, in buffers or in caches, or the pool uses it itself.
    Live,
}

/// Calls `visit` with all memory of a pool, in the order of addresses: free blocks, and the live
/// memory between them. Neighbouring live objects are shown as one block, because the classes
/// here keep no header for each object.
///
/// The pool is locked meanwhile: `visit` may not call it. Tracts that the pool gets
/// while it is walked may or may not be shown.
pub fn walk<P: PoolClass>(pool: &P, mut visit: impl FnMut(Block, Use)) {
    let mut tracts = Tracts::of(pool);
    pool.walk_free(&mut |free| {
        tracts.show_live_before(free.range().base(), &mut visit);
        visit(free, Use::Free);
        tracts.skip_to(free.range().limit());
    });
    tracts.show_live_before(Addr::new(usize::MAX), &mut visit);
}

/// The tracts of a pool that are still to be shown.
struct Tracts<'pool, P: PoolClass> {
    pool: &'pool P,
    rest: Option<Block>,
}

impl<'pool, P: PoolClass> Tracts<'pool, P> {
    fn of(pool: &'pool P) -> Self {
        let mut tracts = Self { pool, rest: None };
        tracts.rest = tracts.after(Addr::ZERO);
        tracts
    }

    fn after(&self, from: Addr) -> Option<Block> {
        let header = self.pool.header();
        header.arena().next_tracts(header.id(), from)
    }

    /// Shows what lies before `limit` as live.
    fn show_live_before(&mut self, limit: Addr, visit: &mut impl FnMut(Block, Use)) {
        while let Some(rest) = self.rest.filter(|rest| rest.range().base() < limit) {
            let size = rest.size().min(limit.get() - rest.range().base().get());
            let Some((live, _)) = rest.split_at(size) else {
                aver!(false, "{rest:?} has no first {size} bytes");
                return;
            };
            visit(live, Use::Live);
            self.skip_to(live.range().limit());
        }
    }

    /// Skips what lies before `from`.
    fn skip_to(&mut self, from: Addr) {
        let Some(rest) = self.rest else { return };
        let passed = from.get().saturating_sub(rest.range().base().get());
        self.rest = match rest.split_at(passed) {
            Some((_, left)) if left.size() != 0 => Some(left),
            _ => self.after(rest.range().limit()),
        };
    }
}
