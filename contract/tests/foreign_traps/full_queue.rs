//! A full queue of signals: the kernel drops what it knows of a signal.

use core::ptr;

use crate::common::{contract, in_child};
use crate::{Foreign, assert_catches, assert_killed_by_trap, be_sent, hot, on_hot_thread, pthread_sigqueue};

/// Has the kernel drop what it knows of signals that are sent to this process.
fn fill_signal_queue() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a limit, valid to write and then to read; names the calling thread, which
    // gets no signal, since none can wait.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_SIGPENDING, &raw mut limit), 0);
        limit.rlim_cur = 0;
        assert_eq!(libc::setrlimit(libc::RLIMIT_SIGPENDING, &raw const limit), 0);
        let value = libc::sigval { sival_ptr: ptr::null_mut() };
        let refused = pthread_sigqueue(libc::pthread_self(), libc::SIGRTMIN(), value);
        assert_eq!(refused, libc::EAGAIN, "the control: the queue is full");
    }
}

/// A question arrives without its word, and is answered (`.trap.bare`).
#[test]
fn with_a_full_signal_queue_calls_have_their_sites() {
    let Some(child) = in_child("full_queue::with_a_full_signal_queue_calls_have_their_sites") else {
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot(contract);
            fill_signal_queue();
            (0..8).for_each(|_| assert_catches(contract, &guard));
        });
    };
    assert!(child.status.success(), "{child:?}");
}

/// The control of the above: a trap as bare is foreign if no supervisor asked.
#[test]
fn with_a_full_signal_queue_a_foreign_trap_ends_the_process() {
    let Some(child) = in_child("full_queue::with_a_full_signal_queue_a_foreign_trap_ends_the_process") else {
        return on_hot_thread(|| {
            let contract = contract();
            let guard = hot(contract);
            fill_signal_queue();
            assert_catches(contract, &guard);
            println!("caught");
            be_sent(Foreign::Tgkill);
        });
    };
    assert_killed_by_trap(&child);
    assert!(String::from_utf8_lossy(&child.stdout).contains("caught"), "{child:?}");
}
