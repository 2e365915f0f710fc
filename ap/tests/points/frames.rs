//! Frames on allocation points, in a class made for it: scopes, boxes, stops, trips.
//! Random lives of frames are in the tests of the class SNC (`pools/tests/classes/snc.rs`).

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use std::panic::catch_unwind;
use std::sync::Mutex;

use crate::common::{Draws, Fuse, TestControl, Unformatted, with_arena, with_events, with_fuse};
use tripoint_ap::{AllocationPoint, BufferMode, FrameBox};
use tripoint_core::internal::registry_of;
use tripoint_core::{
    Addr, Arena, BasicBuffer, Block, BufferKind, Check, CheckError, CheckLevel, ClientArena, Control,
    Describe, Error, Event, Fill, FramePool, GivesWay, KeepsInBuffer, OwnBuffer, PoolClass, PoolHeader,
    PoolSizes, Result, Stop, SymmetricFence,
};

const ALIGN: usize = 16;

/// A class with one stack, for one allocation point at a time. Its blocks are never
/// used again, so that a test that looks below a frame sees what was there.
#[derive(Debug)]
struct OneStack<'a> {
    fill_size: usize,
    blocks: Mutex<Vec<Block>>,
    header: PoolHeader<&'a ClientArena<'a>>,
}

impl<'a> OneStack<'a> {
    fn create(arena: &'a ClientArena<'a>, fill_size: usize) -> Self {
        let header = PoolHeader::create(arena, Self::CLASS).unwrap();
        Self { fill_size, blocks: Mutex::default(), header }
    }

    fn depth(&self) -> usize {
        self.blocks.lock().unwrap().len()
    }
}

impl KeepsInBuffer for OneStack<'_> {
    type Buffer = BasicBuffer;

    fn new_buffer(&self) -> BasicBuffer {
        BasicBuffer
    }

    unsafe fn finish_buffer(own: OwnBuffer<'_, Self, BasicBuffer>) -> bool {
        own.pool().blocks.lock().unwrap().clear();
        true
    }
}

impl GivesWay for OneStack<'_> {}

// SAFETY: fills are fresh tracts cut to whole `ALIGN`s, each given out once; grains
// are aligned to 4096, and no more is served.
unsafe impl<'a> PoolClass for OneStack<'a> {
    const CLASS: &'static str = "OneStack";
    const FLIPPABLE: bool = false;
    type Arena = &'a ClientArena<'a>;
    type Barrier = SymmetricFence;

    fn header(&self) -> &PoolHeader<Self::Arena> {
        &self.header
    }

    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    fn min_align(&self) -> usize {
        ALIGN
    }

    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        let size = layout.size().max(1).next_multiple_of(ALIGN);
        (layout.size() <= 1 << 20 && layout.align() <= 4096).then_some(size)
    }

    fn fill(&self, layout: Layout) -> Result<Fill> {
        let size = layout.size().max(self.fill_size);
        let (block, _) = self.header.extend(size)?.split_at(size).unwrap();
        self.blocks.lock().unwrap().push(block);
        Ok(block.into())
    }

    unsafe fn empty(&self, _unused: Block) {}

    fn walk_free(&self, _visit: &mut dyn FnMut(Block)) {}

    fn sizes(&self) -> PoolSizes {
        let total = self.header.total();
        PoolSizes { total, high_water: self.header.high_water(), ..PoolSizes::default() }
    }
}

// SAFETY: never flippable, no manual class; the vector is the stack.
unsafe impl FramePool for OneStack<'_> {
    fn top(own: OwnBuffer<'_, Self, BasicBuffer>) -> Option<NonNull<u8>> {
        own.pool().blocks.lock().unwrap().last().map(|block| block.base())
    }

    unsafe fn pop_to(own: OwnBuffer<'_, Self, BasicBuffer>, base: Option<NonNull<u8>>) -> Option<Block> {
        let mut blocks = own.pool().blocks.lock().unwrap();
        let at = blocks.iter().position(|block| Some(block.base()) == base);
        assert_eq!(at.is_some(), base.is_some(), "a frame's block is in the stack");
        blocks.truncate(at.unwrap_or(0) + 1);
        blocks.last().copied()
    }
}

impl Check for OneStack<'_> {
    fn check(&self, level: CheckLevel) -> Result<(), CheckError> {
        self.header.check(level)
    }
}

impl Describe for OneStack<'_> {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        self.header.describe(out, depth)
    }
}

