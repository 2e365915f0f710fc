//! What the contract asks of the memory it freezes.

use core::fmt;

use tripoint_core::{Arena, Result};

/// The memory of a program, as the end of a warm-up prepares it.
///
/// The driver calls `trim`, `merge`, `freeze`, `prefault` and `no_fork`, in that
/// order, on the control thread, while hot threads run: trimmed pages fault again,
/// so trimming must come before prefaulting, and what grows meanwhile would not be
/// prefaulted, so freezing must too (design/contract.md `.prepare`).
///
/// What is not needed may be left out, except freezing and thawing.
pub trait SteadyMemory {
    /// Gives spare memory back to the system.
    ///
    /// # Errors
    /// The warm-up fails with them; so for the others.
    fn trim(&self) -> Result<()> {
        Ok(())
    }

    /// Merges free memory and flushes what waits to be freed.
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

    /// Brings memory behind every page that is committed, used or not.
    ///
    /// # Errors
    /// See [`SteadyMemory::trim`].
    fn prefault(&self) -> Result<()> {
        Ok(())
    }

    /// Keeps the memory out of child processes, whose copies would make every
    /// page fault again in this one.
    ///
    /// # Errors
    /// See [`SteadyMemory::trim`].
    fn no_fork(&self) -> Result<()> {
        Ok(())
    }

    /// Allows growth again.
    fn thaw(&self);
}

/// Memory that the program keeps in order itself.
impl SteadyMemory for () {
    fn freeze(&self) -> Result<()> {
        Ok(())
    }

    fn thaw(&self) {}
}

/// One or more arenas that are frozen and thawed, and prefaulted by `prefault`.
///
/// ```
/// # use tripoint_contract::Arenas;
/// # use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
/// # use tripoint_core::Arena;
/// let arena = ArenaVm::create(ArenaVmOptions { inherit_on_fork: false, ..Default::default() })?;
/// let arenas: [&dyn Arena; 1] = [&arena];
/// let memory = Arenas::new(&arenas, || arena.prefault().map(drop));
/// # let _ = memory;
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct Arenas<'a, F> {
    arenas: &'a [&'a dyn Arena],
    prefault: F,
}

impl<'a, F: Fn() -> Result<()>> Arenas<'a, F> {
    /// These arenas. Forking is the affair of whoever created them.
    pub const fn new(arenas: &'a [&'a dyn Arena], prefault: F) -> Self {
        Self { arenas, prefault }
    }
}

impl<F: Fn() -> Result<()>> SteadyMemory for Arenas<'_, F> {
    fn freeze(&self) -> Result<()> {
        self.arenas.iter().for_each(|arena| arena.freeze());
        Ok(())
    }

    fn prefault(&self) -> Result<()> {
        (self.prefault)()
    }

    fn thaw(&self) {
        self.arenas.iter().for_each(|arena| arena.thaw());
    }
}

impl<F> fmt::Debug for Arenas<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arenas").field("arenas", &self.arenas.len()).finish_non_exhaustive()
    }
}
