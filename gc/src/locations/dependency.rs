//! What a program depends on if it computes with addresses of objects, for example hashes (MPS: manual,
//! "location dependency"; design/gc.md `.location.use`).

use tripoint_core::Addr;

use crate::references::zones::Zones;

/// The addresses that something was computed from, as far as is needed to say whether one of these objects
/// may have moved since: two words. It is of the heap whose mutator [reset](crate::Mutator::reset_dependency) it.
///
/// Before an address is hashed it is [added](LocationDependency::add). If a table does not find a key and its
/// dependency is [stale](crate::Mutator::is_stale), the key may be there under the hash of an address that it had: then the dependency is reset, all keys
/// are added and hashed again, and the search is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationDependency {
    pub(crate) epoch: usize,
    pub(crate) zones: Zones,
}

impl LocationDependency {
    /// It also depends on this address, which the object has now: nothing that the mutator did since the dependency was
    /// reset, or since the address was read, if that was later, gave way.
    pub fn add(&mut self, object: *const u8) {
        self.zones |= Zones::around(Addr::of(object));
    }

    /// It also depends on what `other` depends on, which is of the same heap.
    pub fn merge(&mut self, other: Self) {
        // The one that began earlier: epochs wrap, and are less than half of all apart.
        if (self.epoch.wrapping_sub(other.epoch) as isize) > 0 {
            self.epoch = other.epoch;
        }
        self.zones |= other.zones;
    }
}
