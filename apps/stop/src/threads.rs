//! Threads that leave the signals to the main one.

use std::io;
use std::thread::{self, Scope, ScopedJoinHandle};

/// Has a thread of this name do `work`.
///
/// # Errors
/// The operating system's.
pub fn spawn<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let work = || {
        crate::leave_to_others();
        work()
    };
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work)
}

/// Waits for a thread. If it panicked, so does this one.
pub fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
