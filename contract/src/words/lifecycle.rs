//! The phases of a process, which only advance (design/contract.md `.phase`).

use core::fmt;

use tripoint_core::internal::{AtomicUsize, Ordering, fence};
use tripoint_core::{Error, Result};

use crate::words::atomics::const_fn;

/// The phases of a process: what hot threads may do in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Phase {
    /// The process begins. Anything is allowed.
    Boot,
    /// Arenas, pools and threads are made. Anything is allowed.
    Init,
    /// Hot paths run to settle. Anything is allowed, and counted.
    Warmup,
    /// The contract holds.
    SteadyState,
    /// The contract is released. Anything is allowed.
    Teardown,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [Self::Boot, Self::Init, Self::Warmup, Self::SteadyState, Self::Teardown];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boot => "Boot",
            Self::Init => "Init",
            Self::Warmup => "Warmup",
            Self::SteadyState => "SteadyState",
            Self::Teardown => "Teardown",
        }
    }

    /// The only phase that may come before this one.
    const fn predecessor(self) -> Option<Self> {
        match self {
            Self::Boot => None,
            Self::Init => Some(Self::Boot),
            Self::Warmup => Some(Self::Init),
            Self::SteadyState => Some(Self::Warmup),
            Self::Teardown => Some(Self::SteadyState),
        }
    }

    const fn from_word(word: usize) -> Self {
        match word {
            0 => Self::Boot,
            1 => Self::Init,
            2 => Self::Warmup,
            3 => Self::SteadyState,
            _ => Self::Teardown,
        }
    }

    const fn wrong_order(self) -> Error {
        Error::Parameter(match self {
            Self::Boot => "Boot is where a process begins",
            Self::Init => "Init follows Boot only",
            Self::Warmup => "Warmup follows Init only",
            Self::SteadyState => "SteadyState follows Warmup only",
            Self::Teardown => "Teardown follows SteadyState only",
        })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The phase of a process. Any thread may read it; the coordinator advances it.
#[derive(Debug)]
pub struct Lifecycle {
    phase: AtomicUsize,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self::new()
    }
}

impl Lifecycle {
    const_fn! {
        /// A process in [`Phase::Boot`].
        #[must_use]
        pub fn new() -> Self {
            Self { phase: AtomicUsize::new(Phase::Boot as usize) }
        }
    }

    /// The phase at this moment: one load. A thread that reads a phase sees all that
    /// was done before it began.
    #[inline(always)]
    #[must_use]
    pub fn phase(&self) -> Phase {
        Phase::from_word(self.phase.load(Ordering::Acquire))
    }

    /// The phase, if threads may register in it: later they would escape the rehearsal.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the phase is Init or Warmup.
    pub(crate) fn phase_of_registration(&self) -> Result<Phase> {
        let phase = self.phase();
        let is_open = matches!(phase, Phase::Init | Phase::Warmup);
        is_open.then_some(phase).ok_or(Error::Parameter("threads register in Init or Warmup"))
    }

    /// Advances to `to`.
    ///
    /// # Errors
    /// [`Error::Parameter`] unless the phase is the one just before `to`. After an error the phase is
    /// as it was.
    pub fn advance(&self, to: Phase) -> Result<()> {
        let from = to.predecessor().ok_or(to.wrong_order())?;
        self.phase
            .compare_exchange(from as usize, to as usize, Ordering::AcqRel, Ordering::Relaxed)
            .map_err(|_| to.wrong_order())?;
        // Pairs with the fence of `Attendance::join`: a thread that joins is either found by a walk
        // after this, or has seen the new phase.
        fence(Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_next_phase_may_come() {
        for reached in 0..Phase::ALL.len() {
            for to in Phase::ALL {
                let lifecycle = Lifecycle::new();
                for &phase in &Phase::ALL[1..=reached] {
                    lifecycle.advance(phase).unwrap();
                }
                let outcome = lifecycle.advance(to);
                let is_next = to as usize == reached + 1;
                assert_eq!(outcome.is_ok(), is_next, "from {reached} to {to}");
                assert!(
                    is_next || matches!(outcome, Err(Error::Parameter(why)) if why.starts_with(to.name()))
                );
                assert_eq!(lifecycle.phase(), if is_next { to } else { Phase::ALL[reached] });
            }
        }
    }
}
