//! Locks what the process has mapped by the end of its records of warm-up, so that code
//! does not fault that runs for the first time (design/order-book.md `.warmup.lock`).

use tripoint::base::Arena;

/// Locks memory other than the arenas'; what could not be locked, in a sentence.
#[cfg(target_os = "linux")]
pub(crate) fn lock_memory(arenas: &[&dyn Arena]) -> Option<String> {
    let locked = tripoint::contract::linux::lock_memory(arenas);
    (!locked.is_whole()).then(|| locked.to_string())
}

/// Locks nothing: nobody knows how here.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn lock_memory(_arenas: &[&dyn Arena]) -> Option<String> {
    None
}