fn live<C: Control>(point: &AllocationPoint<'_, OneStack<'_>, C>) -> u64 {
    point.buffer().fill_size() - point.buffer().empty_size() - point.room() as u64
}

#[test]
fn objects_of_scopes_refer_to_each_other_and_outwards() {
    with_arena(1 << 20, |arena| {
        let pool = OneStack::create(arena, 256);
        let mut point = AllocationPoint::create(&pool).unwrap();
        let text = String::from("outside");
        let sum = point.scope(|outer| {
            let outside = outer.alloc(text.as_str()).unwrap();
            let number = outer.alloc(40_u64).unwrap();
            let sum = outer.scope(|inner| {
                let both = inner.alloc((&*number, &*outside)).unwrap();
                let many = inner.slice(100, |index| (index as u64, both.0)).unwrap();
                assert_eq!(both.1.len(), 7);
                many.iter().map(|(index, number)| index + **number).sum::<u64>()
            });
            *number += 1;
            assert_eq!(outer.text("péché").unwrap(), "péché");
            sum + *number
        });
        assert_eq!(sum, 99 * 50 + 100 * 40 + 41);
        assert_eq!((live(&point), pool.depth()), (0, 1), "one block is kept");
    });
}

#[test]
fn scopes_pop_when_they_panic() {
    with_arena(1 << 20, |arena| {
        let pool = OneStack::create(arena, 256);
        let mut point = AllocationPoint::create(&pool).unwrap();
        point.scope(|outer| {
            let kept = outer.alloc([7_u64; 8]).unwrap();
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                outer.scope(|inner| {
                    for value in 0..100_u64 {
                        inner.alloc([value; 8]).unwrap();
                    }
                    panic!("on purpose");
                })
            }));
            assert!(panicked.is_err());
            assert_eq!(*kept, [7; 8]);
        });
        assert_eq!((live(&point), pool.depth()), (0, 1), "one block is kept");
    });
}

/// Counts its drops.
struct Loud<'a>(&'a Cell<usize>);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn only_boxes_drop() {
    with_arena(1 << 20, |arena| {
        let pool = OneStack::create(arena, 256);
        let mut point = AllocationPoint::create(&pool).unwrap();
        let drops = Cell::new(0);
        point.scope(|frame| {
            frame.alloc(Loud(&drops)).unwrap();
            frame.slice(5, |_| Loud(&drops)).unwrap();
            let _leaked = FrameBox::leak(frame.boxed(Loud(&drops)).unwrap());
            assert_eq!(drops.get(), 0);
            let boxed = frame.boxed(Loud(&drops)).unwrap();
            assert_eq!(format!("{boxed:?}"), "Loud");
            drop(boxed);
            assert_eq!(drops.get(), 1);
            let out = FrameBox::into_inner(frame.boxed(Loud(&drops)).unwrap());
            assert_eq!(drops.get(), 1);
            drop(out);
            let _at_the_end = frame.boxed((Loud(&drops), 5)).unwrap();
        });
        assert_eq!(drops.get(), 3);
    });
}

#[test]
fn a_slice_whose_maker_panics_drops_what_was_made_and_is_abandoned() {
    with_arena(1 << 20, |arena| {
        let pool = OneStack::create(arena, 4096);
        let mut point = AllocationPoint::create(&pool).unwrap();
        let drops = Cell::new(0);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            point.scope(|frame| {
                let _ = frame.slice(10, |index| {
                    assert!(index < 6, "on purpose");
                    Loud(&drops)
                });
            })
        }));
        assert!(panicked.is_err());
        assert_eq!((drops.get(), live(&point)), (6, 0));
    });
}

#[test]
fn values_without_size_and_values_refused() {
    with_arena(64 << 10, |arena| {
        let pool = OneStack::create(arena, 256);
        let mut point = AllocationPoint::create(&pool).unwrap();
        let drops = Cell::new(0);
        point.scope(|frame| {
            assert_eq!(*frame.alloc(()).unwrap(), ());
            assert_eq!(frame.slice(1000, |_| ()).unwrap().len(), 1000);
            assert!(frame.slice(0, |_| 1).unwrap().is_empty());
            assert!(matches!(frame.slice(usize::MAX, |_| 1_u64), Err(Error::Parameter(_))));
            assert_eq!(frame.alloc((Loud(&drops), [0_u8; 100 << 10])).unwrap_err(), Error::Limit);
            assert_eq!(drops.get(), 1, "what is not allocated is dropped");
        });
        assert_eq!(pool.sizes().total, 0);
    });
}

