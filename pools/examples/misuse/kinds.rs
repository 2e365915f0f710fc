//! The pools that are searched, with what is in front of them, and the faults.

use core::fmt;

/// A pool class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Mfs,
    Mvff,
    Mvt,
    Tlsf,
}

/// What is in front of the pool, besides magazines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// Nothing.
    Bare,
    /// Two caches.
    Caches,
    /// Two caches with a depot.
    Depot,
    /// A point, and for units also caches and returns.
    Points,
}

/// A class, and what is in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) Class, pub(crate) Front);

impl Kind {
    pub(crate) const ALL: [Self; 16] = {
        use Class::{Mfs, Mvff, Mvt, Tlsf};
        use Front::{Bare, Caches, Depot, Points};
        [
            Self(Mfs, Bare),
            Self(Mfs, Caches),
            Self(Mfs, Depot),
            Self(Mfs, Points),
            Self(Mvff, Bare),
            Self(Mvff, Caches),
            Self(Mvff, Depot),
            Self(Mvff, Points),
            Self(Mvt, Bare),
            Self(Mvt, Caches),
            Self(Mvt, Depot),
            Self(Mvt, Points),
            Self(Tlsf, Bare),
            Self(Tlsf, Caches),
            Self(Tlsf, Depot),
            Self(Tlsf, Points),
        ]
    };

    /// Whether the fault harms no other object, by what is promised (design/hardening.md `.req.once`).
    pub(crate) fn promises(self, fault: Option<Fault>) -> bool {
        let divides_fills = self.0 != Class::Mfs && self.1 == Front::Points;
        let is_missed = match fault {
            Some(Fault::Interior) => true,
            Some(Fault::DoubleLater) => matches!(self.0, Class::Mvff | Class::Tlsf),
            _ => false,
        };
        !(divides_fills && is_missed)
    }

    /// The names of its ways, in their order.
    pub(crate) fn ways(self) -> Vec<&'static str> {
        let caches = ["cache A", "cache B"].as_slice();
        let others: &[&[&str]] = match self {
            Self(_, Front::Bare) => &[],
            Self(Class::Mfs, Front::Points) => &[caches, &["returns", "point"]],
            Self(_, Front::Points) => &[&["point"]],
            Self(Class::Mfs, Front::Caches) => &[caches, &["returns"]],
            Self(_, Front::Caches) => &[caches],
            Self(_, Front::Depot) => &[caches, &["depot"]],
        };
        ["pool", "many"].into_iter().chain(others.concat()).collect()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let front = match self.1 {
            Front::Bare => "",
            Front::Caches => ", caches",
            Front::Depot => ", depot",
            Front::Points => ", points",
        };
        write!(f, "{:?}{front}", self.0)
    }
}

/// What is done wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Freed twice, by any two ways.
    Double,
    /// Freed twice, with other operations between, while the memory is not allocated again.
    DoubleLater,
    /// The first word is written over after the free.
    Word,
    /// A byte of it.
    Byte,
    /// All of it.
    All,
    /// Memory of no pool is freed.
    Foreign,
    /// A pointer into an object is freed.
    Interior,
    /// Memory of the pool is freed that was never allocated.
    NeverUsed,
}

impl Fault {
    pub(crate) const ALL: [Self; 8] = [
        Self::Double,
        Self::DoubleLater,
        Self::Word,
        Self::Byte,
        Self::All,
        Self::Foreign,
        Self::Interior,
        Self::NeverUsed,
    ];
}
