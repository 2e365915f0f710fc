//! Collections of pools whose objects do not move, and of threads that build in any pools (design/gc.md).

use core::alloc::Layout;
use core::cell::Cell;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;

use crate::common::{
    AtWork, Nodes, Raise, Slots, WORD, layout, make, name, point, pool, reference, with_heap, write,
};
use tripoint_ap::AllocationPoint;
use tripoint_core::{Align, Arena, Block, BufferKind, Check, CheckLevel, Describe, Error, PoolClass};
use tripoint_gc::{
    Format, Kind, Leaf, Lo, Moved, MovedLeaf, MutatorBuffer, Postponed, Scan, Swept, SweptOptions, Tag,
    Traced,
};

const ALL: Duration = Duration::MAX;

#[test]
fn what_a_root_leads_to_is_kept_and_the_rest_is_freed() {
    with_heap(256 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<2>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let root = unsafe { heap.root_table(slots.base(), 2, Tag::default()) }.unwrap();
        let leaf = make(&mut point, 1, &[]).unwrap();
        let node = make(&mut point, 2, &[leaf, ptr::null_mut()]).unwrap();
        make(&mut point, 3, &[node]).unwrap();
        slots.set(0, node);
        point.empty();
        let first = mutator.collect(ALL).unwrap();
        assert_eq!((first.kept, first.freed, first.references), (6 * WORD, 3 * WORD, 4));
        // SAFETY: both nodes were kept.
        assert_eq!(unsafe { (name(node), name(reference(node, 0))) }, (2, 1));
        slots.set(1, leaf);
        slots.set(0, ptr::null_mut());
        let second = mutator.collect(ALL).unwrap();
        assert_eq!((second.kept, second.freed), (2 * WORD, 4 * WORD));
        drop(root);
        assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
        assert_eq!(pool.header().total(), 0, "segments without objects are returned");
        assert_eq!((heap.counts().collections.get(), heap.counts().stops.get()), (3, 3));
    });
}

/// A ring, and a list longer than any stack.
#[test]
fn references_may_form_rings_and_long_lists() {
    let count = if cfg!(miri) { 100 } else { 20_000 };
    with_heap(4 << 20, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        for index in 0..count {
            slots.set(0, make(&mut point, index, &[slots.get(0)]).unwrap());
        }
        let mut last = slots.get(0);
        // SAFETY: all nodes are kept by the slot, and each but the first has a reference.
        while let next = unsafe { reference(last, 0) }
            && !next.is_null()
        {
            last = next;
        }
        // SAFETY: the first node is kept.
        unsafe { crate::common::set_reference(last, 0, slots.get(0)) };
        point.empty();
        assert_eq!(mutator.collect(ALL).unwrap().kept, count * 3 * WORD);
        slots.set(0, ptr::null_mut());
        assert_eq!(mutator.collect(ALL).unwrap().kept, 0, "a ring does not keep itself");
    });
}

#[test]
fn leaves_are_kept_by_other_pools_and_not_scanned() {
    with_heap(256 << 10, |heap| {
        let (nodes, leaves) = (pool::<Traced>(heap, 0), pool::<Leaf>(heap, 1));
        let mut mutator = heap.register().unwrap();
        let (mut node_point, mut leaf_point) = (point(&nodes, &mutator), point(&leaves, &mutator));
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let dead = make(&mut node_point, 1, &[]).unwrap();
        let leaf = make(&mut leaf_point, 2, &[dead]).unwrap();
        slots.set(0, make(&mut node_point, 3, &[leaf]).unwrap());
        node_point.empty();
        leaf_point.empty();
        assert_eq!(mutator.collect(ALL).unwrap().kept, (4 + 3) * WORD, "not what the leaf refers to");
        // SAFETY: the leaf was kept.
        assert_eq!(unsafe { name(leaf) }, 2);
    });
}

