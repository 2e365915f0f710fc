//! What every pool shares: the header, walks, owning pointers, sizes. The pool here
//! gives each object tracts of its own and keeps no memory it does not use.
//! (design/core.md `.pool`, `.pool.drop`.)
#![cfg(not(tripoint_loom))]

use core::alloc::Layout;
use core::cell::Cell;
use core::error::Error as _;
use core::fmt;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use std::panic::catch_unwind;

use tripoint_core::{
    Addr, Arena, Block, Check, CheckLevel, ClientArena, ClientArenaOptions, Describe, Error, Exhausted,
    ManualPool, PoolBox, PoolClass, PoolRc, PoolSizes, Use, walk,
};

const GRAIN: usize = 256;

/// In a module of its own, because [`ManualClass`](tripoint_core::ManualClass) and
/// [`PoolClass`] have methods of the same names.
mod whole {
    use core::alloc::Layout;
    use core::fmt;
    use core::ptr::NonNull;
    use std::sync::Mutex;

    use tripoint_core::{
        Arena, Block, Check, CheckError, CheckLevel, Describe, Error, ManualClass, PoolHeader, PoolSizes,
        Result, Store,
    };

    use super::GRAIN;

    /// Each object has tracts of its own. `free` is what walks are to show as free.
    #[derive(Debug)]
    pub(super) struct Whole<A: Arena> {
        pub(super) free: Mutex<Vec<Block>>,
        pub(super) header: PoolHeader<A>,
    }

    impl<A: Arena> Whole<A> {
        pub(super) fn create(arena: A) -> Self {
            Self { free: Mutex::default(), header: PoolHeader::create(arena, Self::CLASS).unwrap() }
        }

        /// Memory that shows as free from here on.
        pub(super) fn keep_free(&self, size: usize) -> Block {
            let block = self.header.extend(size).unwrap();
            self.free.lock().unwrap().push(block);
            block
        }
    }

    // SAFETY: blocks are tracts, aligned to grains, each given out once; the grain is a multiple of
    // every alignment that is served. Sizes depend on the layout alone.
    unsafe impl<A: Arena> ManualClass for Whole<A> {
        const CLASS: &'static str = "Whole";
        type Arena = A;

        fn header(&self) -> &PoolHeader<A> {
            &self.header
        }

        fn min_align(&self) -> usize {
            GRAIN
        }

        fn reserve_size(&self, layout: Layout) -> Option<usize> {
            (layout.align() <= GRAIN).then(|| layout.size().max(1).checked_next_multiple_of(GRAIN))?
        }

        fn fill(&self, layout: Layout) -> Result<Block> {
            self.header.extend(layout.size())
        }

        unsafe fn empty(&self, unused: Block) {
            // SAFETY: what a buffer leaves are whole grains of a fill.
            unsafe { self.header.retract(unused) };
        }

        fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
            let mut free = self.free.lock().unwrap().clone();
            free.sort_by_key(|block| block.range().base());
            free.into_iter().for_each(visit);
        }

        fn sizes(&self) -> PoolSizes {
            let sizes: Vec<usize> = self.free.lock().unwrap().iter().map(|block| block.size()).collect();
            PoolSizes::of(&self.header, sizes.iter().sum(), sizes.iter().copied().max().unwrap_or(0))
        }
    }

    // SAFETY: an object has tracts of its own, which are returned when it is freed.
    unsafe impl<A: Arena> Store for Whole<A> {
        fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
            let size = self.reserve_size(layout).ok_or(Error::Parameter("not served"))?;
            self.header.extend(size).map(Block::base)
        }

        unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
            let size = self.reserve_size(layout).expect("a layout that was served");
            // SAFETY: the object has these tracts alone.
            unsafe { self.header.retract(Block::new(object, size)) };
        }
    }

    impl<A: Arena> Check for Whole<A> {
        fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
            self.header.check(level)
        }
    }

    impl<A: Arena> Describe for Whole<A> {
        fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
            self.header.describe(out, depth)
        }
    }
}

use whole::Whole;

