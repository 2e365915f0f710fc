//! Location dependencies, for the program.

use tripoint_core::{Arena, BarrierPair};

use crate::locations::dependency::LocationDependency;
use crate::stops::mutator::Mutator;

impl<A: Arena, B: BarrierPair> Mutator<'_, A, B> {
    /// A dependency on no address so far. It is reset by replacing it by a new one.
    #[must_use]
    pub fn reset_dependency(&self) -> LocationDependency {
        self.heap().history().dependency()
    }

    /// Whether an object may have moved since its address was [added](LocationDependency::add). If it returns false, none has. If it
    /// returns true, another object nearby may have been the one. Never true in a heap whose classes do not move objects. Constant time.
    #[must_use]
    pub fn is_stale(&self, dependency: LocationDependency) -> bool {
        self.heap().history().is_stale(dependency)
    }
}