#[test]
fn objects_larger_than_a_segment_have_their_own() {
    with_heap(1 << 20, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        for references in [600, if cfg!(miri) { 1200 } else { 5000 }] {
            let small = make(&mut point, 1, &[]).unwrap();
            let mut all = vec![ptr::null_mut(); references];
            all[references - 1] = small;
            let large = make(&mut point, 2, &all).unwrap();
            slots.set(0, large);
            point.empty();
            assert_eq!(mutator.collect(ALL).unwrap().kept, (4 + references) * WORD);
            // SAFETY: both were kept.
            assert_eq!(unsafe { name(reference(large, references - 1)) }, 1);
            assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
        }
        slots.set(0, ptr::null_mut());
        mutator.collect(ALL).unwrap();
        assert_eq!(pool.header().total(), 0);
    });
}

#[test]
fn ambiguous_words_keep_what_they_point_into() {
    with_heap(256 << 10, |heap| {
        let pool = pool::<Traced>(heap, 1);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let words: [Cell<usize>; 3] = Default::default();
        // SAFETY: the words outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_ambiguous(NonNull::from(&words).cast(), 3) }.unwrap();
        let nodes = [1, 2, 3].map(|name| make(&mut point, name, &[ptr::null_mut()]).unwrap());
        point.empty();
        let mut kept = |addrs: [usize; 3]| {
            addrs.iter().zip(&words).for_each(|(addr, word)| word.set(*addr));
            mutator.collect(ALL).unwrap().kept / (4 * WORD)
        };
        let addr = |node: usize, offset: usize| nodes[node].addr() - WORD + offset;
        // The base, the last byte of the same, and numbers that are no addresses.
        assert_eq!(kept([addr(0, 0), addr(1, 4 * WORD - 1), addr(2, WORD)]), 3);
        assert_eq!(kept([addr(1, 0), addr(1, 4 * WORD - 1), 1]), 1);
        assert_eq!(kept([usize::MAX, 0, heap.arena().range().base().get()]), 0);
    });
}

#[test]
fn only_words_with_the_tag_are_references() {
    with_heap(256 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<3>::default();
        let tag = Tag { mask: 3, pattern: 1 };
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 3, tag) }.unwrap();
        let nodes = [1, 2, 3].map(|name| make(&mut point, name, &[]).unwrap());
        point.empty();
        for (index, tagged) in [1, 2, 0].into_iter().enumerate() {
            slots.set(index, nodes[index].map_addr(|addr| addr | tagged));
        }
        assert_eq!(mutator.collect(ALL).unwrap().kept, 2 * WORD);
        assert_eq!(slots.get(0), nodes[0].map_addr(|addr| addr | 1), "the tag stays");
        // SAFETY: the first node was kept.
        assert_eq!(unsafe { name(nodes[0]) }, 1);
    });
}

#[test]
fn a_function_finds_roots() {
    /// # Safety
    /// - `data` leads to a slot.
    unsafe fn scan_one(data: *mut (), scan: &mut Scan<'_>) {
        // SAFETY: the caller promises a slot.
        scan.fix(unsafe { &mut *data.cast::<*mut u8>() });
    }

    with_heap(256 << 10, |heap| {
        let pool = pool::<Leaf>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        slots.set(0, make(&mut point, 1, &[]).unwrap());
        drop(point);
        // SAFETY: the slot outlives the root, and only this thread uses it.
        let root = unsafe { heap.root_function(scan_one, slots.base().as_ptr().cast()) }.unwrap();
        assert_eq!(mutator.collect(ALL).unwrap().kept, 2 * WORD);
        drop(root);
        assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
    });
}

#[test]
fn what_a_heap_lends_says_what_it_is() {
    with_heap(64 << 10, |heap| {
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let texts = [format!("{root:?}"), format!("{:?}", heap.park()), format!("{:?}", heap.stress())];
        assert_eq!(texts, ["Root", "Parked", "Stressed"]);
    });
}

