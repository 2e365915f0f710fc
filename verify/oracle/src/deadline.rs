//! How long a test waits before it fails.

use core::time::Duration;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// How long a test waits for what should come soon. It is long, because machines that run tests are busy.
pub const DEADLINE: Duration = Duration::from_secs(300);

/// Calls `is_over` until it returns true, and lets other threads run in between.
///
/// # Panics
/// After [`DEADLINE`].
#[track_caller]
pub fn wait_until(is_over: impl FnMut() -> bool) {
    is_over_within(DEADLINE, is_over);
}

#[track_caller]
fn is_over_within(time: Duration, mut is_over: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_over() {
        // An interpreter has a clock of its own, and is slow.
        let is_late = !cfg!(miri) && begin.elapsed() > time;
        assert!(!is_late, "what this waits for has not come after {time:?}");
        thread::yield_now();
    }
}

/// Does `work` on a thread of its own, and returns what it returns.
///
/// # Panics
/// If `work` panics, or has not ended by [`DEADLINE`]. Then its thread is left behind; it ends with the process.
#[track_caller]
pub fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    ends_within(DEADLINE, work)
}

#[track_caller]
fn ends_within<T: Send + 'static>(time: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    let worker = thread::spawn(move || {
        // The receiver is gone only after the deadline.
        let _ = done.send(work());
    });
    match wait.recv_timeout(time) {
        Ok(outcome) => outcome,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("this has not ended after {time:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match worker.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("it ended without its outcome"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_what_it_waits_for() {
        let mut looks = 0;
        wait_until(|| {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }

    #[test]
    #[cfg_attr(miri, ignore = "no deadline there")]
    #[should_panic(expected = "what this waits for has not come after")]
    fn a_wait_for_what_never_comes_fails() {
        is_over_within(Duration::from_millis(10), || false);
    }

    #[test]
    fn work_that_ends_returns_its_outcome() {
        assert_eq!(in_time(|| 7), 7);
    }

    #[test]
    #[should_panic(expected = "this has not ended after")]
    fn work_that_never_ends_fails() {
        let (_never, wait) = mpsc::channel::<()>();
        ends_within(Duration::from_millis(10), move || _ = wait.recv());
    }

    #[test]
    #[should_panic(expected = "on purpose")]
    fn work_that_fails_fails() {
        in_time(|| panic!("on purpose"));
    }
}
