//! What the contract asks of the memory it freezes.

use core::fmt;

use bitflags::bitflags;
use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{Arena, Result};

use crate::detectors::platform;

bitflags! {
    /// Steps of the preparation that may fail without failing the warm-up.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MemorySteps: usize {
        /// Returning the free memory of C's allocator.
        const TRIM_HEAP = 1 << 0;
        /// Huge pages behind the arenas that are configured to have them.
        const MERGE = 1 << 1;
        /// Keeping arenas out of child processes.
        const NO_FORK = 1 << 2;
        /// Locking the process's memory.
        const LOCK = 1 << 3;
    }
}

impl MemorySteps {
    /// The names of the steps in the set, as in reports.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        [
            (Self::TRIM_HEAP, "trim_heap"),
            (Self::MERGE, "merge"),
            (Self::NO_FORK, "no_fork"),
            (Self::LOCK, "lock"),
        ]
        .into_iter()
        .filter(move |(step, _)| self.contains(*step))
        .map(|(_, name)| name)
    }
}

/// The memory of a program, as the end of a warm-up prepares it.
///
/// The warm-up calls `trim`, `merge`, `freeze`, `prefault` and `no_fork`, in that
/// order, on the coordinator, while hot threads run: trimmed pages fault again,
/// so trimming must come before prefaulting, and what grows meanwhile would not be
/// prefaulted, so freezing must too ([design/contract.md `.prepare`](crate::design::contract)).
///
/// Only freezing and thawing must be implemented; the other steps do nothing by default.
pub trait SteadyMemory {
    /// Returns spare memory to the system.
    ///
    /// # Errors
    /// Any error fails the warm-up. The same holds for the other steps.
    fn trim(&self) -> Result<()> {
        Ok(())
    }

    /// Merges free memory, and frees what waits to be freed.
    ///
    /// # Errors
    /// See [`SteadyMemory::trim`].
    fn merge(&self) -> Result<()> {
        Ok(())
    }

    /// Forbids growth. May be called more than once.
    ///
    /// # Errors
    /// See [`SteadyMemory::trim`].
    fn freeze(&self) -> Result<()>;

    /// Puts memory behind every committed page, used or not.
    ///
    /// # Errors
    /// See [`SteadyMemory::trim`].
    fn prefault(&self) -> Result<()> {
        Ok(())
    }

    /// Keeps the memory out of child processes. Their copies would make every page fault again
    /// in this process.
    ///
    /// # Errors
    /// See [`SteadyMemory::trim`].
    fn no_fork(&self) -> Result<()> {
        Ok(())
    }

    /// Allows growth again.
    fn thaw(&self);

    /// The steps that were tried and failed, but did not fail the warm-up. They are in the report.
    fn missed(&self) -> MemorySteps {
        MemorySteps::empty()
    }
}

/// No memory to prepare: for a program without arenas, or one that prepares them itself.
impl SteadyMemory for () {
    fn freeze(&self) -> Result<()> {
        Ok(())
    }

    fn thaw(&self) {}
}

/// One or more arenas, and with them the heap of the process. The end of a warm-up prepares
/// them in these steps:
///
/// | step | what is done | if it fails |
/// |---|---|---|
/// | trim | C's allocator and each arena return spare memory to the system | it is in the report |
/// | merge | each arena that is to have huge pages gets them at once | it is in the report |
/// | freeze | no arena grows any more | |
/// | prefault | memory is put behind all that is committed | the warm-up fails |
/// | | and, [if wanted](Arenas::with_locked_process), the process is locked | it is in the report |
/// | no-fork | children forked from now on do not have the arenas: they must `exec` or `_exit` | it is in the report |
///
/// ```
/// # use tripoint_contract::Arenas;
/// # use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
/// # use tripoint_core::Arena;
/// let arena = ArenaVm::create(ArenaVmOptions::default())?;
/// let arenas: [&dyn Arena; 1] = [&arena];
/// let memory = Arenas::new(&arenas).with_locked_process();
/// # let _ = memory;
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct Arenas<'a> {
    arenas: &'a [&'a dyn Arena],
    lock: bool,
    /// The [`MemorySteps`] that failed.
    missed: AtomicUsize,
}

impl<'a> Arenas<'a> {
    /// The memory of these arenas.
    #[must_use]
    pub fn new(arenas: &'a [&'a dyn Arena]) -> Self {
        Self { arenas, lock: false, missed: AtomicUsize::new(0) }
    }

    /// Also locks everything else that the process has mapped, and brings in programs and
    /// libraries (on Linux; `linux::lock_memory` reports how much).
    #[must_use]
    pub const fn with_locked_process(mut self) -> Self {
        self.lock = true;
        self
    }

    /// Notes whether a step was done.
    fn note(&self, step: MemorySteps, done: bool) {
        if done {
            self.missed.fetch_and(!step.bits(), Ordering::Relaxed);
        } else {
            self.missed.fetch_or(step.bits(), Ordering::Relaxed);
        }
    }
}

impl SteadyMemory for Arenas<'_> {
    fn trim(&self) -> Result<()> {
        self.note(MemorySteps::TRIM_HEAP, platform::trim_heap());
        for arena in self.arenas {
            arena.trim();
        }
        Ok(())
    }

    fn merge(&self) -> Result<()> {
        let merged = self.arenas.iter().fold(true, |merged, arena| merged & arena.merge().is_ok());
        self.note(MemorySteps::MERGE, merged);
        Ok(())
    }

    fn freeze(&self) -> Result<()> {
        self.arenas.iter().for_each(|arena| arena.freeze());
        Ok(())
    }

    fn prefault(&self) -> Result<()> {
        self.arenas.iter().try_for_each(|arena| arena.prefault().map(drop))?;
        self.note(MemorySteps::LOCK, !self.lock || platform::lock_memory(self.arenas));
        Ok(())
    }

    fn no_fork(&self) -> Result<()> {
        let kept = self.arenas.iter().fold(true, |kept, arena| kept & arena.keep_from_children().is_ok());
        self.note(MemorySteps::NO_FORK, kept);
        Ok(())
    }

    fn thaw(&self) {
        self.arenas.iter().for_each(|arena| arena.thaw());
    }

    fn missed(&self) -> MemorySteps {
        MemorySteps::from_bits_truncate(self.missed.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Arenas<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arenas").field("arenas", &self.arenas.len()).finish_non_exhaustive()
    }
}
