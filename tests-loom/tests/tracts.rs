//! Tracts on their way to a pool and back, against threads that ask which pool
//! an address belongs to (design/arena.md `.tract.owner`, `.tract.popped`).
//!
//! Bound: none for lookups, three preemptions if two threads take the lock.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::sync::Arc;

use tests_loom::{UnsafeCell, model, model_unbounded, thread};
use tripoint_core::internal::{AtomicUsize, Ordering, PartMemory, Tract, TractTable, fence};
use tripoint_core::{Block, CheckLevel, Error, Lock, PoolId};

const GRAINS: u32 = 4;
const NEIGHBOUR: PoolId = PoolId::new(2).unwrap();
const POOL: PoolId = PoolId::new(3).unwrap();
const OTHER: PoolId = PoolId::new(4).unwrap();

/// An arena's table with its lock, and its memory, which is there or not.
struct Grains {
    table: Lock<TractTable>,
    entries: Vec<Tract>,
    /// How many entries may be read, as in the arena with virtual memory.
    known: AtomicUsize,
    /// Set while memory is behind the grain.
    committed: Vec<UnsafeCell<bool>>,
}

// SAFETY: whether memory is there is for its owner to say, which is what is modelled.
unsafe impl Send for Grains {}
// SAFETY: shared, whether memory is there is still for its owner to say, which is what is
// modelled.
unsafe impl Sync for Grains {}

impl Grains {
    /// One grain is the neighbour's, all others are wilderness.
    fn new() -> Self {
        let grains = Self {
            table: Lock::new(TractTable::new(GRAINS)),
            entries: (0..GRAINS).map(|_| Tract::new()).collect(),
            known: AtomicUsize::new(GRAINS as usize),
            committed: (0..GRAINS).map(|_| UnsafeCell::new(false)).collect(),
        };
        assert_eq!(grains.take(NEIGHBOUR), Ok(0));
        grains
    }

    fn set_committed(&self, index: u32, there: bool) {
        // SAFETY: the grain is popped, by this thread; the scheduler reports any other use.
        self.committed[index as usize].with_mut(|committed| unsafe { *committed = there });
    }

    fn is_committed(&self, index: u32) -> bool {
        // SAFETY: the grain is popped or allocated, by this thread; the scheduler reports any
        // other use.
        self.committed[index as usize].with(|committed| unsafe { *committed })
    }

    /// Allocates a grain to `pool`: a spare one, or else a void one, which is
    /// committed without the lock.
    fn take(&self, pool: PoolId) -> Result<u32, Error> {
        if let Some(index) = self.table.lock().take_spare(&self.entries, 1, pool) {
            return Ok(index);
        }
        let index = self.table.lock().pop_void(&self.entries, 1).map_err(|_| Error::Limit)?;
        self.set_committed(index, true);
        self.table.lock().allot(&self.entries, index, 1, pool);
        Ok(index)
    }

    /// Takes a pool's grain back: it is spare.
    fn give(&self, index: u32) {
        self.table.lock().give_spare(&self.entries, index, 1);
    }

    /// Decommits what is spare, without the lock.
    fn trim(&self) {
        let popped = self.table.lock().pop_spare(&self.entries, GRAINS, true);
        if let Some((index, count)) = popped {
            (index..index + count).for_each(|index| self.set_committed(index, false));
            self.table.lock().give_void(&self.entries, index, count);
        }
    }

    fn owner_of(&self, index: u32) -> Option<PoolId> {
        TractTable::owner_of(&self.entries[..self.known.load(Ordering::Acquire)], index)
    }

    fn check(&self) {
        assert_eq!(self.table.lock().check(&self.entries, CheckLevel::Deep), Ok(()));
    }
}

