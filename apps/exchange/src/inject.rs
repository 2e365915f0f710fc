//! Deliberate faults, to see that the contract sees them: one function each (design/exchange.md `.inject`).

use core::alloc::Layout;
use core::hint::black_box;
use core::sync::atomic::{AtomicU8, Ordering};

use tripoint::{ArenaVm, Mvff, MvffOptions, Store};

/// What the hot thread does once, against the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
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
}

/// More than any pool has, in bytes.
const MUCH: usize = 1 << 30;

/// More than a page and its neighbours, in bytes.
const MAPPED: usize = 1 << 20;

/// Memory that nothing else touches; its middle is on a page of its own.
static FRESH: [AtomicU8; MAPPED] = [const { AtomicU8::new(0) }; MAPPED];

/// What an injection needs.
pub struct Injector<'a> {
    injection: Option<Injection>,
    pool: Mvff<&'a ArenaVm>,
}

impl<'a> Injector<'a> {
    /// Gets ready, before the arena is frozen.
    ///
    /// # Errors
    /// If the arena has no memory for a pool.
    pub fn new(injection: Option<Injection>, arena: &'a ArenaVm) -> Result<Self, String> {
        let pool = Mvff::create(arena, MvffOptions::default()).map_err(|error| error.to_string())?;
        Ok(Self { injection, pool })
    }

    /// Whether there is anything to do.
    pub const fn is_armed(&self) -> bool {
        self.injection.is_some()
    }

    /// Does it, once.
    #[cold]
    pub fn commit(&mut self) {
        match self.injection.take() {
            None => {}
            Some(Injection::Alloc) => inject_alloc(),
            Some(Injection::Growth) => inject_growth(&self.pool),
            Some(Injection::Fault) => inject_fault(),
            #[cfg(unix)]
            Some(Injection::Mmap) => inject_mmap(),
        }
    }
}

#[inline(never)]
fn inject_alloc() {
    drop(black_box(Box::new(1_u64)));
}

#[inline(never)]
fn inject_growth(pool: &impl Store) {
    // The arena refuses: that is the event.
    let refused = Layout::from_size_align(MUCH, 8).map(|layout| pool.alloc(layout).is_err());
    let _ = black_box(&refused);
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
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses; the mapping that it returned, which no other code has
    // seen, is unmapped whole.
    unsafe {
        let mapped = libc::mmap(core::ptr::null_mut(), MAPPED, access, flags, -1, 0);
        if mapped != libc::MAP_FAILED {
            libc::munmap(black_box(mapped), MAPPED);
        }
    }
}