impl fmt::Debug for Loud<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loud")
    }
}

/// (design/frames.md `.stop`)
#[test]
fn stops_count_what_was_allocated_popped_or_not() {
    let (rounds, size) = if cfg!(miri) { (42, 1 << 20) } else { (200, 16 << 20) };
    // Stops at every 1000th byte, with frames of 3 objects, in one block and in many.
    for fill_size in [64 << 10, 128] {
        with_arena(size, |arena| {
            let pool = OneStack::create(arena, fill_size);
            let control = TestControl::new(Draws::Every(1000));
            let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, control).unwrap();
            for _ in 0..rounds {
                point.scope(|frame| {
                    for _ in 0..3 {
                        frame.alloc([0_u8; 48]).unwrap();
                    }
                });
                assert_eq!(live(&point), 0, "a pop takes everything back, with a stop and without");
            }
            point.empty();
            // A stop hits the object that holds its byte; the next is counted from
            // where that object ends: every 21st of 48 bytes.
            let stops = point.control().stops();
            assert_eq!(stops.len(), 3 * rounds / 21, "fills of {fill_size}");
            assert!(stops.iter().all(|stop| (stop.size, stop.offset) == (48, 1000 - 20 * 48)));
        });
    }
}

#[test]
fn trips_survive_pops() {
    with_arena(1 << 20, |arena| {
        let pool = OneStack::create(arena, 4096);
        let control = TestControl::new(Draws::Never);
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, control).unwrap();
        let tripper = point.tripper();
        point.scope(|outer| {
            outer.alloc(1).unwrap();
            outer.scope(|inner| {
                inner.alloc(2).unwrap();
                tripper.trip();
            });
            let mode = tripper.buffer().snapshot().unwrap().mode;
            assert!(mode.contains(BufferMode::TRAPPED), "the pop within the block left it");
            assert_eq!(outer.control().trips(), 0);
            outer.alloc(3).unwrap();
            assert_eq!(outer.control().trips(), 1);
        });
    });
}

#[test]
fn pops_of_blocks_are_told() {
    with_events(|arena, events| {
        let pool = OneStack::create(arena, 128);
        let mut point = AllocationPoint::create(&pool).unwrap();
        let id = pool.header().id();
        let (buffer, mut objects) = (point.buffer().id(), Vec::new());
        point.scope(|frame| {
            for _ in 0..3 {
                objects.push(Addr::of(frame.alloc([0_u8; 96]).unwrap()));
            }
            events.take();
        });
        let empty = |base, size| Event::Empty { pool: id, buffer, base, size };
        let unused = empty(objects[2].checked_add(96).unwrap(), 32);
        let fill = Event::Fill { pool: id, buffer, base: objects[0], size: 128 };
        assert_eq!(events.take(), [unused, empty(Addr::ZERO, 3 * 96), fill]);
        point.empty();
        let counts = arena.counts();
        assert_eq!(counts.fill_mutator.get(), counts.empty_mutator.get());
        assert_eq!(counts.alloc_mutator.get(), 0);
    });
}

/// Internal buffers count apart, as ever.
#[test]
fn pops_of_internal_buffers_are_theirs() {
    with_arena(1 << 20, |arena| {
        let pool = OneStack::create(arena, 128);
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Internal, ()).unwrap();
        point.scope(|frame| assert_eq!(frame.slice(100, |_| [0_u8; 96]).unwrap().len(), 100));
        point.empty();
        let counts = arena.counts();
        assert!(counts.fill_internal.get() >= 9600);
        assert_eq!(counts.fill_internal.get(), counts.empty_internal.get());
        assert_eq!(counts.empty_mutator.get(), 0);
    });
}

#[test]
fn a_point_that_is_dropped_gives_back_and_counts_what_it_allocated() {
    with_arena(1 << 20, |arena| {
        let pool = OneStack::create(arena, 128);
        let mut point = AllocationPoint::create(&pool).unwrap();
        for value in 0..20_u64 {
            point.make_with(|| [value; 4]).unwrap();
        }
        assert_eq!(live(&point), 640);
        drop(point);
        assert_eq!(pool.depth(), 0);
        let counts = arena.counts();
        assert_eq!(counts.fill_mutator.get(), counts.empty_mutator.get());
        assert_eq!(counts.alloc_mutator.get(), 0);
    });
}

