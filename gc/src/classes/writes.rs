//! Writes of mutators that know what they write in.

use core::ptr;

use tripoint_core::{Addr, Arena, BarrierPair};

use crate::classes::class::{Kind, Swept};
use crate::heaps::mutator::Mutator;
use crate::scans::format::Format;
use crate::segments::barrier;

impl<'h, A: Arena, B: BarrierPair, F: Format, K: Kind<F>> Swept<'h, A, B, F, K> {
    /// Notes that a reference was stored at `place`, in an object of this pool that was committed before. The next
    /// collection of young generations then looks at the objects near it. Takes a look at the tract table and a store
    /// of a byte.
    ///
    /// Call it after each such store, before the mutator next gives way, if the format [promises
    /// that](Format::notes_writes). For other formats it has no effect. It need not be called for objects that were not
    /// committed when they were written, for references that are null or lead to no object of the heap, and in pools
    /// without references.
    ///
    /// Nothing is noted if `place` is not in this pool, or if the mutator is one of another heap.
    #[inline]
    pub fn note_write(&self, mutator: &mut Mutator<'h, A, B>, place: *const u8) {
        if ptr::eq(mutator.heap(), self.heap()) {
            // SAFETY: a mutator that is borrowed exclusively runs: only its owner has it give way, which it cannot
            // meanwhile, and only its owner uses its points (`MutatorBuffer::attend`). This pool is automatic, and exists.
            unsafe {
                barrier::note_write(self.heap().arena(), Addr::of(place), |pool| pool == self.id());
            }
        }
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use core::alloc::Layout;
    use core::ptr::NonNull;
    use std::boxed::Box;

    use tripoint_ap::AllocationPoint;
    use tripoint_core::{Block, BufferKind, ClientArena, ClientArenaOptions};

    use super::*;
    use crate::classes::class::{Leaf, Moved, SweptOptions, Traced};
    use crate::heaps::heap::{Heap, HeapOptions};
    use crate::heaps::mutator_buffer::MutatorBuffer;
    use crate::scans::format::MovableFormat;
    use crate::scans::scan::Scan;
    use crate::segments::card::{CARD_SIZE, CLEAN, WRITTEN};

    /// Objects without references, as long as a card.
    struct Numbers;

    // SAFETY: all objects have this size, and no references.
    unsafe impl Format for Numbers {
        unsafe fn skip(&self, _object: NonNull<u8>) -> usize {
            CARD_SIZE
        }

        unsafe fn scan(&self, _objects: Block, _scan: &mut Scan<'_>) {}
    }

    // SAFETY: nothing in an object depends on its address.
    unsafe impl MovableFormat for Numbers {}

    /// What the cards have on which some objects begin: after their commit, and after a write in one of them by a
    /// mutator of the heap, and one by a mutator of another heap.
    fn cards<K: Kind<Numbers>>() -> [[u8; 6]; 3] {
        let mut memory = Box::new_uninit_slice(64 << 10);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let [heap, other] = [0, 1].map(|_| Heap::create(&arena, HeapOptions::default()).unwrap());
        let pool: Swept<'_, _, _, _, K> =
            Swept::create(&heap, Numbers, SweptOptions { segment_size: 8 << 10 }).unwrap();
        let (mut mutator, mut stranger) = (heap.register().unwrap(), other.register().unwrap());
        // SAFETY: this thread has the mutator, and uses the point only while it runs.
        let attend = |buffer: &MutatorBuffer| unsafe { buffer.attend(&mutator) };
        let mut point = AllocationPoint::create_in(&pool, BufferKind::Mutator, (), attend).unwrap();
        let layout = Layout::from_size_align(CARD_SIZE, size_of::<usize>()).unwrap();
        let objects = [(); 6].map(|()| {
            let reservation = point.reserve(layout).unwrap();
            // SAFETY: these objects need not be written.
            unsafe { reservation.commit() }.unwrap().as_ptr()
        });
        point.empty();
        let look =
            || objects.map(|object| pool.pool().segment_of(Addr::of(object)).card_at(Addr::of(object)));
        let committed = look();
        objects.iter().for_each(|object| pool.pool().segment_of(Addr::of(*object)).clean_cards());
        pool.note_write(&mut mutator, objects[2].wrapping_add(CARD_SIZE - 1));
        pool.note_write(&mut mutator, core::ptr::null());
        pool.note_write(&mut mutator, (&raw const pool).cast());
        let noted = look();
        pool.note_write(&mut stranger, objects[4]);
        [committed, noted, look()]
    }

    #[test]
    fn what_mutators_wrote_is_on_cards() {
        // Each object ends on the card on which the next begins.
        let (none, all, fourth) = ([CLEAN; 6], [WRITTEN; 6], [CLEAN, CLEAN, CLEAN, WRITTEN, CLEAN, CLEAN]);
        assert_eq!(cards::<Traced>(), [all, fourth, fourth]);
        assert_eq!(cards::<Moved>(), [none, fourth, fourth], "the youngest generation is always looked at");
        assert_eq!(cards::<Leaf>()[0], none, "there are no references");
    }
}