/// Takes a grain and passes it on, by a word; the thread that gets it finds its owner.
fn passed_on(pass_on: fn(&Grains, &AtomicUsize)) {
    model_unbounded(move || {
        let shared = Arc::new((Grains::new(), AtomicUsize::new(0)));
        let owner = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || pass_on(&shared.0, &shared.1))
        };
        let (grains, word) = &*shared;
        // Either answer is right, but not an owner that never was.
        assert!(matches!(grains.owner_of(1), None | Some(POOL)), "an owner that never was");
        let index = word.load(Ordering::Acquire);
        if index != 0 {
            assert_eq!(grains.owner_of(index as u32), Some(POOL), "the owner was not found");
            assert!(grains.is_committed(index as u32), "no memory is there");
        }
        owner.join().unwrap();
    });
}

#[test]
fn from_an_address_the_owner_is_found() {
    passed_on(|grains, word| {
        let index = grains.take(POOL).unwrap();
        word.store(index as usize, Ordering::Release);
    });
}

/// The twin: the address is passed on before it belongs to the pool.
#[test]
#[should_panic(expected = "the owner was not found")]
fn passed_on_too_early_its_owner_is_not_found() {
    passed_on(|grains, word| {
        let index = grains.table.lock().pop_void(&grains.entries, 1).unwrap();
        grains.set_committed(index, true);
        word.store(index as usize, Ordering::Release);
        grains.table.lock().allot(&grains.entries, index, 1, POOL);
    });
}

/// The twin: nothing orders the address after its owner.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "the owner was not found"))]
fn passed_on_without_order_its_owner_is_not_found() {
    passed_on(|grains, word| {
        let index = grains.take(POOL).unwrap();
        word.store(index as usize, Ordering::Relaxed);
    });
}

/// A grain that stays allocated is found throughout, whatever happens to its
/// neighbours.
fn neighbours(free: fn(&Grains, u32)) {
    model_unbounded(move || {
        let grains = Arc::new(Grains::new());
        let index = grains.take(POOL).unwrap();
        let other = {
            let grains = Arc::clone(&grains);
            thread::spawn(move || {
                free(&grains, index);
                grains.take(OTHER).unwrap();
            })
        };
        assert_eq!(grains.owner_of(0), Some(NEIGHBOUR), "the neighbour was lost");
        let owner = grains.owner_of(index);
        assert!(matches!(owner, None | Some(POOL | OTHER)), "an owner that never was");
        assert_eq!(grains.owner_of(0), Some(NEIGHBOUR), "the neighbour was lost");
        other.join().unwrap();
        assert_eq!(grains.owner_of(index), Some(OTHER));
    });
}

#[test]
fn neighbours_are_found_throughout() {
    neighbours(Grains::give);
}

/// The twin: one grain more is freed than belonged to the pool.
#[test]
#[should_panic(expected = "the neighbour was lost")]
fn freeing_too_much_loses_the_neighbour() {
    neighbours(|grains, _| {
        grains.table.lock().give_spare(&grains.entries, 0, 2);
        assert_eq!(grains.take(NEIGHBOUR), Ok(0));
    });
}

/// One thread takes a grain while another decommits what is spare: no thread gets a
/// grain without memory.
fn trimmed(trim: fn(&Grains)) {
    model(move || {
        let grains = Arc::new(Grains::new());
        let index = grains.take(POOL).unwrap();
        grains.give(index);
        let trimmer = {
            let grains = Arc::clone(&grains);
            thread::spawn(move || trim(&grains))
        };
        let taken = grains.take(OTHER).unwrap();
        assert!(grains.is_committed(taken), "Causality violation: no memory is there");
        grains.give(taken);
        trimmer.join().unwrap();
        grains.check();
    });
}

#[test]
fn what_is_taken_is_committed() {
    trimmed(Grains::trim);
}

/// The twin: grains are void before they are decommitted.
#[test]
#[should_panic(expected = "Causality violation: ")]
fn given_before_they_are_decommitted_grains_lose_memory() {
    trimmed(|grains| {
        let popped = grains.table.lock().pop_spare(&grains.entries, GRAINS, true);
        if let Some((index, count)) = popped {
            grains.table.lock().give_void(&grains.entries, index, count);
            (index..index + count).for_each(|index| grains.set_committed(index, false));
        }
    });
}

