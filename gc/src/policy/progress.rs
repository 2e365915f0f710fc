//! A collection in steps, between two of them (design/gc-steps.md).

use core::mem;

use crate::scans::scan::Scan;

/// How far a collection in steps is, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    phase: Phase,
    /// What its steps have scanned and fixed so far.
    work: Marked,
}

/// What is being done in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is no collection in steps.
    #[default]
    Idle,
    /// Some objects are marked.
    Marking,
    /// All are marked that are kept, and some segments wait to be swept.
    Sweeping,
}

/// What a part of the marking did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marked {
    /// The bytes of objects that were scanned.
    pub(crate) examined: usize,
    /// How many references were fixed.
    pub(crate) references: usize,
    /// How many registrations for finalization were looked at.
    pub(crate) registrations: usize,
    /// How many typed roots were looked at.
    pub(crate) roots: usize,
}

impl Marked {
    /// What a scan has done so far.
    pub(crate) const fn by(scan: &Scan<'_>) -> Self {
        Self {
            examined: scan.examined(),
            references: scan.references(),
            registrations: scan.registrations(),
            roots: scan.roots(),
        }
    }
}

impl Progress {
    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// A step has marked so much, and the next begins in `phase`.
    pub(crate) const fn go_on(&mut self, phase: Phase, step: Marked) {
        self.phase = phase;
        self.work.examined += step.examined;
        self.work.references += step.references;
        self.work.registrations += step.registrations;
        self.work.roots += step.roots;
    }

    /// There is no collection in steps any more. Returns what its steps have marked.
    pub(crate) fn end(&mut self) -> Marked {
        mem::take(self).work
    }
}
