//! Locks what the process has mapped when the records of the warm-up are through, so that code
//! does not fault when it first runs (design/order-book.md `.warmup.lock`).

use tripoint::Arena;

/// Locks all memory except the arenas'. Returns what could not be locked, as a sentence.
#[cfg(target_os = "linux")]
pub fn lock_memory(arenas: &[&dyn Arena]) -> Option<String> {
    let locked = tripoint::contract::linux::lock_memory(arenas);
    (!locked.is_whole()).then(|| locked.to_string())
}

/// Locks nothing: this system has no way that we know.
#[cfg(not(target_os = "linux"))]
pub const fn lock_memory(_arenas: &[&dyn Arena]) -> Option<String> {
    None
}
