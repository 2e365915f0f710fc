//! A gate that a thread passes before it waits for a lock of a global pool, and that a fork closes.
//!
//! When a process forks, the child has copies of all locks and one thread. A lock that another thread held
//! stays locked in the child forever. So the handler that runs before a fork closes the gate, and
//! waits until no other thread is inside: then no lock is held (design/adaptors.md `.cached.fork`).

use core::cell::Cell;

use tripoint_core::internal::{AtomicUsize, ForkGate, ForkPlace, Ordering};

static GATE: ForkGate<32> = ForkGate::new();
/// How many threads have chosen their place.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// How many forks lie between the first process and this one.
static FORKS: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    /// How often this thread passed the gate, and did not leave: more than once if what it does inside calls
    /// the allocator, or is interrupted by a handler that does. A thread that closed the gate is inside until it opens it: other
    /// handlers of a fork run meanwhile, and may allocate.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread closed the gate.
    static CLOSES: Cell<bool> = const { Cell::new(false) };
    /// Where this thread counts itself; `None` if it never did.
    static PLACE: Cell<Option<&'static ForkPlace>> = const { Cell::new(None) };
}

/// The place of this thread.
#[inline]
fn place() -> Option<&'static ForkPlace> {
    PLACE.get().or_else(choose_place)
}

#[cold]
fn choose_place() -> Option<&'static ForkPlace> {
    let place = GATE.place(THREADS.fetch_add(1, Ordering::Relaxed));
    PLACE.set(place);
    place
}

/// How many forks lie between the first process and this one, as far as the gate noticed them.
pub(crate) fn forks() -> usize {
    FORKS.load(Ordering::Relaxed)
}

/// A thread that is inside; it leaves when this is dropped.
#[derive(Debug)]
pub(crate) struct Inside(());

impl Inside {
    /// Passes the gate, and waits first until no fork is on its way.
    pub(crate) fn enter() -> Self {
        let depth = DEPTH.get();
        DEPTH.set(depth + 1);
        if depth == 0
            && let Some(place) = place()
        {
            GATE.enter(place, std::thread::yield_now);
        }
        Self(())
    }

    /// Whether this thread is inside, or is forking: what it calls now was called by a hook or a handler.
    pub(crate) fn is_inside() -> bool {
        DEPTH.get() != 0
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth == 0
            && let Some(place) = place()
        {
            GATE.leave(place);
        }
    }
}

/// Has every later fork of this process close the gate. Does so once; where nothing forks, as in Miri, never.
pub(crate) fn watch_forks() {
    #[cfg(all(unix, not(miri)))]
    {
        use tripoint_core::internal::AtomicBool;

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
    use super::{CLOSES, DEPTH, FORKS, GATE, Ordering, place};

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
        GATE.close(std::thread::yield_now);
        CLOSES.set(true);
        DEPTH.set(1);
    }

    /// After it, in the parent.
    pub(super) extern "C" fn open() {
        if CLOSES.replace(false) {
            DEPTH.set(0);
            GATE.open();
        }
    }

    /// After it, in the child.
    pub(super) extern "C" fn open_in_child() {
        if CLOSES.replace(false) {
            DEPTH.set(0);
        }
        FORKS.fetch_add(1, Ordering::Relaxed);
        GATE.open_in_child(place().filter(|_| DEPTH.get() != 0));
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tripoint_core::internal::AtomicBool;

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
            HAS_LEFT.store(true, Ordering::Relaxed);
            drop(inside);
        });
        is_inside.recv().unwrap();
        unix::close();
        assert!(HAS_LEFT.load(Ordering::Relaxed), "a fork did not wait");
        drop(Inside::enter()); // as another handler of the fork
        unix::open();
        thread.join().unwrap();
        // Who forks inside does not wait for itself.
        let inside = Inside::enter();
        unix::close();
        unix::open_in_child();
        drop(inside);
        assert!(GATE.is_empty() && GATE.try_close());
        GATE.open();
    }
}
