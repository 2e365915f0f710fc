//! The arena, in a static, and the pools in it.
//!
//! All are made at first use and stay for good, so that interrupt handlers may
//! keep what they need of them.

use core::mem::MaybeUninit;

use tripoint::{
    Arena as _, CheckLevel, ClientArena, ClientArenaOptions, Mfs, MfsOptions, Mvff, MvffOptions, Result, Snc,
    SncOptions, UnitOf,
};
use tripoint_core::internal::Once;

use crate::nursery::Nursery;
use crate::{Failure, ensure};

/// The bytes of the arena's memory.
pub(crate) const SIZE: usize = 16 << 10;

/// The bytes of a grain.
const GRAIN: usize = 256;

/// An arena that all code may use forever.
pub(crate) type Arena = &'static ClientArena<'static>;

/// A measurement: a kind of object that firmware allocates often.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) number: u32,
    pub(crate) values: [u32; 7],
}

/// The pool of samples.
pub(crate) type Samples = Mfs<Arena, UnitOf<Sample>>;

/// The pool of messages: objects of any size.
pub(crate) type Messages = Mvff<Arena>;

/// The pool of what lives for one round of a loop.
pub(crate) type Rounds = Snc<Arena>;

/// An arena of its own for what is collected, so that nothing else counts there.
pub(crate) fn collected() -> Result<Arena> {
    #[repr(align(256))]
    struct Memory([MaybeUninit<u8>; SIZE]);
    static mut MEMORY: Memory = Memory([MaybeUninit::uninit(); SIZE]);
    static ARENA: Once<ClientArena<'static>> = Once::new();

    ARENA.get_or_try_init(|| {
        let memory = &raw mut MEMORY;
        // SAFETY: nothing else names this MEMORY; this is run by one caller at a
        // time, and not again once it has succeeded.
        let memory = unsafe { &mut (*memory).0 };
        ClientArena::create(memory, ClientArenaOptions { grain: Some(GRAIN), event_hook: None })
    })
}

/// The arena.
pub(crate) fn arena() -> Result<Arena> {
    #[repr(align(256))]
    struct Memory([MaybeUninit<u8>; SIZE]);
    static mut MEMORY: Memory = Memory([MaybeUninit::uninit(); SIZE]);
    static ARENA: Once<ClientArena<'static>> = Once::new();

    ARENA.get_or_try_init(|| {
        let memory = &raw mut MEMORY;
        // SAFETY: nothing else names MEMORY; this is run by one caller at a
        // time, and not again once it has succeeded.
        let memory = unsafe { &mut (*memory).0 };
        ClientArena::create(memory, ClientArenaOptions { grain: Some(GRAIN), event_hook: None })
    })
}

/// The pool of samples.
pub(crate) fn samples() -> Result<&'static Samples> {
    static SAMPLES: Once<Samples> = Once::new();
    let options = MfsOptions { extend_by: 2 * GRAIN, fill_size: GRAIN };
    SAMPLES.get_or_try_init(|| Mfs::create(arena()?, UnitOf::new(), options))
}

/// The pool of messages. It returns free memory to the arena.
pub(crate) fn messages() -> Result<&'static Messages> {
    static MESSAGES: Once<Messages> = Once::new();
    let options = MvffOptions { extend_by: GRAIN, fill_size: GRAIN, spare: 0, bin_blocks: 0 };
    MESSAGES.get_or_try_init(|| Mvff::create(arena()?, options))
}

/// The pool of what lives for one round.
pub(crate) fn rounds() -> Result<&'static Rounds> {
    static ROUNDS: Once<Rounds> = Once::new();
    let options = SncOptions { extend_by: GRAIN, fill_size: GRAIN };
    ROUNDS.get_or_try_init(|| Snc::create(arena()?, options))
}

/// The pool whose buffers are flipped.
pub(crate) fn nursery() -> Result<&'static Nursery> {
    static NURSERY: Once<Nursery> = Once::new();
    NURSERY.get_or_try_init(|| Nursery::create(arena()?))
}

/// Checks the arena's counters against the bytes that were allocated through
/// allocation points, all of them empty again.
pub(crate) fn check_counters(allocated: u64) -> Result<(), Failure> {
    use tripoint::Check;

    let counts = arena()?.counts();
    let used = counts.fill_mutator.get() - counts.empty_mutator.get();
    ensure(used == allocated, "bytes filled less bytes emptied are what was allocated")?;
    ensure(counts.alloc_mutator.get() == allocated, "the arena counted what was allocated")?;
    ensure(arena()?.check(CheckLevel::Deep).is_ok(), "the arena is sound")?;
    ensure(samples()?.check(CheckLevel::Deep).is_ok(), "the pool of samples is sound")?;
    ensure(messages()?.check(CheckLevel::Deep).is_ok(), "the pool of messages is sound")?;
    ensure(rounds()?.check(CheckLevel::Deep).is_ok(), "the pool of rounds is sound")?;
    ensure(nursery()?.check(CheckLevel::Deep).is_ok(), "the nursery is sound")
}
