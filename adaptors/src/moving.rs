//! How an object moves to where it has the room that it needs.

use core::ptr::NonNull;

use tripoint_core::{Addr, AddrRange, Store};

/// The least object whose memory goes back to the system as it is copied. Smaller ones stay warm for what is allocated
/// next ([design/adaptors.md `.allocator.move`](crate::design::adaptors)).
pub(crate) const LARGE: usize = 32 << 20;
/// How much of a large object is copied at a time: a huge page, which some arenas return only as a whole.
const PIECE: usize = 2 << 20;

/// Copies the first bytes of an object to another one. Of a large one that memory is returned to the system piece by piece,
/// if the arena can do that, so that the two never have the memory of both.
///
/// # Safety
/// - `from` is valid for reads, and `to` for writes, of `size` bytes, which do not overlap. All of them lie in one object
///   of the store each.
/// - Nothing else uses either meanwhile, and the bytes of the first are not needed any more.
pub(crate) unsafe fn move_bytes<S: Store>(store: &S, from: NonNull<u8>, to: NonNull<u8>, size: usize) {
    let mut moved = 0;
    if size >= LARGE
        && let Some(arena) = store.arena()
    {
        // What is returned ends between two pages, and so before what is copied.
        let mut returned = Addr::of(from.as_ptr());
        while size - moved > PIECE {
            // SAFETY: both have more than that many bytes, which do not overlap.
            unsafe { from.add(moved).copy_to_nonoverlapping(to.add(moved), PIECE) };
            moved += PIECE;
            let copied = AddrRange::new(returned, Addr::new(from.addr().get() + moved));
            // SAFETY: bytes of an object of the store, and so of a pool of the arena, which nothing else uses. They are
            // copied, and not needed any more.
            match copied.and_then(|copied| unsafe { arena.discard(copied) }) {
                Some(part) => returned = part.limit(),
                // In one piece alone there may be no whole huge page.
                None if moved < 2 * PIECE => {}
                None => break,
            }
        }
    }
    // SAFETY: what is left of both, which do not overlap.
    unsafe { from.add(moved).copy_to_nonoverlapping(to.add(moved), size - moved) };
}
