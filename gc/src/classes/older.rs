//! What older objects refer to, found by their cards (design/gc-generations.md `.card`).

use tripoint_core::{Arena, RankSet};

use crate::classes::pool::Pool;
use crate::classes::pool_generation::PoolGeneration;
use crate::scans::format::Format;
use crate::scans::scan::{Pass, Scan};
use crate::segments::card::{CLEAN, WRITTEN};
use crate::segments::finder::Finder;
use crate::segments::generation::Generation;
use crate::segments::segment::SegmentPtr;
use crate::segments::writes::Writes;

/// Which cards are looked at, and how.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// Cards that have at most this value.
    most: u8,
    /// Whether all count as written, because nothing says which were.
    is_all: bool,
    /// Whether their objects are scanned for the last time in this collection.
    is_last: bool,
}

impl<A: Arena, F: Format> Pool<A, F> {
    /// Scans the objects of generations above `oldest` that may refer to those up to it. Returns how many cards were
    /// looked at. For objects with weak references it is called again in the passes in which these are fixed: their cards
    /// stay as they are until the last.
    ///
    /// # Safety
    /// - The generations up to `oldest` are condemned.
    pub(crate) unsafe fn scan_by_cards(&self, oldest: Generation, pass: Pass, scan: &mut Scan<'_>) -> usize {
        let has_weak = self.ranks.contains(RankSet::WEAK);
        if self.ranks.is_empty() || (pass != Pass::Objects && !has_weak) {
            return 0;
        }
        let look = Look {
            most: oldest.card(),
            is_all: self.state.lock().writes == Writes::Unknown,
            is_last: pass == Pass::Weak || !has_weak,
        };
        let mut looked = 0;
        for generation in Generation::all().filter(|generation| *generation > oldest) {
            // The lock is not held meanwhile: objects are copied.
            let first = self.state.lock().of(generation).segments;
            PoolGeneration::for_each(first, |segment| {
                // SAFETY: the segment is of this pool and not condemned.
                looked += unsafe { self.scan_cards(segment, look, pass, scan) };
            });
        }
        looked
    }

    /// In a pass for weak references: scans the objects once more that were reached, and those above `oldest` that may
    /// refer to condemned ones.
    ///
    /// # Safety
    /// - The generations up to `oldest` are condemned, and no object is grey.
    pub(crate) unsafe fn scan_reached(&self, oldest: Generation, pass: Pass, scan: &mut Scan<'_>) {
        for generation in Generation::all().filter(|generation| *generation <= oldest) {
            let first = self.state.lock().of(generation).segments;
            PoolGeneration::for_each(first, |segment| {
                let limit = segment.get().limit();
                let mut from = segment.get().payload();
                while from < limit
                    && let Some(object) = segment.first_reached(from)
                {
                    from = self.end_of(segment, object);
                    // SAFETY: this is an object.
                    unsafe { self.scan_one_weakly(segment, object, from, scan) };
                }
            });
        }
        // SAFETY: the caller promises that these generations are condemned.
        unsafe { self.scan_by_cards(oldest, pass, scan) };
    }

