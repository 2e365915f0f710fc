//! A sample that another process took ([design/telemetry.md `.samples`](crate::design::telemetry)).

use crate::reader::values::{CodeAddresses, Text};
use crate::sample::Sample;
use crate::sampled_object::ObjectKind;

/// An object that another process sampled: what its
/// [`SampledObject`](crate::SampledObject) had, for estimates by [group](crate::Groups).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedSample {
    /// The address of the object; zero if addresses are left out.
    pub object: u64,
    /// Size, byte drawn, and mean: what estimates are made of.
    pub sample: Sample,
    /// By which way it was allocated; `None` if this reader does not know it.
    pub kind: Option<ObjectKind>,
    /// The thread that allocated it, as the system numbers threads.
    pub thread: u32,
    /// The number of the arena in the file; zero for none.
    pub arena: u64,
    /// The number of the pool in its arena, if that is known.
    pub pool: Option<u64>,
    /// The name of the pool's class; empty if that is not known.
    pub class: Text,
    /// The name of the object's type; empty if that is not known.
    pub type_name: Text,
    /// The call that allocated it; empty if that is not known, or if addresses are left out.
    pub site: CodeAddresses,
}

impl RecordedSample {
    /// The smallest power of two that is not less than the size: a key for groups of similar sizes.
    #[must_use]
    pub fn size_class(&self) -> u64 {
        self.sample.size_class()
    }
}
