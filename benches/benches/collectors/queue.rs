//! A queue of cells that refer to the next one. Each cell is written when the next is added, lives until a quarter of
//! a million others were added, and then dies: nothing dies young.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::alloc::System;

use boa_gc::{Finalize, Gc as BoaGc, GcRefCell, Trace as BoaTrace};
use gc_arena::metrics::Pacing;
use gc_arena::{Arena, Collect, Gc as ArenaGc, Lock, Mutation, Rootable};
use mimalloc::MiMalloc;
use tripoint::author::Membarrier;
use tripoint::gc::{Gc, Heap, Inside, Link, Rooted, SweptOptions, TypedObjects, object_types};
use tripoint::{ArenaVm, Error, Mfs, MfsOptions, Store, UnitOf};

use crate::Contender;
use crate::run::{Laps, Size};
use crate::trees::manual::Global;
use crate::trees::memory::arena;
use crate::trees::{GC_ARENA, GC_ARENA_AT_ONCE, MALLOC, heap};

pub(crate) const CONTENDERS: &[Contender] = &[
    ("tripoint, typed", typed),
    ("tripoint, Mfs and free", |size, laps| {
        let arena = arena().expect("an arena");
        let pool = Mfs::create(&arena, UnitOf::<Cell>::new(), MfsOptions::default()).expect("a pool");
        manual(&pool.cache(), size, laps)
    }),
    (MALLOC, |size, laps| manual(&Global(System), size, laps)),
    ("mimalloc", |size, laps| manual(&Global(MiMalloc), size, laps)),
    #[cfg(boehm)]
    (crate::trees::BOEHM, |size, laps| {
        crate::boehm::begin();
        manual(&crate::boehm::Boehm, size, laps)
    }),
    (GC_ARENA, |size, laps| gc_arena(Pacing::DEFAULT, size, laps)),
    (GC_ARENA_AT_ONCE, |size, laps| gc_arena(Pacing::STOP_THE_WORLD, size, laps)),
    ("boa_gc", boa_gc),
    // Not dumpster: it visits a list by recursion, and one of this length overflows the stack.
];

/// The cells that are in the queue.
const LIVE: usize = 1 << 18;
/// The cells that pass through it.
const CELLS: usize = 1 << 23;
/// The cells in a lap.
const LAP: usize = 256;

/// Calls `lap` with the numbers of the cells of each lap, and whether one is removed for each that is added. Returns the
/// sum of what it returns.
fn drive(size: Size, laps: &mut Laps, mut lap: impl FnMut(core::ops::Range<u64>, bool) -> u64) -> u64 {
    let (live, cells) = (size.of(LIVE), size.of(CELLS));
    (0..cells)
        .step_by(LAP)
        .map(|first| {
            let sum = lap(first as u64..(first + LAP) as u64, first >= live);
            laps.lap();
            sum
        })
        .fold(0, u64::wrapping_add)
}

object_types! {
    struct TypedCell<'g> {
        number: u64,
        next: Link<'g, TypedCell<'g>>,
    }

    struct TypedQueue<'g> {
        first: Link<'g, TypedCell<'g>>,
        last: Link<'g, TypedCell<'g>>,
    }
}

type In<'g, 'a> = Inside<'g, &'a ArenaVm, Membarrier>;

fn add_typed<'g>(inside: &In<'g, '_>, queue: Gc<'g, TypedQueue<'g>>, number: u64) -> Result<(), Error> {
    let cell = inside.alloc(TypedCell { number, next: Link::default() })?;
    match queue.last.get() {
        Some(last) => last.next.set(inside, cell),
        None => queue.first.set(inside, cell),
    }
    queue.last.set(inside, cell);
    Ok(())
}

fn remove_typed<'g>(inside: &In<'g, '_>, queue: Gc<'g, TypedQueue<'g>>) -> u64 {
    let first = queue.first.get().expect("more were added than removed");
    queue.first.set(inside, first.next.get());
    first.number
}