fn with_arena<R>(test: impl FnOnce(&ClientArena<'_>) -> R) -> R {
    let mut memory = Box::new_uninit_slice(64 << 10);
    let options = ClientArenaOptions { grain: Some(GRAIN), event_hook: None };
    test(&ClientArena::create(&mut memory, options).unwrap())
}

fn with_pool<R>(test: impl FnOnce(&Whole<&ClientArena<'_>>) -> R) -> R {
    with_arena(|arena| test(&Whole::create(arena)))
}

/// Counts its drops.
#[derive(Debug)]
struct Loud<'a>(&'a Cell<usize>);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

impl fmt::Display for Loud<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("loud")
    }
}

// The header.

#[test]
fn a_header_counts_what_it_has_and_the_most_it_had() {
    with_pool(|pool| {
        let header = pool.header();
        assert_eq!((header.class(), header.total(), header.high_water()), ("Whole", 0, 0));
        let (first, second) = (header.extend(1).unwrap(), header.extend(2 * GRAIN).unwrap());
        assert_eq!((first.size(), header.total(), header.high_water()), (GRAIN, 3 * GRAIN, 3 * GRAIN));
        // SAFETY: just got, and never used.
        unsafe { header.retract(second) };
        assert_eq!((header.total(), header.high_water()), (GRAIN, 3 * GRAIN));
        assert_eq!(header.arena().pool_of(second.range().base()), None);
        assert_eq!(header.arena().pool_of(first.range().base()), Some(header.id()));
        let spare = header.arena().sizes().spare;
        assert_eq!(header.extend(spare + 1), Err(Error::Limit));
        assert_eq!(header.total(), GRAIN, "what was refused is not counted");
    });
}

#[test]
fn a_pool_that_is_dropped_leaves_nothing() {
    with_arena(|arena| {
        let before = arena.sizes();
        let pool = Whole::create(arena);
        pool.header().extend(5 * GRAIN).unwrap();
        pool.keep_free(GRAIN);
        assert_eq!(arena.sizes().spare, before.spare - 6 * GRAIN);
        drop(pool);
        assert_eq!(arena.sizes(), before);
        arena.check(CheckLevel::Deep).unwrap();
    });
}

#[test]
fn a_header_describes_itself() {
    with_pool(|pool| {
        let block = pool.header().extend(3 * GRAIN).unwrap();
        let (kept, rest) = block.split_at(GRAIN).unwrap();
        // SAFETY: whole grains, just got, and never used.
        unsafe { pool.header().retract(rest) };
        let mut text = String::new();
        pool.describe(&mut text, 1).unwrap();
        let id = pool.header().id().get();
        let lines: Vec<&str> = text.lines().collect();
        let expected = format!(
            "  pool: Whole #{id}\n    total: {} bytes\n    high water: {} bytes\n    descriptors: 0",
            kept.size(),
            3 * GRAIN
        );
        assert_eq!(lines, expected.lines().collect::<Vec<_>>());
    });
}

// Walks.

fn shown(pool: &impl PoolClass) -> Vec<(Addr, usize, Use)> {
    let mut shown: Vec<(Addr, usize, Use)> = Vec::new();
    walk(pool, |block, used| {
        if let Some((last, size, _)) = shown.last() {
            assert!(last.get() + size <= block.range().base().get(), "in order, and each byte once");
        }
        shown.push((block.range().base(), block.size(), used));
    });
    shown
}

#[test]
fn a_walk_shows_every_tract_once() {
    with_pool(|pool| {
        assert_eq!(shown(pool), []);
        let other = Whole::create(*pool.header().arena());
        let live = pool.header().extend(2 * GRAIN).unwrap();
        let free = pool.keep_free(3 * GRAIN);
        let gap = other.header().extend(GRAIN).unwrap();
        let end = pool.header().extend(4 * GRAIN).unwrap();
        let base = |block: Block| block.range().base();
        assert_eq!(
            shown(pool),
            [
                (base(live), 2 * GRAIN, Use::Live),
                (base(free), 3 * GRAIN, Use::Free),
                (base(end), 4 * GRAIN, Use::Live),
            ]
        );
        assert_eq!(shown(&other), [(base(gap), GRAIN, Use::Live)]);
    });
}