/// (design/gc.md `.req.failed`)
#[test]
fn a_reservation_that_a_collection_meets_is_not_committed() {
    with_heap(256 << 10, |heap| {
        let (nodes, leaves) = (pool::<Traced>(heap, 0), pool::<Leaf>(heap, 0));
        let mut mutator = heap.register().unwrap();
        let (mut node_point, mut leaf_point) = (point(&nodes, &mutator), point(&leaves, &mutator));
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let before = make(&mut node_point, 1, &[]).unwrap();
        slots.set(0, before);
        let node = node_point.reserve(layout(0, 0)).unwrap();
        let leaf = leaf_point.reserve(layout(0, 0)).unwrap();
        // SAFETY: that many bytes were reserved.
        unsafe { write(node.as_ptr().cast(), node.size(), 2, &[]) };
        // SAFETY: that many bytes were reserved.
        unsafe { write(leaf.as_ptr().cast(), leaf.size(), 3, &[]) };
        mutator.collect(ALL).unwrap();
        let place = node.as_ptr();
        // SAFETY: a whole node.
        assert!(unsafe { node.commit() }.is_err(), "it may have references that were not seen");
        // SAFETY: a whole node.
        assert!(unsafe { leaf.commit() }.is_ok(), "it has none");
        // SAFETY: it was committed before, and is kept.
        assert_eq!(unsafe { name(before) }, 1);
        let again = make(&mut node_point, 4, &[]).unwrap();
        assert_eq!(again, place.as_ptr(), "the buffer is still there");
        slots.set(0, again);
        node_point.empty();
        leaf_point.empty();
        assert_eq!(mutator.collect(ALL).unwrap().kept, 2 * WORD);
    });
}

/// What died in front of an attached buffer is used again while the buffer is attached.
#[test]
fn a_buffer_that_stays_attached_keeps_only_its_rest() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut first = point(&pool, &mutator);
        make(&mut first, 1, &[]).unwrap();
        let room = first.room();
        assert_eq!(mutator.collect(ALL).unwrap().kept, room);
        let mut second = point(&pool, &mutator);
        let reused = make(&mut second, 2, &[]).unwrap();
        let later = make(&mut first, 3, &[]).unwrap();
        assert_eq!(later.addr() - reused.addr(), 2 * WORD, "side by side");
        let mut free = 0;
        pool.walk_free(&mut |gap| free += gap.size());
        assert_eq!((free, pool.sizes().free), (0, 0));
        first.empty();
        second.empty();
        pool.walk_free(&mut |gap| free += gap.size());
        assert_eq!(free, pool.sizes().free);
        assert_eq!(pool.sizes().largest_free, room - 2 * WORD);
        assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
        let mut text = String::new();
        pool.describe(&mut text, 0).unwrap();
        assert!(text.contains("AMS") && text.contains(&format!("free: {free} bytes")), "{text}");
    });
}

#[test]
fn what_is_freed_serves_a_full_arena() {
    with_heap(32 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let _parked = heap.park();
        for _ in 0..4 {
            let mut made = 0;
            while make(&mut point, made, &[ptr::null_mut(); 6]).is_ok() {
                made += 1;
            }
            assert!(made > 100, "{made} nodes of 64 bytes");
            assert_eq!(make(&mut point, 0, &[ptr::null_mut(); 6]), Err(Error::Limit));
            mutator.collect(ALL).unwrap();
        }
    });
}

#[test]
fn a_collection_that_is_not_had_in_time_is_postponed() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let node = make(&mut point, 7, &[]).unwrap();
        let found = thread::scope(|scope| scope.spawn(|| heap.collect(Duration::ZERO)).join().unwrap());
        assert!(matches!(found, Err(Postponed::Late(late)) if late.number == 1), "{found:?}");
        // SAFETY: nothing was collected, because this mutator runs.
        assert_eq!(unsafe { name(node) }, 7);
        point.empty();
        let found = mutator.away(|| heap.collect(Duration::ZERO)).unwrap();
        assert_eq!((found.kept, found.freed), (0, 2 * WORD));
    });
}

/// A thread that fills no buffer gives way, because the points of its pools are tripped.
#[test]
fn a_thread_that_only_reserves_gives_way() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let (is_there, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let done = Raise(&is_done);
            let worker = scope.spawn(|| {
                let mutator = heap.register().unwrap();
                let mut point = point(&pool, &mutator);
                while !is_done.load(Ordering::SeqCst) {
                    // What is abandoned takes no memory.
                    drop(point.reserve(layout(0, 0)).unwrap());
                    is_there.store(true, Ordering::SeqCst);
                }
            });
            tripoint_oracle::wait_until(|| is_there.load(Ordering::SeqCst) || worker.is_finished());
            assert!(!worker.is_finished(), "the worker has failed");
            // Each wait says that it took a nanosecond.
            let found = heap.collect(Duration::from_millis(1));
            drop(done);
            assert!(found.is_ok(), "{found:?}");
        });
    });
}

