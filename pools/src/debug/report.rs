//! What a debug pool found, in words that lead to the culprit.

#![forbid(unsafe_code)]

use core::fmt;

use tripoint_core::{Addr, PoolId};

/// What a client did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Freed what is not allocated: it was freed before, or never handed out.
    DoubleFree,
    /// Freed what lies in no memory of the pool.
    Foreign,
    /// Freed a pointer into the middle of an object.
    Interior,
    /// Freed an object with another layout than it was allocated with.
    WrongLayout {
        /// The size it was allocated with, in bytes; for an object of an allocation
        /// point, what is left of the memory the point had.
        allocated: usize,
        /// The alignment it was allocated with, in bytes; one if that is not
        /// known.
        align: usize,
    },
    /// Wrote behind the end of an object.
    Overrun {
        /// The first byte of the fence that changed.
        at: Addr,
    },
    /// Wrote to an object after freeing it.
    UsedAfterFree {
        /// The first byte that changed.
        at: Addr,
    },
}

impl Fault {
    /// What should have been true.
    pub(super) const fn rule(self) -> &'static str {
        match self {
            Self::DoubleFree => "what is freed is allocated",
            Self::Foreign => "what is freed lies in the pool",
            Self::Interior => "what is freed is the base of an object",
            Self::WrongLayout { .. } => "objects are freed with the layout they were allocated with",
            Self::Overrun { .. } => "nothing writes behind an object",
            Self::UsedAfterFree { .. } => "nothing writes to what was freed",
        }
    }
}

/// A fault, and where: the pool's class and number, the object's address and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugReport {
    /// The class of the pool under the debug pool.
    pub class: &'static str,
    /// The pool's number.
    pub pool: PoolId,
    /// The address of the object, or what was freed as one.
    pub object: Addr,
    /// The size of the object in bytes, as the client said it last.
    pub size: usize,
    /// What was wrong.
    pub fault: Fault,
}

impl fmt::Display for DebugReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, pool, object, size, fault } = self;
        write!(f, "{class} #{}: object {object} of {size} bytes ", pool.get())?;
        match fault {
            Fault::DoubleFree => write!(f, "was freed, and is not allocated"),
            Fault::Foreign => write!(f, "was freed, and is not in this pool"),
            Fault::Interior => write!(f, "was freed, and is not the base of an object"),
            Fault::WrongLayout { allocated, align } => {
                write!(f, "was freed, and was allocated with {allocated} bytes aligned to {align}")
            }
            Fault::Overrun { at } => write!(f, "was overrun: the fence is damaged at {at}"),
            Fault::UsedAfterFree { at } => write!(f, "was written to at {at} after it was freed"),
        }
    }
}

/// The first faults of a pool, and how many there were.
#[derive(Clone, Copy, Debug)]
pub struct DebugReports {
    first: [Option<DebugReport>; Self::KEPT],
    count: usize,
}

impl DebugReports {
    /// How many reports are kept: the first ones, since later ones follow from
    /// them.
    pub const KEPT: usize = 16;

    pub(super) const fn new() -> Self {
        Self { first: [None; Self::KEPT], count: 0 }
    }

    pub(super) fn add(&mut self, report: DebugReport) {
        if let Some(place) = self.first.get_mut(self.count) {
            *place = Some(report);
        }
        self.count += 1;
    }

    /// How many faults there were, kept or not.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The reports that were kept, the earliest first.
    pub fn iter(&self) -> impl Iterator<Item = &DebugReport> {
        self.first.iter().flatten()
    }
}
