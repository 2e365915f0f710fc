//! Deliberate faults, to see that the contract sees them: one function each, whose
//! name and line the alarm must tell (design/order-book.md `.inject`).

use core::alloc::Layout;
use core::hint::black_box;
use core::str::FromStr;
use core::sync::atomic::{AtomicU8, Ordering};
use core::time::Duration;

use tripoint::points::Control;
use tripoint::{AllocationPoint, ManualPool};

use crate::handoff::BLOCK_SIZE;
use crate::historian::Historian;
use crate::record::{Entry, entries_bound};

/// What the hot thread does once, against the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injection {
    /// Calls the global allocator.
    Alloc,
    /// Asks the frozen arena for more than it has.
    Growth,
    /// Touches a page for the first time.
    Fault,
    /// Maps memory, and unmaps it.
    #[cfg(unix)]
    Mmap,
    /// Calls C's `malloc`, which for so much maps memory.
    Malloc,
    /// Returns its buffer and has it filled again.
    Fill,
    /// Collects the history, while a record is being handled.
    Collection,
    /// Makes and drops this many boxes in one turn, by the global allocator.
    Burst(u32),
}

/// Every injection except bursts, by name.
const INJECTIONS: &[(&str, Injection)] = &[
    ("alloc", Injection::Alloc),
    ("growth", Injection::Growth),
    ("fault", Injection::Fault),
    #[cfg(unix)]
    ("mmap", Injection::Mmap),
    ("malloc", Injection::Malloc),
    ("fill", Injection::Fill),
    ("collection", Injection::Collection),
];

/// The most boxes of a burst.
const BURST_MAX: u32 = 1_000_000;

impl FromStr for Injection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let burst =
            || text.strip_prefix("burst=")?.parse().ok().filter(|count| (1..=BURST_MAX).contains(count));
        let named = INJECTIONS.iter().find(|(name, _)| *name == text).map(|&(_, injection)| injection);
        named.or_else(|| burst().map(Self::Burst)).ok_or_else(|| {
            let names: Vec<_> = INJECTIONS.iter().map(|&(name, _)| name).collect();
            format!("expected {}, or burst=N with N from 1 to {BURST_MAX}", names.join(", "))
        })
    }
}

/// More than any pool has, in bytes.
const MUCH: usize = 1 << 30;

/// More than a page and its neighbours, in bytes.
const MAPPED: usize = 1 << 20;

/// Bytes: more than C's allocator ever takes from its heap, so that it maps them.
const MAPPED_BY_MALLOC: usize = 64 << 20;

/// Memory that nothing else touches; its middle is on a page of its own.
static FRESH: [AtomicU8; MAPPED] = [const { AtomicU8::new(0) }; MAPPED];

impl Injection {
    /// Does it, to a point and its pool, and to the history.
    pub fn commit<S: ManualPool, C: Control>(
        self,
        pool: &S,
        point: &mut AllocationPoint<'_, S, C>,
        historian: Option<&mut Historian<'_>>,
    ) {
        match self {
            Self::Alloc => inject_alloc(),
            Self::Growth => inject_growth(pool),
            Self::Fault => inject_fault(),
            #[cfg(unix)]
            Self::Mmap => inject_mmap(),
            Self::Malloc => inject_malloc(),
            Self::Fill => inject_fill(point),
            Self::Collection => inject_collection(historian),
            Self::Burst(boxes) => inject_burst(boxes),
        }
    }
}

#[inline(never)]
fn inject_alloc() {
    drop(black_box(Box::new(1_u64)));
}

#[inline(never)]
fn inject_burst(boxes: u32) {
    for number in 0..boxes {
        drop(black_box(Box::new(number)));
    }
}

#[inline(never)]
fn inject_growth<S: ManualPool>(pool: &S) {
    // The arena refuses: that is the event.
    let refused = Layout::from_size_align(MUCH, 8).map(|layout| pool.alloc(layout).is_err());
    black_box(&refused);
}

#[inline(never)]
fn inject_fault() {
    // Nothing reads it, which the optimiser must not know.
    black_box(&FRESH)[MAPPED / 2].store(1, Ordering::Relaxed);
}

#[cfg(unix)]
#[inline(never)]
fn inject_mmap() {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses; the
    // mapping that it returned, which no other code has seen, is unmapped
    // whole.
    unsafe {
        let mapped = libc::mmap(core::ptr::null_mut(), MAPPED, access, flags, -1, 0);
        if mapped != libc::MAP_FAILED {
            libc::munmap(black_box(mapped), MAPPED);
        }
    }
}

#[inline(never)]
fn inject_malloc() {
    // SAFETY: allocated and freed once; freeing a null pointer does nothing.
    unsafe { libc::free(black_box(libc::malloc(black_box(MAPPED_BY_MALLOC)))) };
}

#[inline(never)]
fn inject_fill<S: ManualPool, C: Control>(point: &mut AllocationPoint<'_, S, C>) {
    point.empty();
    // As large as the buffer was, so that later records find room.
    drop(black_box(point.batch::<Entry>(entries_bound(BLOCK_SIZE))));
}

#[inline(never)]
fn inject_collection(historian: Option<&mut Historian<'_>>) {
    // There is one: the command line is refused otherwise.
    if let Some(historian) = historian {
        let _ = black_box(historian.mutator().collect(Duration::MAX));
    }
}
