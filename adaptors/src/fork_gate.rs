//! A gate that a thread passes before it waits for a lock of a global pool, and that a fork closes.
//!
//! When a process forks, the child has copies of all locks and one thread. A lock that another thread held
//! stays locked in the child for ever. So the handler that runs before a fork closes the gate, and
//! waits until no other thread is inside: then no lock is held (design/adaptors.md `.cached.fork`).

use core::cell::Cell;

use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};

/// How many threads are inside. Each thread counts itself in one of several places, so that threads seldom wait for
/// each other's cache line.
static INSIDE: [Place; PLACES] = [const { Place(AtomicUsize::new(0)) }; PLACES];
const PLACES: usize = 32;
/// How many threads have chosen their place.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Whether a fork is on its way.
static CLOSED: AtomicBool = AtomicBool::new(false);

std::thread_local! {
    /// How often this thread passed the gate, and did not leave: more than once if what it does inside calls
    /// the allocator, or is interrupted by a handler that does. A thread that closed the gate is inside until it opens it: other
    /// handlers of a fork run meanwhile, and may allocate.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread closed the gate.
    static CLOSES: Cell<bool> = const { Cell::new(false) };
    /// Where this thread counts itself; `None` if it never did.
    static PLACE: Cell<Option<&'static Place>> = const { Cell::new(None) };
}

/// A count on cache lines of its own: processors fetch two at a time.
#[derive(Debug)]
#[repr(align(128))]
struct Place(AtomicUsize);

impl Place {
    /// That of this thread.
    #[inline]
    fn of_thread() -> &'static Self {
        PLACE.get().unwrap_or_else(Self::choose)
    }

    #[cold]
    fn choose() -> &'static Self {
        let [first, ..] = &INSIDE;
        let place = INSIDE.get(THREADS.fetch_add(1, Ordering::Relaxed) % PLACES).unwrap_or(first);
        PLACE.set(Some(place));
        place
    }
}

/// A thread that is inside; it leaves when this is dropped.
#[derive(Debug)]
pub(crate) struct Inside(());

impl Inside {
    /// Passes the gate, and waits first until no fork is on its way.
    pub(crate) fn enter() -> Self {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        if depth == 0 {
            let place = Place::of_thread();
            // The order of all four operations: a fork that finds nobody inside is seen by all who enter later.
            while {
                place.0.fetch_add(1, Ordering::SeqCst);
                CLOSED.load(Ordering::SeqCst)
            } {
                place.0.fetch_sub(1, Ordering::SeqCst);
                while CLOSED.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            }
        }
        Self(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0 {
            Place::of_thread().0.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Has every later fork of this process close the gate. Does so once; where nothing forks, as in Miri, never.
pub(crate) fn watch_forks() {
    #[cfg(all(unix, not(miri)))]
    {
        static WATCHED: AtomicBool = AtomicBool::new(false);
        if !WATCHED.swap(true, Ordering::AcqRel) {
            // SAFETY: the signature is that of POSIX; the handlers are functions of this program. A refusal, for want
            // of memory, leaves forks as they are without this.
            unsafe { unix::pthread_atfork(Some(unix::close), Some(unix::open), Some(unix::open_in_child)) };
        }
    }
}

#[cfg(all(unix, not(miri)))]
mod unix {
    use super::{CLOSED, CLOSES, DEPTH, INSIDE, Ordering, Place};

    unsafe extern "C" {
        pub(super) fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> core::ffi::c_int;
    }

    /// Before a fork. A thread that forks inside, from a hook or a handler, holds locks itself, and others may wait for
    /// these: it does not wait.
    pub(super) extern "C" fn close() {
        if DEPTH.get() != 0 {
            return;
        }
        while CLOSED.swap(true, Ordering::SeqCst) {
            std::thread::yield_now();
        }
        for place in &INSIDE {
            while place.0.load(Ordering::SeqCst) != 0 {
                std::thread::yield_now();
            }
        }
        CLOSES.set(true);
        DEPTH.set(1);
    }

    /// After it, in the parent.
    pub(super) extern "C" fn open() {
        if CLOSES.replace(false) {
            DEPTH.set(0);
            CLOSED.store(false, Ordering::SeqCst);
        }
    }

    /// After it, in the child, which has one thread. Another may have been counted for a moment, while it
    /// found the gate closed.
    pub(super) extern "C" fn open_in_child() {
        for place in &INSIDE {
            place.0.store(0, Ordering::SeqCst);
        }
        if CLOSES.replace(false) {
            DEPTH.set(0);
        }
        Place::of_thread().0.store(usize::from(DEPTH.get() != 0), Ordering::SeqCst);
        CLOSED.store(false, Ordering::SeqCst);
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A fork waits until a thread that is inside has left; without the gate it would not find this.
    #[test]
    fn a_fork_waits_for_who_is_inside() {
        static HAS_LEFT: AtomicBool = AtomicBool::new(false);
        let (entered, is_inside) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let inside = (Inside::enter(), Inside::enter()); // twice, as from a hook
            entered.send(()).unwrap();
            for _ in 0..1000 {
                std::thread::yield_now(); // so that a fork that does not wait is seen not to
            }
            HAS_LEFT.store(true, Ordering::SeqCst);
            drop(inside);
        });
        is_inside.recv().unwrap();
        unix::close();
        assert!(HAS_LEFT.load(Ordering::SeqCst), "a fork did not wait");
        drop(Inside::enter()); // as another handler of the fork
        unix::open();
        thread.join().unwrap();
        // Who forks inside does not wait for itself.
        let inside = Inside::enter();
        unix::close();
        unix::open_in_child();
        drop(inside);
        assert!(INSIDE.iter().all(|place| place.0.load(Ordering::SeqCst) == 0));
        assert!(!CLOSED.load(Ordering::SeqCst));
    }
}