/// The memory of a grain that an arena shares between its pools.
#[repr(C, align(4096))]
struct GrainMemory([MaybeUninit<u8>; 4096]);

/// Shares a grain as an arena does it. What it writes first stands for the owners of the grain's parts, which come before
/// the fence.
fn supply(grains: &Grains, index: u32, memory: &mut GrainMemory) {
    grains.set_committed(index, true);
    let size = size_of::<GrainMemory>();
    // SAFETY: this is memory of that size, which nothing else uses for as long as the parts are.
    let grain = unsafe { Block::new(NonNull::from(memory).cast(), size) };
    // SAFETY: it is a whole grain of the size and with the alignment that the parts have, and nothing else uses it.
    unsafe { PartMemory::new(size).supply(grain) };
}

/// A spare grain becomes the arena's own, is written, and is joined, while a thread looks at it that knows its address only:
/// it finds nothing, or what was written.
fn shared(look: fn(&[Tract], u32) -> Option<u32>) {
    model_unbounded(move || {
        let grains = Arc::new(Grains::new());
        let index = grains.take(POOL).unwrap();
        grains.give(index);
        let sharer = {
            let grains = Arc::clone(&grains);
            thread::spawn(move || {
                assert_eq!(grains.take(PoolId::ARENA), Ok(index));
                supply(&grains, index, &mut GrainMemory([MaybeUninit::uninit(); 4096]));
                TractTable::join(&grains.entries, index, 1);
            })
        };
        if let Some(first) = look(&grains.entries, index) {
            assert_eq!(first, index, "Causality violation: another grain is found");
            assert!(grains.is_committed(first), "Causality violation: nothing is written yet");
        }
        sharer.join().unwrap();
        assert_eq!(look(&grains.entries, index), Some(index));
    });
}

#[test]
fn what_is_found_shared_is_written() {
    shared(TractTable::first_shared);
}

/// The twin: the entry may say that the grain is joined since it was in a run, before it was the arena's own.
#[test]
#[should_panic(expected = "Causality violation: ")]
fn joined_before_it_was_shared_it_is_not_written() {
    shared(|entries, index| {
        let (owner, first) = TractTable::first_joined(entries, index)?;
        fence(Ordering::Acquire);
        (owner == PoolId::ARENA).then_some(first)
    });
}

/// The table's own memory grows: its new length is known once its entries are
/// there. The words are those of the arena with virtual memory, which is not run
/// here, because the scheduler cannot watch entries of zero bytes.
fn extended(extend: fn(&Grains)) {
    model_unbounded(move || {
        let grains = Arc::new(Grains { known: AtomicUsize::new(1), ..Grains::new() });
        let other = {
            let grains = Arc::clone(&grains);
            thread::spawn(move || extend(&grains))
        };
        let known = grains.known.load(Ordering::Acquire) as u32;
        assert!(
            (1..known).all(|index| grains.is_committed(index)),
            "Causality violation: entries are not there"
        );
        other.join().unwrap();
    });
}

fn open_entries(grains: &Grains) {
    (1..GRAINS).for_each(|index| grains.set_committed(index, true));
}

fn publish_length(grains: &Grains, order: Ordering) {
    let _table = grains.table.lock();
    let known = grains.known.load(Ordering::Relaxed);
    grains.known.store(known.max(GRAINS as usize), order);
}

#[test]
fn entries_are_there_before_they_are_known() {
    extended(|grains| {
        open_entries(grains);
        publish_length(grains, Ordering::Release);
    });
}

/// The twin: the length is known before the entries are there.
#[test]
#[should_panic(expected = "Causality violation: ")]
fn known_before_they_are_there_entries_are_not() {
    extended(|grains| {
        publish_length(grains, Ordering::Release);
        open_entries(grains);
    });
}

/// The twin: only an ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "Causality violation"))]
fn known_without_order_entries_are_not_there() {
    extended(|grains| {
        open_entries(grains);
        publish_length(grains, Ordering::Relaxed);
    });
}