    /// Scans the objects of a segment that may refer to condemned ones.
    ///
    /// # Safety
    /// - The segment is of this pool and not condemned.
    unsafe fn scan_cards(&self, segment: SegmentPtr, look: Look, pass: Pass, scan: &mut Scan<'_>) -> usize {
        let most = if look.is_all { u8::MAX } else { look.most };
        let (mut looked, mut next) = (0, 0);
        let mut objects = Finder::new(segment);
        // No object in front of this has to be scanned again.
        let mut done = segment.get().payload();
        while let Some((card, value)) = segment.next_card(next, most) {
            (looked, next) = (looked + 1, card + 1);
            let (base, limit) = segment.place_of_card(card);
            if look.is_last {
                segment.set_card(card, CLEAN);
            }
            let is_written = look.is_all || value == WRITTEN;
            let around = if is_written && done <= base { objects.around(base) } else { None };
            let around = around.filter(|begin| self.end_of(segment, *begin) > base);
            let mut object = around.or_else(|| objects.next(base.max(done)));
            while let Some(begin) = object.filter(|begin| *begin < limit) {
                let end = self.end_of(segment, begin);
                if pass != Pass::Objects {
                    // SAFETY: this is an object of the pool.
                    unsafe { self.scan_one_weakly(segment, begin, end, scan) };
                } else {
                    // SAFETY: this is an object of the pool.
                    unsafe { self.scan_one(segment, begin, end, scan) };
                }
                done = end;
                object = objects.after(begin, end);
            }
        }
        looked
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use core::alloc::Layout;
    use core::ptr::{self, NonNull};
    use core::time::Duration;
    use std::boxed::Box;

    use tripoint_ap::AllocationPoint;
    use tripoint_core::{Addr, Block, BufferKind, ClientArena, ClientArenaOptions};

    use super::*;
    use crate::classes::class::{Swept, SweptOptions, Traced};
    use crate::collect::steps::Step;
    use crate::heaps::heap::{Heap, HeapOptions};
    use crate::heaps::mutator_buffer::MutatorBuffer;
    use crate::segments::card::CARD_SIZE;
    use crate::segments::marks::tests::loads;

    /// Objects without references, of 512 bytes, whose mutators note what they write.
    struct Numbers;

    // SAFETY: all objects have this size, and no references.
    unsafe impl Format for Numbers {
        unsafe fn skip(&self, _object: NonNull<u8>) -> usize {
            CARD_SIZE
        }

        fn notes_writes(&self) -> bool {
            true
        }

        unsafe fn scan(&self, _objects: Block, _scan: &mut Scan<'_>) {}
    }

    /// The words of bits of a segment of `segment_size` bytes that has one object, at its end; and how many are looked at by a
    /// collection of the nursery, and by a whole one in steps, each after all cards of the segment were written.
    fn looked_at(segment_size: usize) -> [usize; 3] {
        let mut memory = Box::new_uninit_slice(4 * segment_size);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let heap = Heap::create(&arena, HeapOptions::default()).unwrap();
        let pool: Swept<'_, _, _, _, Traced> =
            Swept::create(&heap, Numbers, SweptOptions { segment_size }).unwrap();
        let mut mutator = heap.register().unwrap();
        // SAFETY: this thread has the mutator, and uses the point only while it runs.
        let attend = |buffer: &MutatorBuffer| unsafe { buffer.attend(&mutator) };
        let mut point = AllocationPoint::create_in(&pool, BufferKind::Mutator, (), attend).unwrap();
        let layout = Layout::from_size_align(CARD_SIZE, size_of::<usize>()).unwrap();
        let mut last = ptr::null_mut();
        for _ in 0..segment_size / CARD_SIZE - 40 {
            let reservation = point.reserve(layout).unwrap();
            // SAFETY: these objects need not be written.
            last = unsafe { reservation.commit() }.unwrap().as_ptr();
        }
        drop(point);
        let mut kept = [last.addr()];
        // SAFETY: the word stays in place and is only read from here on, and outlives the root.
        let root = unsafe { heap.root_ambiguous(NonNull::from(&mut kept).cast(), 1) }.unwrap();
        mutator.collect(Duration::MAX).unwrap();
        let segment = pool.pool().segment_of(Addr::of(last));
        assert_eq!(
            segment.first_object(segment.get().payload()),
            Some(Addr::of(last)),
            "all others are dead"
        );
        let write_all = || segment.note_writes(segment.get().payload(), segment.get().limit());
        write_all();
        let before = loads();
        mutator.collect_up_to(0, Duration::MAX).unwrap();
        let young = loads() - before;
        write_all();
        let before = loads();
        while !matches!(mutator.step(Duration::MAX, || true).unwrap(), Step::Done(_)) {}
        let in_steps = loads() - before;
        drop(root);
        [segment.get().words(), young, in_steps]
    }

    /// What lies between two objects is searched once, however many cards of it were written.
    #[test]
    fn cards_without_objects_are_not_searched_one_by_one() {
        for segment_size in [64 << 10, if cfg!(miri) { 64 << 10 } else { 1 << 20 }] {
            let [words, young, in_steps] = looked_at(segment_size);
            assert!(young <= 4 * words, "{young} looks at {words} words");
            assert!(in_steps <= 20 * words, "{in_steps} looks at {words} words, in steps");
        }
    }
}