/// (design/gc.md `.req.kept`)
#[test]
fn threads_keep_what_they_build_while_others_collect() {
    threads_keep::<Traced, Leaf>();
    threads_keep::<Moved, MovedLeaf>();
}

fn threads_keep<K: Kind<Nodes>, L: Kind<Nodes>>() {
    // The collector waits for that many nodes before it collects again, so it collects a bounded number of times: one
    // that never waits would keep an interpreter from everything else.
    let (rounds, length, pause) = if cfg!(miri) { (2, 5, 5) } else { (60, 60, 10) };
    with_heap(8 << 20, |heap| {
        let (nodes, leaves) = (pool::<K>(heap, 0), pool::<L>(heap, 0));
        let (builders, built) = (AtomicUsize::new(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for thread in 0..3 {
                let (nodes, leaves, builders, built) = (&nodes, &leaves, AtWork(&builders), &built);
                scope.spawn(move || {
                    let _at_work = builders;
                    let mut mutator = heap.register().unwrap();
                    let (mut node_point, mut leaf_point) = (point(nodes, &mutator), point(leaves, &mutator));
                    let slots = Slots::<2>::default();
                    // SAFETY: the slots outlive the root, and only this thread uses them while it runs.
                    let _root = unsafe { heap.root_table(slots.base(), 2, Tag::default()) }.unwrap();
                    for round in 0..rounds {
                        slots.set(0, ptr::null_mut());
                        for index in 0..length {
                            let label = (thread * rounds + round) * length + index;
                            slots.set(1, make(&mut leaf_point, label, &[]).unwrap());
                            let node = loop {
                                // The references are read after the reserve, in which the thread may give way.
                                let reservation = node_point.reserve(layout(0, 2)).unwrap();
                                let references = [slots.get(0), slots.get(1)];
                                // SAFETY: that many bytes were reserved.
                                unsafe {
                                    write(
                                        reservation.as_ptr().cast(),
                                        reservation.size(),
                                        label,
                                        &references,
                                    );
                                }
                                // SAFETY: a whole node.
                                if let Ok(node) = unsafe { reservation.commit() } {
                                    break node;
                                }
                            };
                            slots.set(0, node.as_ptr());
                            built.fetch_add(1, Ordering::SeqCst);
                            if index % 16 == 0 {
                                mutator.away(thread::yield_now);
                            }
                        }
                        let mut node = slots.get(0);
                        for index in (0..length).rev() {
                            let label = (thread * rounds + round) * length + index;
                            // SAFETY: the slot keeps all nodes of the list.
                            assert_eq!(unsafe { (name(node), name(reference(node, 1))) }, (label, label));
                            // SAFETY: the slot keeps all nodes of the list.
                            node = unsafe { reference(node, 0) };
                        }
                        assert!(node.is_null());
                    }
                });
            }
            while builders.load(Ordering::SeqCst) > 0 {
                heap.collect(ALL).unwrap();
                let enough = built.load(Ordering::SeqCst) + pause;
                tripoint_oracle::wait_until(|| {
                    built.load(Ordering::SeqCst) >= enough || builders.load(Ordering::SeqCst) == 0
                });
            }
        });
        heap.collect(ALL).unwrap();
        assert_eq!((nodes.header().total(), leaves.header().total()), (0, 0), "all is freed in the end");
    });
}

#[test]
fn pools_leave_their_heap_when_they_are_dropped() {
    with_heap(64 << 10, |heap| {
        let mut mutator = heap.register().unwrap();
        let first = pool::<Traced>(heap, 0);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        {
            let second = pool::<Traced>(heap, 0);
            slots.set(0, make(&mut point(&second, &mutator), 1, &[]).unwrap());
            assert_eq!(mutator.collect(ALL).unwrap().kept, 2 * WORD);
        }
        // The slot leads to memory that is the arena's again.
        assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
        drop(first);
        assert_eq!(heap.arena().check(CheckLevel::Deep), Ok(()));
    });
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "where no object is"))]
fn an_exact_reference_to_no_object_is_averted() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let slots = Slots::<1>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        slots.set(0, make(&mut point, 1, &[]).unwrap().wrapping_add(WORD));
        mutator.collect(ALL).unwrap();
    });
}