#[test]
fn a_walk_shows_what_is_free_within_tracts_and_across_their_edges() {
    with_pool(|pool| {
        let block = pool.header().extend(4 * GRAIN).unwrap();
        let next = pool.header().extend(2 * GRAIN).unwrap();
        assert_eq!(block.limit(), next.base(), "one run of tracts");
        let part = |from: usize, size: usize| {
            // SAFETY: within the run of tracts, whose blocks may be joined.
            unsafe { Block::new(block.base().add(from), size) }
        };
        let base = block.range().base();
        let at = |offset: usize| base.checked_add(offset).unwrap();
        *pool.free.lock().unwrap() = vec![part(0, 16), part(64, 32), part(4 * GRAIN - 16, 48)];
        assert_eq!(
            shown(pool),
            [
                (at(0), 16, Use::Free),
                (at(16), 48, Use::Live),
                (at(64), 32, Use::Free),
                (at(96), 4 * GRAIN - 112, Use::Live),
                (at(4 * GRAIN - 16), 48, Use::Free),
                (at(4 * GRAIN + 32), 2 * GRAIN - 32, Use::Live),
            ]
        );
        *pool.free.lock().unwrap() = vec![part(16, 6 * GRAIN - 16)];
        assert_eq!(shown(pool), [(at(0), 16, Use::Live), (at(16), 6 * GRAIN - 16, Use::Free)]);
        *pool.free.lock().unwrap() = vec![part(0, 6 * GRAIN)];
        assert_eq!(shown(pool), [(at(0), 6 * GRAIN, Use::Free)]);
    });
}

// Owning pointers.

#[test]
fn a_box_drops_its_object_once_and_frees_its_memory() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let mut boxed = PoolBox::new_in((Loud(&drops), 7), pool).unwrap();
        boxed.1 += 1;
        assert_eq!((boxed.1, drops.get(), pool.header().total()), (8, 0, GRAIN));
        assert!(core::ptr::eq(PoolBox::store(&boxed), pool));
        drop(boxed);
        assert_eq!((drops.get(), pool.header().total()), (1, 0));
    });
}

#[test]
fn what_leaves_a_box_is_not_dropped_by_it() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let value = PoolBox::into_inner(PoolBox::new_in(Loud(&drops), pool).unwrap());
        assert_eq!((drops.get(), pool.header().total()), (0, 0));
        drop(value);
        let boxed = PoolBox::new_in((3, Loud(&drops)), pool).unwrap();
        let object = PoolBox::into_raw(boxed);
        assert_eq!((drops.get(), pool.header().total()), (1, GRAIN));
        // SAFETY: from a box of this pool, which gave it up.
        let boxed = unsafe { PoolBox::from_raw_in(object, pool) };
        let leaked = PoolBox::leak(boxed);
        leaked.0 += 1;
        assert_eq!((leaked.0, drops.get(), pool.header().total()), (4, 1, GRAIN));
    });
}

#[test]
fn a_box_of_nothing_takes_no_memory() {
    struct Nothing;
    thread_local!(static DROPS: Cell<usize> = const { Cell::new(0) });
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPS.set(DROPS.get() + 1);
        }
    }
    with_pool(|pool| {
        let boxed = PoolBox::new_in(Nothing, pool).unwrap();
        assert_eq!((pool.header().total(), DROPS.get()), (0, 0));
        drop(boxed);
        assert_eq!((pool.header().total(), DROPS.get()), (0, 1));
        drop(PoolBox::into_inner(PoolBox::new_in(Nothing, pool).unwrap()));
        assert_eq!((pool.header().total(), DROPS.get()), (0, 2));
    });
}

#[test]
fn a_box_frees_also_when_the_drop_of_its_object_panics() {
    struct Failing;
    impl Drop for Failing {
        fn drop(&mut self) {
            panic!("told to");
        }
    }
    with_pool(|pool| {
        let boxed = PoolBox::new_in((Failing, 1_u64), pool).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(boxed))).is_err());
        assert_eq!(pool.header().total(), 0);
    });
}

