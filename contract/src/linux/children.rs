//! What a forked child does before all else (design/contract.md `.call.child`, `.tallies.child`).

use crate::linux::listeners;
use crate::thread::current;

/// Closes the child's copies of the listeners, and has its one thread count in memory of the child's own. Takes
/// no lock and allocates nothing.
///
/// # Safety
/// - Only for a forked child, before it does anything else.
pub(super) unsafe extern "C" fn begin() {
    // SAFETY: the caller says that this is a forked child, which has done nothing else.
    unsafe { listeners::close_all() };
    if let Some(slot) = current::slot() {
        slot.take_words_back();
    }
}