#[test]
fn frames_that_are_never_popped_go_with_an_earlier_one() {
    with_arena(1 << 20, |arena| {
        let pool = OneStack::create(arena, 128);
        let mut point = AllocationPoint::create(&pool).unwrap();
        let kept = point.make_with(|| 5_u64).unwrap();
        let frame = point.push();
        for value in 0..20_u64 {
            drop(point.push());
            point.make_with(|| [value; 4]).unwrap();
        }
        let init = Addr::of(kept.as_ptr()).get() + ALIGN;
        // SAFETY: the frame is of this point; the frames pushed since were dropped, and so was what was
        // allocated in them.
        unsafe { point.pop(frame) };
        assert_eq!(point.buffer().snapshot().unwrap().init, Addr::new(init));
        // SAFETY: allocated before the frame that was popped, so it is still allocated; initialised by the test.
        assert_eq!(unsafe { kept.read() }, 5);
        assert_eq!(live(&point), ALIGN as u64);
    });
}

/// Runs rounds of frames across blocks, with a hook that unwinds at the event of this
/// number. Afterwards everything is counted, and nothing is left in the stack
/// (design/ap.md `.slow.report`). Returns whether there was such an event.
fn rounds_with_a_fuse(length: usize) -> bool {
    with_fuse(|arena, fuse| {
        let pool = OneStack::create(arena, 256);
        let mut point = AllocationPoint::create(&pool).unwrap();
        fuse.light(length);
        let mut unwound = 0;
        for _ in 0..2 {
            let round = AssertUnwindSafe(|| {
                point.scope(|outer| {
                    outer.slice(10, |_| 1_u64).unwrap();
                    outer.scope(|inner| (0..10).for_each(|_| assert!(inner.slice(20, |_| 2_u64).is_ok())));
                    outer.slice(30, |_| 3_u64).unwrap();
                });
            });
            unwound += usize::from(catch_unwind(round).is_err());
            let counts = arena.counts();
            let allocated = counts.fill_mutator.get() - counts.empty_mutator.get() - point.room() as u64;
            assert_eq!(allocated, live(&point), "all report the same");
            assert_eq!(allocated, 0, "the outer frame is popped, whichever call unwound");
        }
        unwound += usize::from(catch_unwind(AssertUnwindSafe(|| drop(point))).is_err());
        let burnt = fuse.put_out();
        assert_eq!(unwound, usize::from(burnt));
        let counts = arena.counts();
        assert_eq!((pool.depth(), counts.fill_mutator.get()), (0, counts.empty_mutator.get()));
        assert_eq!(counts.alloc_mutator.get(), 0);
        drop(AllocationPoint::create(&pool).unwrap());
        assert_eq!(registry_of(pool.header()).iter().count(), 1, "the descriptor was claimed again");
        burnt
    })
}

#[test]
fn after_a_hook_has_unwound_in_a_pop_counters_agree_with_memory() {
    let step = if cfg!(miri) { 5 } else { 1 };
    let burnt = (1..).step_by(step).take_while(|&length| rounds_with_a_fuse(length)).count();
    assert!(burnt > 8 / step, "{burnt} places where the hook unwound");
    assert!(!rounds_with_a_fuse(0), "without a fuse");
}

/// Stops at every byte, and unwinds when a stop is reported after its fuse has burnt down.
#[derive(Debug)]
struct UnwindsAtStops<'f>(&'f Fuse);

impl Control for UnwindsAtStops<'_> {
    fn next_stop(&mut self) -> usize {
        1
    }

    fn stopped(&mut self, _stop: Stop) {
        self.0.burn();
    }
}

/// A pop within a block reports the stop that its last object reached
/// (design/ap.md `.slow.report`).
#[test]
fn a_control_that_unwinds_in_a_pop_finds_it_done() {
    with_arena(1 << 20, |arena| {
        let (pool, fuse) = (OneStack::create(arena, 1024), Fuse::default());
        let control = UnwindsAtStops(&fuse);
        let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, control).unwrap();
        point.scope(|frame| assert!(frame.alloc([1_u64; 4]).is_ok()));
        let room = point.room();
        for _ in 0..3 {
            let round = AssertUnwindSafe(|| {
                point.scope(|frame| {
                    frame.alloc([2_u64; 32]).unwrap();
                    fuse.light(1);
                });
            });
            assert!(catch_unwind(round).is_err() && fuse.put_out(), "it was notified of the stop");
            assert_eq!((point.room(), live(&point)), (room, 0), "popped all the same");
        }
        assert_eq!(pool.depth(), 1);
    });
}