/// A slice takes memory once, for all of its objects, and drops each of them once.
#[test]
fn a_slice_owns_its_objects() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let mut objects = PoolBox::slice_in(5, |index| (index, Loud(&drops)), pool).unwrap();
        assert_eq!((objects.len(), pool.header().total()), (5, GRAIN));
        objects[4].0 += 3;
        assert!(objects.iter().map(|object| object.0).eq([0, 1, 2, 3, 7]));
        drop(objects);
        assert_eq!((drops.get(), pool.header().total()), (5, 0));

        drop(PoolBox::slice_in(3, |_| Loud(&drops), pool).unwrap());
        drop(PoolBox::slice_in(0, |_| Loud(&drops), pool).unwrap());
        assert_eq!((drops.get(), pool.header().total()), (8, 0));
        let units = PoolBox::slice_in(1000, |_| (), pool).map(|units| units.len());
        assert_eq!((units, pool.header().total()), (Ok(1000), 0), "they have no size");
    });
}

#[test]
fn a_slice_that_is_not_finished_leaves_nothing() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let make = |index: usize| {
            assert!(index < 3, "told to");
            Loud(&drops)
        };
        assert!(catch_unwind(AssertUnwindSafe(|| PoolBox::slice_in(5, make, pool).map(drop))).is_err());
        assert_eq!((drops.get(), pool.header().total()), (3, 0));

        let never = |_| -> u64 { unreachable!("there is no memory") };
        assert_eq!(PoolBox::slice_in(1 << 20, never, pool).map(drop), Err(Error::Limit));
        let error = PoolBox::slice_in(usize::MAX / 8, never, pool).map(drop);
        assert!(matches!(error, Err(Error::Parameter(_))), "{error:?}");
    });
}

/// A box of a trait object frees with the layout of the object in it.
#[test]
fn an_unsized_object_is_freed_whole() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let object: NonNull<(Loud<'_>, [u8; 3 * GRAIN])> =
            PoolBox::into_raw(PoolBox::new_in((Loud(&drops), [0; 3 * GRAIN]), pool).unwrap());
        let object: NonNull<dyn fmt::Debug> = object;
        assert_eq!(pool.header().total(), 4 * GRAIN);
        // SAFETY: from a box of this pool, which gave it up; its layout is unchanged.
        drop(unsafe { PoolBox::from_raw_in(object, pool) });
        assert_eq!((drops.get(), pool.header().total()), (1, 0));
    });
}

#[test]
fn values_that_are_refused_are_dropped() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let large = (Loud(&drops), [0_u8; 128 << 10]);
        assert_eq!(PoolBox::new_in(large, pool).map(drop), Err(Error::Limit));
        let large = (Loud(&drops), [0_u8; 128 << 10]);
        assert_eq!(PoolRc::new_in(large, pool).map(drop), Err(Error::Limit));
        assert_eq!((drops.get(), pool.header().total()), (2, 0));
    });
}

#[test]
fn the_last_pointer_drops_and_frees() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let first = PoolRc::new_in((Loud(&drops), 5), pool).unwrap();
        assert!(core::ptr::eq(PoolRc::store(&first), pool));
        let second = first.clone();
        assert!(PoolRc::ptr_eq(&first, &second));
        assert_eq!((second.1, PoolRc::count(&first), PoolRc::count(&second)), (5, 2, 2));
        drop(first);
        assert_eq!((drops.get(), PoolRc::count(&second), pool.header().total()), (0, 1, GRAIN));
        drop(second);
        assert_eq!((drops.get(), pool.header().total()), (1, 0));
    });
}

#[test]
fn only_one_pointer_gives_its_object_out() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let mut first = PoolRc::new_in((Loud(&drops), 5), pool).unwrap();
        PoolRc::get_mut(&mut first).unwrap().1 = 6;
        let second = first.clone();
        assert!(PoolRc::get_mut(&mut first).is_none());
        let first = PoolRc::try_unwrap(first).unwrap_err();
        assert!(!PoolRc::ptr_eq(&first, &PoolRc::new_in((Loud(&drops), 6), pool).unwrap()));
        assert_eq!(drops.get(), 1, "the other object is gone");
        drop(second);
        let Ok((loud, value)) = PoolRc::try_unwrap(first) else { panic!("it is the only one") };
        assert_eq!((value, drops.get(), pool.header().total()), (6, 1, 0));
        drop(loud);
        assert_eq!(drops.get(), 2);
    });
}

