//! The arena of a contender.

use tripoint::{ArenaVm, ArenaVmOptions, Error};

/// Creates an arena that keeps the memory of freed segments for the segments that come next: a collection frees many at
/// once. By default it returns most of that to the system, and has to be given it again.
pub(crate) fn arena() -> Result<ArenaVm, Error> {
    ArenaVm::create(ArenaVmOptions { spare_share: 75, ..ArenaVmOptions::default() })
}
