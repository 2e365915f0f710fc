//! Registrations for finalization, and messages: whose they are, and when they end (design/gc.md `.final.queue`,
//! `.message.memory`).

use core::ptr::{self, NonNull};
use core::time::Duration;
use std::sync::Mutex;
use std::thread;

use crate::common::{TestMutator, WORD, make, name, point, pool, with_heap};
use tripoint_core::{Check, CheckLevel, Error};
use tripoint_gc::{Cause, Leaf, Message, Policy};

const ALL: Duration = Duration::MAX;

/// Whichever mutator takes a message, each object is finalized once.
#[test]
fn threads_share_the_queue() {
    const THREADS: usize = 3;
    // Each thread needs more than one fill, so that one of them finds a collection due.
    let count = if cfg!(miri) { 100 } else { 600 };
    with_heap(1 << 20, |heap| {
        heap.set_policy(Policy { patience: ALL, ..Policy::with_capacity(1 << 10) });
        let pool = pool::<Leaf>(heap, 0);
        let all = Mutex::new(Vec::new());
        let take = |mutator: &TestMutator<'_>| {
            while let Some(message) = mutator.next_message() {
                let Message::Finalizable(object) = message else { panic!("{message:?}") };
                // SAFETY: it is kept until this mutator gives way.
                all.lock().unwrap().push(unsafe { name(object.as_ptr()) });
            }
        };
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (pool, take) = (&pool, &take);
                scope.spawn(move || {
                    let mut mutator = heap.register().unwrap();
                    let mut point = point(pool, &mutator);
                    for index in 0..count {
                        let object = make(&mut point, thread * count + index, &[ptr::null_mut(); 4]);
                        mutator.finalize(NonNull::new(object.unwrap()).unwrap()).unwrap();
                        if index % 16 == 0 {
                            take(&mutator);
                            mutator.poll();
                        }
                    }
                });
            }
        });
        assert!(heap.counts().by_threshold.get() > 0);
        let mut mutator = heap.register().unwrap();
        mutator.collect(ALL).unwrap();
        take(&mutator);
        assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
        let mut taken = all.into_inner().unwrap();
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(0..THREADS * count), "each once");
    });
}

#[test]
fn only_objects_of_the_heap_are_finalized() {
    with_heap(64 << 10, |heap| {
        let mutator = heap.register().unwrap();
        let mut local = 0_usize;
        let refused = mutator.finalize(NonNull::from(&mut local).cast());
        assert!(matches!(refused, Err(Error::Parameter(_))));
        assert!(!mutator.definalize(NonNull::from(&mut local).cast()));
        assert_eq!(mutator.next_message(), None);
    });
}

/// Also those that wait to be taken: nothing refers to a pool that is gone.
#[test]
fn registrations_end_with_their_pool_or_their_heap() {
    with_heap(64 << 10, |heap| {
        let mut mutator = heap.register().unwrap();
        let stays = pool::<Leaf>(heap, 0);
        let mut point_of_stays = point(&stays, &mutator);
        let left = NonNull::new(make(&mut point_of_stays, 1, &[]).unwrap()).unwrap();
        {
            let goes = pool::<Leaf>(heap, 0);
            let mut point = point(&goes, &mutator);
            let gone = NonNull::new(make(&mut point, 2, &[]).unwrap()).unwrap();
            mutator.finalize(gone).unwrap();
            mutator.collect(ALL).unwrap();
            mutator.finalize(NonNull::new(make(&mut point, 3, &[]).unwrap()).unwrap()).unwrap();
        }
        assert_eq!(mutator.next_message(), None);
        let left = NonNull::new(make(&mut point_of_stays, left.as_ptr().addr(), &[]).unwrap()).unwrap();
        mutator.finalize(left).unwrap();
        mutator.collect(ALL).unwrap();
        assert_eq!(heap.arena().check(CheckLevel::Deep), Ok(()));
    });
}

#[test]
fn collections_leave_messages_if_there_is_room() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Leaf>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        mutator.collect(ALL).unwrap();
        assert_eq!((mutator.next_message(), heap.counts().lost_messages.get()), (None, 0));
        heap.enable_messages(3).unwrap();
        let object = NonNull::new(make(&mut point, 1, &[]).unwrap()).unwrap();
        mutator.finalize(object).unwrap();
        let second = mutator.collect(ALL).unwrap();
        let third = mutator.collect(ALL).unwrap();
        assert_eq!(heap.counts().lost_messages.get(), 1);
        let cause = Cause::Requested;
        assert_eq!(mutator.next_message(), Some(Message::Began { number: 2, cause }));
        assert_eq!(mutator.next_message(), Some(Message::Ended(second)));
        assert_eq!(mutator.next_message(), Some(Message::Began { number: 3, cause }));
        assert_eq!(mutator.next_message(), Some(Message::Finalizable(object)));
        assert_eq!(mutator.next_message(), None);
        assert!(third.kept >= 2 * WORD, "kept until it was taken");
        let fourth = mutator.collect(ALL).unwrap();
        assert_eq!(fourth.freed, 2 * WORD);
        assert_eq!(mutator.next_message(), Some(Message::Began { number: 4, cause }));
        assert_eq!(mutator.next_message(), Some(Message::Ended(fourth)));
        assert_eq!(heap.counts().lost_messages.get(), 1);
    });
}