fn typed(size: Size, laps: &mut Laps) -> u64 {
    let arena = arena().expect("an arena");
    let heap = Heap::create(&arena, heap()).expect("a heap");
    let objects = TypedObjects::create(&heap, SweptOptions::default()).expect("pools");
    let mut mutator = objects.register().expect("a mutator");
    let queue = mutator.enter(|inside| {
        objects.root(inside, inside.alloc(TypedQueue { first: Link::default(), last: Link::default() })?)
    });
    let queue: Rooted<'_, TypedQueue<'static>> = queue.expect("memory");
    drive(size, laps, |numbers, removes| {
        let sum = mutator.enter(|inside| {
            let (queue, mut sum) = (queue.get(inside)?, 0_u64);
            for number in numbers {
                add_typed(inside, queue, number)?;
                sum = sum.wrapping_add(if removes { remove_typed(inside, queue) } else { 0 });
            }
            Ok::<u64, Error>(sum)
        });
        sum.expect("memory")
    })
}

struct Cell {
    number: u64,
    next: Option<NonNull<Cell>>,
}

fn manual(store: &impl Store, size: Size, laps: &mut Laps) -> u64 {
    let layout = Layout::new::<Cell>();
    let make = |number| {
        let cell = store.alloc(layout).expect("memory").cast::<Cell>();
        // SAFETY: room for a cell was just allocated.
        unsafe { cell.write(Cell { number, next: None }) };
        cell
    };
    // The first cell was removed already.
    let mut last = make(0);
    let mut first = last;
    drive(size, laps, |numbers, removes| {
        let mut sum = 0_u64;
        for number in numbers {
            let cell = make(number);
            // SAFETY: the last cell is in the queue, and only this thread uses it.
            unsafe { last.as_mut() }.next = Some(cell);
            last = cell;
            if removes {
                // SAFETY: the cell that was removed last is freed after this.
                let next = unsafe { first.as_ref() }.next.expect("more were added than removed");
                // SAFETY: it came from this store, and nothing leads to it any more.
                unsafe { store.free(first.cast(), layout) };
                first = next;
                // SAFETY: this cell is freed when the next one is removed.
                sum = sum.wrapping_add(unsafe { first.as_ref() }.number);
            }
        }
        sum
    })
}

#[derive(Collect)]
#[collect(no_drop)]
struct ArenaCell<'gc> {
    number: u64,
    next: Lock<Option<ArenaGc<'gc, ArenaCell<'gc>>>>,
}

#[derive(Collect)]
#[collect(no_drop)]
struct ArenaQueue<'gc> {
    first: ArenaGc<'gc, ArenaCell<'gc>>,
    last: ArenaGc<'gc, ArenaCell<'gc>>,
}

impl<'gc> ArenaCell<'gc> {
    fn make(context: &Mutation<'gc>, number: u64) -> ArenaGc<'gc, Self> {
        ArenaGc::new(context, Self { number, next: Lock::new(None) })
    }
}

fn gc_arena(pacing: Pacing, size: Size, laps: &mut Laps) -> u64 {
    let mut arena = Arena::<Rootable![ArenaQueue<'_>]>::new(|context| {
        let first = ArenaCell::make(context, 0);
        ArenaQueue { first, last: first }
    });
    arena.metrics().set_pacing(pacing);
    drive(size, laps, |numbers, removes| {
        let sum = arena.mutate_root(|context, queue| {
            let mut sum = 0_u64;
            for number in numbers {
                let cell = ArenaCell::make(context, number);
                let last = ArenaGc::write(context, queue.last);
                gc_arena::barrier::field!(last, ArenaCell, next).unlock().set(Some(cell));
                queue.last = cell;
                if removes {
                    queue.first = queue.first.next.get().expect("more were added than removed");
                    sum = sum.wrapping_add(queue.first.number);
                }
            }
            sum
        });
        arena.collect_debt();
        sum
    })
}

#[derive(BoaTrace, Finalize)]
struct BoaCell {
    number: u64,
    next: GcRefCell<Option<BoaGc<BoaCell>>>,
}

fn boa_gc(size: Size, laps: &mut Laps) -> u64 {
    let make = |number| BoaGc::new(BoaCell { number, next: GcRefCell::new(None) });
    let mut last = make(0);
    let mut first = last.clone();
    drive(size, laps, |numbers, removes| {
        let mut sum = 0_u64;
        for number in numbers {
            let cell = make(number);
            *last.next.borrow_mut() = Some(cell.clone());
            last = cell;
            if removes {
                let next = first.next.borrow().clone().expect("more were added than removed");
                first = next;
                sum = sum.wrapping_add(first.number);
            }
        }
        sum
    })
}
