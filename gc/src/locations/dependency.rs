//! Location dependencies: the addresses that a program computed something from, for example hashes (MPS: manual,
//! "location dependency"; design/gc.md `.location.use`).

use tripoint_core::Addr;

use crate::segments::zones::Zones;

/// The addresses that something was computed from, in two words: enough to say whether one of these objects may have
/// moved since. A dependency is of the heap whose mutator [reset](crate::Mutator::reset_dependency) it.
///
/// [Add](LocationDependency::add) an address before you hash it. If a table does not find a key and its dependency is
/// [stale](crate::Mutator::is_stale), the key may be in the table under the hash of an earlier address. Then reset the
/// dependency, add and hash all keys again, and repeat the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationDependency {
    pub(crate) epoch: usize,
    pub(crate) zones: Zones,
}

impl LocationDependency {
    /// Adds the address of an object. It has to be the object's address now: the mutator has not given way since it
    /// read the address.
    pub fn add(&mut self, object: *const u8) {
        self.zones |= Zones::around(Addr::of(object));
    }

    /// Adds all addresses of `other`, which is of the same heap.
    pub fn merge(&mut self, other: Self) {
        // The one that began earlier: epochs wrap, and are less than half of all apart.
        if (self.epoch.wrapping_sub(other.epoch) as isize) > 0 {
            self.epoch = other.epoch;
        }
        self.zones |= other.zones;
    }
}
