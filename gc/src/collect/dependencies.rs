//! Location dependencies, for the program.

use tripoint_core::{Arena, BarrierPair};

use crate::heaps::mutator::Mutator;
use crate::locations::dependency::LocationDependency;

impl<A: Arena, B: BarrierPair> Mutator<'_, A, B> {
    /// A dependency on no address so far. To reset a dependency is to replace it by a new one.
    #[must_use]
    pub fn reset_dependency(&self) -> LocationDependency {
        self.heap().history().dependency()
    }

    /// Whether an object may have moved since its address was [added](LocationDependency::add). If this returns false,
    /// no such object has moved. If it returns true, it may be that only another object nearby has. It returns false in
    /// a heap whose classes do not move objects. Takes constant time. The dependency has to be of this heap.
    #[must_use]
    pub fn is_stale(&self, dependency: LocationDependency) -> bool {
        self.heap().history().is_stale(dependency)
    }
}
