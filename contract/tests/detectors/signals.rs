//! Events in signal handlers, and within another event's record.

use core::hint::black_box;
use std::thread;

use crate::common::{armed, contract, of_kind, records};
use crate::{hot, on_hot_thread};
use tripoint_contract::{DetectorSet, Observation, RecordKind, ViolationClass, current};

/// What the handler of SIGUSR1 causes.
extern "C" fn on_signal(_signal: i32) {
    let seen = Observation { count: 1, ..Observation::new(ViolationClass::Growth, 1) };
    current::observe(seen);
}

fn handle_signals() {
    let handler: extern "C" fn(i32) = on_signal;
    // SAFETY: the handler only counts.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
}

/// A signal handler that itself causes an event, exactly while the thread writes
/// another one down.
#[test]
fn an_event_within_a_raise_overlaps_and_is_counted() {
    on_hot_thread(|| {
        handle_signals();
        let contract = contract();
        let guard = armed(contract, hot(DetectorSet::POOL_EVENTS));
        for number in 1..=10 {
            let seen = Observation::new(ViolationClass::Growth, 1);
            guard.slot().observe(seen, || {
                // SAFETY: the signal is handled.
                unsafe { libc::raise(libc::SIGUSR1) };
                tripoint_contract::Evidence::NONE
            });
            assert!(!guard.slot().is_busy());
            assert_eq!(guard.slot().tally(ViolationClass::Growth).count, number);
            assert_eq!(guard.slot().overlapped(), number);
        }
        guard.check();
        assert_eq!(of_kind(&records(contract), RecordKind::Violation).len(), 10);
    });
}

/// Signals at any time, while the thread writes events down and raises alarms:
/// nothing is torn, nothing waits, and every event is in one count.
#[test]
fn signals_at_any_time_are_harmless() {
    on_hot_thread(|| {
        handle_signals();
        let contract = contract();
        let both = DetectorSet::ALLOCATOR | DetectorSet::POOL_EVENTS;
        let guard = armed(contract, hot(both));
        let counted =
            || ViolationClass::ALL.map(|class| guard.slot().tally(class).count).iter().sum::<usize>();
        let caused = || ViolationClass::ALL.map(|class| current::count(class).0).iter().sum::<usize>();
        // SAFETY: names the calling thread, which waits for the sender.
        let this_thread = unsafe { libc::pthread_self() };
        let before = caused() - counted();
        thread::scope(|scope| {
            let sender = scope.spawn(move || {
                for _ in 0..500 {
                    // SAFETY: the thread waits for this one before it ends.
                    assert_eq!(unsafe { libc::pthread_kill(this_thread, libc::SIGUSR1) }, 0);
                    thread::yield_now();
                }
            });
            for turn in 0_u64.. {
                drop(black_box(Box::new(turn)));
                guard.check();
                contract.drain(|record| {
                    let whole = match record.class {
                        ViolationClass::Growth => record.bytes == record.count,
                        _ => record.thread == 0 && record.count > 0,
                    };
                    assert!(whole, "a torn record: {record:?}");
                });
                if sender.is_finished() {
                    break;
                }
            }
        });
        assert!(current::count(ViolationClass::Growth).0 > 0);
        assert_eq!(caused() - counted() - before, guard.slot().overlapped());
    });
}
