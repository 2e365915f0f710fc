//! Calls of the global allocator.

use core::hint::black_box;
use std::sync::mpsc;
use std::thread;

use crate::common::{Reason, armed, contract};
use crate::{caught_as, hot, on_hot_thread};
use tripoint_contract::{DetectorSet, HotThread, ViolationClass, ViolationSet};

#[inline(never)]
fn culprit_alloc() -> Box<u64> {
    black_box(Box::new(7))
}

#[test]
fn alloc_and_dealloc_are_caught() {
    on_hot_thread(|| {
        let cause = || drop(black_box(culprit_alloc()));
        caught_as(ViolationClass::Alloc, DetectorSet::ALLOCATOR, || {}, cause, "culprit_alloc");
    });
    on_hot_thread(|| {
        let kept = core::cell::Cell::new(Some(Box::new(7_u64)));
        #[inline(never)]
        fn culprit_dealloc(kept: &core::cell::Cell<Option<Box<u64>>>) {
            drop(black_box(kept.take()));
        }
        let cause = || culprit_dealloc(&kept);
        caught_as(ViolationClass::Dealloc, DetectorSet::ALLOCATOR, || {}, cause, "culprit_dealloc");
    });
}

/// The events of a warm-up are counted too, exactly, and ask for no attention.
#[test]
fn events_before_arming_are_counted_and_no_more() {
    on_hot_thread(|| {
        let contract = contract();
        let guard = contract.register(hot(DetectorSet::ALLOCATOR)).unwrap();
        let tally = |class| guard.slot().tally(class);
        let before = [ViolationClass::Alloc, ViolationClass::Dealloc].map(tally);
        (0..100).for_each(|_| drop(black_box(Box::new([0_u8; 24]))));
        let after = [ViolationClass::Alloc, ViolationClass::Dealloc].map(tally);
        for (before, after) in before.into_iter().zip(after) {
            assert_eq!((after.count - before.count, after.bytes - before.bytes), (100, 2_400));
            assert_eq!(after.excused, before.excused);
        }
        {
            let _amnesty = guard.amnesty(Reason::Disconnect);
            drop(black_box(Box::new(0_u64)));
        }
        assert_eq!(tally(ViolationClass::Alloc).excused, before[0].excused + 1);
        guard.check();
        assert_eq!((guard.slot().alarms(), guard.slot().overlapped()), (0, 0));
    });
}

#[test]
fn realloc_is_caught_and_told_from_alloc() {
    on_hot_thread(|| {
        let grown = core::cell::RefCell::new(vec![1_u8; 16]);
        #[inline(never)]
        fn culprit_realloc(grown: &core::cell::RefCell<Vec<u8>>) {
            grown.borrow_mut().reserve_exact(crate::common::opaque(100));
        }
        let cause = || culprit_realloc(&grown);
        let push_in_room = || {
            grown.borrow_mut().pop();
            grown.borrow_mut().push(1);
        };
        caught_as(ViolationClass::Realloc, DetectorSet::ALLOCATOR, push_in_room, cause, "culprit_realloc");
    });
}

#[test]
fn another_threads_allocation_is_not_charged() {
    on_hot_thread(|| {
        let contract = contract();
        let (go, wait) = mpsc::channel::<()>();
        let (done, finished) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            wait.recv().unwrap();
            for size in 0..1_000 {
                drop(black_box(vec![0_u8; size]));
            }
            done.send(()).unwrap();
        });
        // Both ends of the channels have finished their lazy initialisation.
        let guard =
            armed(contract, HotThread { classes: ViolationSet::all(), ..hot(DetectorSet::ALLOCATOR) });
        drop(go);
        let _ = finished.recv();
        // Receiving parks, and may allocate on this thread, which counts for this
        // thread.
        let own = guard.slot().tally(ViolationClass::Alloc).count;
        assert!(own < 1_000);
        drop(guard);
        let _ = other.join();
    });
}
