//! Typed objects of several threads: stops, collections that are due, and what threads share (design/gc-typed.md
//! `.typed.inside`, `.typed.threads`).

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::mpsc;
use std::thread;

use crate::common::{AtWork, WORD};
use crate::items::{ALL, In, Item, kept, list, names, with_objects};
use tripoint_gc::{Cause, Gc, Link, Policy, Postponed, Rooted, TypedMutator, object_types};

/// (design/gc-typed.md `.typed.inside`)
#[test]
fn a_stop_waits_until_all_are_outside() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let heap = objects.heap();
        // This thread is outside, though it has a mutator.
        heap.collect(Duration::ZERO).unwrap();
        thread::scope(|scope| {
            mutator.enter(|inside| {
                assert!(!inside.wants_stop());
                let text = inside.text("unrooted").unwrap();
                let postponed = scope.spawn(|| heap.collect(Duration::ZERO)).join().unwrap().unwrap_err();
                let Postponed::Late(late) = postponed else { panic!("{postponed}") };
                assert!(late.seen_at.unwrap().file().ends_with("threads.rs"), "{postponed}");
                let collector = scope.spawn(|| heap.collect(ALL).unwrap());
                tripoint_oracle::wait_until(|| inside.wants_stop() || collector.is_finished());
                assert!(!collector.is_finished(), "a thread is inside");
                // More than a buffer holds, while a stop is wanted: no point gives way.
                let items = list(inside, 0..if cfg!(miri) { 100 } else { 1000 });
                assert_eq!((&*text, names(items).len() % 100), ("unrooted", 0));
            });
        });
        assert_eq!(heap.counts().collections.get(), 2);
    });
}

/// (design/gc-typed.md `.typed.due`)
#[test]
fn what_is_due_is_collected_outside() {
    with_objects(256 << 10, |objects| {
        let heap = objects.heap();
        heap.set_policy(Policy::with_capacity(8 << 10));
        let mut mutator = objects.register().unwrap();
        let fill = |mutator: &mut TypedMutator<'_, '_, _>| {
            mutator.enter(|inside| {
                let before = heap.last_collection();
                let items = list(inside, 0..300);
                assert!(heap.is_due());
                assert_eq!((names(items).len(), heap.last_collection()), (300, before));
            });
        };
        fill(&mut mutator);
        assert!(heap.last_collection().is_some_and(|last| last.cause == Cause::Threshold && last.freed > 0));
        let parked = heap.park();
        fill(&mut mutator);
        assert!(heap.is_due());
        parked.release();
        mutator.enter(|_| ());
        assert!(!heap.is_due());
        assert_eq!(heap.counts().collections.get(), 2);
    });
}

object_types! {
    /// What all threads reach.
    struct Board<'g> {
        lists: [Link<'g, Item<'g>>; 4],
        writes: AtomicU32,
    }
}

/// Threads publish lists to each other while the heap is collected.
#[test]
fn threads_share_objects() {
    let rounds = if cfg!(miri) { 3 } else { 300 };
    with_objects(4 << 20, |objects| {
        let mut mutator = objects.register().unwrap();
        let board = mutator.enter(|inside| {
            let board = Board { lists: Default::default(), writes: AtomicU32::new(0) };
            objects.root(inside, inside.alloc(board).unwrap()).unwrap()
        });
        let at_work = AtomicUsize::new(3);
        thread::scope(|scope| {
            for thread in 0..3 {
                let (board, at_work) = (&board, AtWork(&at_work));
                scope.spawn(move || {
                    let _at_work = at_work;
                    let mut mutator = objects.register().unwrap();
                    for round in 0..rounds {
                        let own = mutator.enter(|inside| {
                            let board = board.get(inside).unwrap();
                            let first = round * 100 + thread;
                            let own = list(inside, first..first + 8).unwrap();
                            board.lists[(thread + round) % 4].set(inside, own);
                            board.writes.fetch_add(1, Ordering::Relaxed);
                            objects.root(inside, own).unwrap()
                        });
                        mutator.enter(|inside| {
                            for list in &board.get(inside).unwrap().lists {
                                let names = names(list.get());
                                assert!(names.len() == 8 || names.is_empty());
                                assert!(names.windows(2).all(|pair| pair[0] == pair[1] + 1));
                            }
                            let first = round * 100 + thread;
                            assert_eq!(names(root(inside, &own)).last(), Some(&first));
                        });
                    }
                });
            }
            let mut collections = 0;
            while at_work.load(Ordering::SeqCst) > 0 && collections < if cfg!(miri) { 3 } else { 3000 } {
                mutator.collect(ALL).unwrap();
                collections += 1;
                thread::yield_now();
            }
        });
        mutator.enter(|inside| {
            let board = board.get(inside).unwrap();
            assert_eq!(board.writes.load(Ordering::Relaxed) as usize, 3 * rounds);
            (0..4).for_each(|list| board.lists[list].set(inside, None));
        });
        let only = kept(&mut mutator);
        assert_eq!(only, (WORD + size_of::<Board<'_>>()).next_multiple_of(WORD));
    });
}

fn root<'g, 'm>(inside: &In<'g, 'm>, root: &Rooted<'_, Item<'static>>) -> Option<Gc<'g, Item<'g>>> {
    root.get(inside).ok()
}

#[test]
fn roots_and_mutators_move_between_threads() {
    with_objects(256 << 10, |objects| {
        let (send, receive) = mpsc::channel();
        let mut mutator = objects.register().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                let root = mutator.enter(|inside| objects.root(inside, list(inside, 0..5).unwrap()).unwrap());
                send.send((mutator, root)).unwrap();
            });
            let (mut mutator, root) = receive.recv().unwrap();
            mutator.collect(ALL).unwrap();
            // Inside, references may be used by threads that end inside.
            mutator.enter(|inside| {
                let items = root.get(inside).unwrap();
                let found = thread::scope(|scope| scope.spawn(move || names(Some(items))).join().unwrap());
                assert_eq!(found, [4, 3, 2, 1, 0]);
            });
        });
    });
}