#[test]
fn formats_that_cannot_be_served_are_refused() {
    struct Aligned(usize);

    // SAFETY: no object of it is ever made.
    unsafe impl Format for Aligned {
        fn align(&self) -> Align {
            Align::new(self.0).unwrap()
        }

        unsafe fn skip(&self, _object: NonNull<u8>) -> usize {
            unreachable!()
        }

        unsafe fn scan(&self, _objects: Block, _scan: &mut Scan<'_>) {}
    }

    struct HalfAWord;

    // SAFETY: no object of it is ever made.
    unsafe impl Format for HalfAWord {
        fn header(&self) -> usize {
            WORD / 2
        }

        unsafe fn skip(&self, _object: NonNull<u8>) -> usize {
            unreachable!()
        }

        unsafe fn scan(&self, _objects: Block, _scan: &mut Scan<'_>) {}
    }

    with_heap(64 << 10, |heap| {
        for align in [1, WORD / 2, 2 << 10] {
            let refused: Result<Lo<'_, _, _, _>, _> =
                Swept::create(heap, Aligned(align), SweptOptions::default());
            assert!(matches!(refused.map(drop), Err(Error::Parameter(_))), "{align}");
        }
        let refused: Result<Lo<'_, _, _, _>, _> = Swept::create(heap, HalfAWord, SweptOptions::default());
        assert!(matches!(refused.map(drop), Err(Error::Parameter(_))), "the header");
        let served: Lo<'_, _, _, _> = Swept::create(heap, Aligned(64), SweptOptions::default()).unwrap();
        assert_eq!((served.min_align(), served.reserve_size(layout(0, 0))), (64, Some(64)));
    });
}

/// Objects that begin with their size, and by a format whose header is two words.
struct BehindTwoWords;

// SAFETY: an object begins with its size, which nothing writes after it was committed, and has no references.
unsafe impl Format for BehindTwoWords {
    fn header(&self) -> usize {
        2 * WORD
    }

    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises an object, which begins with its size.
        unsafe { object.cast::<usize>().read() }
    }

    unsafe fn scan(&self, _objects: Block, _scan: &mut Scan<'_>) {}
}

/// Makes objects of that many words, the last of which may be no longer than its header.
fn make_behind_two_words(sizes: &[usize]) -> tripoint_core::Result<()> {
    let mut made = Ok(());
    with_heap(64 << 10, |heap| {
        let pool: Swept<'_, _, _, _, Traced> =
            Swept::create(heap, BehindTwoWords, SweptOptions { segment_size: 4 << 10 }).unwrap();
        let mutator = heap.register().unwrap();
        // SAFETY: the point is used on the thread of its mutator, while that is running.
        let adjust = |buffer: &MutatorBuffer| unsafe { buffer.attend(&mutator) };
        // A point that unwinds when it is emptied would do so again when it is dropped.
        let mut point =
            ManuallyDrop::new(AllocationPoint::create_in(&pool, BufferKind::Mutator, (), adjust).unwrap());
        made = sizes.iter().try_for_each(|words| {
            let reservation = point.reserve(Layout::array::<usize>(*words).unwrap())?;
            // SAFETY: the object has a word, for its size.
            unsafe { reservation.as_ptr().cast::<usize>().write(reservation.size()) };
            // SAFETY: its size was just written.
            assert!(unsafe { reservation.commit() }.is_ok());
            Ok(())
        });
        point.empty();
    });
    made
}

/// References would lead behind such an object, to the next one.
#[test]
fn an_object_that_is_a_header_is_refused() {
    assert_eq!(make_behind_two_words(&[3, 4]), Ok(()));
    for words in [1, 2] {
        assert!(matches!(make_behind_two_words(&[words]), Err(Error::Parameter(_))), "{words} words");
    }
}

/// If the fill was for another object, a debug build says so.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "has 16 bytes, 16 of them a header")]
#[cfg(target_pointer_width = "64")]
fn an_object_that_is_a_header_is_found_in_a_buffer() {
    let _ = make_behind_two_words(&[3, 2]);
}