#[test]
fn a_counted_pointer_takes_a_word_beside_its_object() {
    type Rc<'a, T> = PoolRc<'a, T, Whole<&'a ClientArena<'a>>>;
    assert_eq!(Rc::<u64>::layout(), Layout::new::<(usize, u64)>());
    assert_eq!(Rc::<[usize; 5]>::layout(), Layout::new::<[usize; 6]>());
}

#[test]
fn pointers_show_their_objects() {
    with_pool(|pool| {
        let drops = Cell::new(0);
        let boxed = PoolBox::new_in(Loud(&drops), pool).unwrap();
        assert_eq!((format!("{boxed}"), format!("{boxed:?}")), ("loud".into(), format!("{:?}", *boxed)));
        let counted = PoolRc::new_in(Loud(&drops), pool).unwrap();
        assert_eq!(
            (format!("{counted}"), format!("{counted:?}")),
            ("loud".into(), format!("{:?}", *counted))
        );
        assert!(format!("{:?}", *boxed).contains("Loud"));
    });
}

// Defaults of the traits, and descriptions of pools.

#[test]
fn objects_stay_where_both_layouts_take_the_same_room() {
    with_pool(|pool| {
        let layout = |size, align| Layout::from_size_align(size, align).unwrap();
        assert!(pool.resizes_in_place(layout(10, 8), layout(GRAIN, 8)));
        assert!(!pool.resizes_in_place(layout(10, 8), layout(GRAIN + 1, 8)), "more room");
        assert!(!pool.resizes_in_place(layout(10, 8), layout(10, 16)), "another alignment");
        let unserved = layout(10, 2 * GRAIN);
        assert!(!pool.resizes_in_place(unserved, unserved), "not served");
    });
}

#[test]
fn a_class_that_keeps_nothing_with_its_buffers_need_not_say_so() {
    with_pool(|pool| {
        let buffer = pool.new_buffer();
        // SAFETY: a buffer of this pool, whose owner is here.
        let fill = unsafe { pool.fill_buffer(&buffer, Layout::new::<[u8; GRAIN]>()) }.unwrap();
        assert_eq!((fill.block.size(), fill.preallocated, fill.segment), (GRAIN, 0, None));
        // SAFETY: a buffer of this pool, whose owner is here; the fill is given back below.
        assert!(!unsafe { pool.finish_buffer(&buffer) }, "its objects stay");
        // SAFETY: all of the fill, never used.
        unsafe { pool.empty(fill.block) };
        assert_eq!(pool.header().total(), 0);
    });
}

#[test]
fn fragmentation_is_what_is_not_in_the_largest_block() {
    let fragmentation =
        |free, largest_free| PoolSizes { free, largest_free, ..PoolSizes::default() }.fragmentation();
    assert_eq!(fragmentation(0, 0), 0);
    assert_eq!(fragmentation(100, 100), 0);
    assert_eq!(fragmentation(100, 25), 750);
    assert_eq!(fragmentation(1000, 1), 999);
    assert_eq!(fragmentation(usize::MAX, 0), 1000, "and the sum does not wrap");
    assert_eq!(fragmentation(64, 128), 0, "a block that grows where it lies may be larger");
}

#[test]
fn a_refusal_says_who_refused_what_and_what_is_left() {
    with_pool(|pool| {
        pool.keep_free(2 * GRAIN);
        pool.keep_free(GRAIN);
        let layout = Layout::from_size_align(1000, 32).unwrap();
        let refusal = Exhausted::of(pool, layout, Error::Limit);
        let expected =
            Exhausted { class: "Whole", size: 1000, align: 32, largest_free: 2 * GRAIN, cause: Error::Limit };
        assert_eq!(refusal, expected);
        assert_eq!(
            refusal.to_string(),
            format!(
                "Whole has no 1000 bytes aligned to 32 (largest free block: 512 bytes): {}",
                Error::Limit
            )
        );
        assert_eq!(refusal.source().unwrap().to_string(), Error::Limit.to_string());
    });
}
