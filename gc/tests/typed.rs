//! Typed objects: what can be in them, who may reach them, and what keeps them (design/gc.md `.req.safe`).

mod common;

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::mpsc;
use std::thread;

use common::{Arena, TestHeap, WORD, with_heap};
use tripoint_core::{Error, SymmetricFence};
use tripoint_gc::{
    Cause, Gc, Inside, Link, Plain, Policy, Postponed, Rooted, Scan, SweptOptions, Trace, TypedMutator,
    TypedObjects, object_types,
};

const ALL: Duration = Duration::MAX;

type TestObjects<'m> = TypedObjects<'m, Arena<'m>>;
type In<'g, 'm> = Inside<'g, Arena<'m>, SymmetricFence>;

object_types! {
    /// An item of a list.
    struct Item<'g> {
        name: usize,
        copy: usize,
        next: Option<Gc<'g, Item<'g>>>,
    }

    /// All forms of variants.
    #[derive(Clone, Copy)]
    enum Value<'g> {
        Nothing,
        Number(i64),
        Both(Gc<'g, str>, Gc<'g, Item<'g>>),
        Named { first: Gc<'g, str>, number: u8 },
    }

    /// Numbered fields.
    struct Pair<'g>(Value<'g>, Link<'g, Pair<'g>>);

    #[repr(align(64))]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Line(u8);

    /// References that are more aligned than a word.
    #[repr(align(32))]
    struct Wide<'g>(Gc<'g, u128>);

    struct Nothing;
}

fn objects<'m>(heap: &'m TestHeap<'m>) -> TestObjects<'m> {
    TypedObjects::create(heap, SweptOptions { segment_size: 4 << 10 }).unwrap()
}

/// Runs `test` with objects in a heap of their own, and checks that all is freed in the end.
fn with_objects(size: usize, test: impl FnOnce(&TestObjects<'_>)) {
    with_heap(size, |heap| {
        let objects = objects(heap);
        test(&objects);
        heap.collect(ALL).unwrap();
        assert_eq!(objects.sizes().map(|sizes| sizes.total), [0, 0]);
    });
}

fn list<'g, 'm>(inside: &In<'g, 'm>, names: impl Iterator<Item = usize>) -> Option<Gc<'g, Item<'g>>> {
    let mut next = None;
    for name in names {
        next = Some(inside.alloc(Item { name, copy: name, next }).unwrap());
    }
    next
}

fn names<'g>(list: Option<Gc<'g, Item<'g>>>) -> Vec<usize> {
    core::iter::successors(list, |item| item.next)
        .map(|item| {
            assert_eq!(item.name, item.copy);
            item.name
        })
        .collect()
}

/// Collects with no buffer attached: what is kept then is in objects.
fn kept<'o, 'm>(objects: &'o TestObjects<'m>, mutator: &mut TypedMutator<'o, 'm, Arena<'m>>) -> usize {
    let fresh = objects.register().unwrap();
    drop(core::mem::replace(mutator, fresh));
    mutator.collect(ALL).unwrap().kept
}

#[test]
fn what_a_root_leads_to_is_kept_until_it_is_dropped() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let root = mutator.enter(|inside| objects.root(inside, list(inside, 0..10).unwrap()).unwrap());
        let item = WORD + size_of::<Item<'_>>();
        assert_eq!(kept(objects, &mut mutator), 10 * item);
        mutator.enter(|inside| {
            let first = root.get(inside).unwrap();
            assert_eq!(names(Some(first)), Vec::from_iter((0..10).rev()));
            assert!(first.next.unwrap().is_same(first.get().next.unwrap()));
        });
        drop(root);
        assert_eq!(kept(objects, &mut mutator), 0);
    });
}

#[test]
fn a_root_changes() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let mut root = mutator.enter(|inside| objects.root(inside, inside.text("one").unwrap()).unwrap());
        mutator.enter(|inside| {
            let text = inside.text(&format!("{} and two", root.get(inside).unwrap())).unwrap();
            root.set(inside, text).unwrap();
        });
        assert_eq!(kept(objects, &mut mutator), 4 * WORD);
        mutator.enter(|inside| assert_eq!(&*root.get(inside).unwrap(), "one and two"));
    });
}

/// There are more roots than a chunk of them has room for, and their slots are used again.
#[test]
fn many_roots_keep_their_own_objects() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let mut roots: Vec<Rooted<'_, usize>> = Vec::new();
        for _ in 0..2 {
            mutator.enter(|inside| {
                let more = (roots.len()..100).map(|number| inside.alloc(number).unwrap());
                roots.extend(more.map(|object| objects.root(inside, object).unwrap()).collect::<Vec<_>>());
            });
            assert_eq!(kept(objects, &mut mutator), 100 * 2 * WORD);
            mutator.enter(|inside| {
                for (number, root) in roots.iter().enumerate() {
                    assert_eq!(*root.get(inside).unwrap(), number);
                }
            });
            roots.truncate(40);
            assert_eq!(kept(objects, &mut mutator), 40 * 2 * WORD);
        }
    });
}

#[test]
fn all_forms_of_declared_types_are_traced() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let root = mutator.enter(|inside| {
            let text = |text| inside.text(text).unwrap();
            let pair = |value| inside.alloc(Pair(value, Link::default())).unwrap();
            let last = pair(Value::Nothing);
            let named = pair(Value::Named { first: text("named"), number: 3 });
            let both = pair(Value::Both(text("both"), list(inside, 0..3).unwrap()));
            let number = pair(Value::Number(-1));
            for [from, to] in [[number, both], [both, named], [named, last]] {
                from.1.set(inside, to);
            }
            objects.root(inside, number).unwrap()
        });
        for _ in 0..2 {
            kept(objects, &mut mutator);
            mutator.enter(|inside| {
                let number = root.get(inside).unwrap();
                let both = number.1.get().unwrap();
                let named = both.1.get().unwrap();
                let last = named.1.get().unwrap();
                assert!(matches!(number.0, Value::Number(-1)));
                let Value::Both(text, items) = both.0 else { panic!("both") };
                assert_eq!((&*text, names(Some(items))), ("both", vec![2, 1, 0]));
                let Value::Named { first, number: 3 } = named.0 else { panic!("named") };
                assert_eq!(&*first, "named");
                assert!(matches!(last.0, Value::Nothing) && last.1.get().is_none());
            });
        }
        mutator.enter(|inside| {
            let number = root.get(inside).unwrap();
            let last = number.1.get().and_then(|both| both.1.get()).and_then(|named| named.1.get());
            number.1.set(inside, last);
        });
        let pair = WORD + size_of::<Pair<'_>>();
        assert_eq!(kept(objects, &mut mutator), 2 * pair);
    });
}

#[test]
fn values_have_any_size_and_alignment() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let (lines, empty, wide) = mutator.enter(|inside| {
            let mut lines = Vec::new();
            for number in 0..9 {
                // TypedObjects of one word between them, so that they begin at all places.
                inside.alloc(()).unwrap();
                lines.push(objects.root(inside, inside.alloc(Line(number)).unwrap()).unwrap());
            }
            let empty = objects.root(inside, inside.alloc(Nothing).unwrap()).unwrap();
            let number = inside.alloc(u128::MAX / 3).unwrap();
            let wide = objects.root(inside, inside.alloc(Wide(number)).unwrap()).unwrap();
            (lines, empty, wide)
        });
        let sizes = 9 * (64 + 64) + 2 * WORD + (32 + 32) + (WORD + 16 + 16 - WORD);
        assert_eq!(kept(objects, &mut mutator), sizes);
        mutator.enter(|inside| {
            for (number, line) in lines.iter().enumerate() {
                let line = line.get(inside).unwrap().get();
                assert_eq!((line.0, core::ptr::from_ref(line).addr() % 64), (number as u8, 0));
            }
            let _nothing: &Nothing = empty.get(inside).unwrap().get();
            let wide = wide.get(inside).unwrap().get();
            assert_eq!((*wide.0, core::ptr::from_ref(wide).addr() % 32), (u128::MAX / 3, 0));
        });
    });
}

#[test]
fn slices_and_texts_are_objects() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let (slice, lines, empty, text) = mutator.enter(|inside| {
            // Each item allocates, while the slice is being made.
            let slice = inside.slice(40, |index| (index, inside.text(&index.to_string()).unwrap())).unwrap();
            let lines = inside.slice(3, |index| Line(index as u8)).unwrap();
            let empty = inside.slice(0, |_| -> Gc<'_, u64> { unreachable!("no item") }).unwrap();
            (
                objects.root(inside, slice).unwrap(),
                objects.root(inside, lines).unwrap(),
                objects.root(inside, empty).unwrap(),
                objects.root(inside, inside.text("").unwrap()).unwrap(),
            )
        });
        let slices = (2 + 40 * 2) * WORD + (2 * WORD + 64 - WORD + 3 * 64) + 2 * WORD;
        assert_eq!(kept(objects, &mut mutator), slices + 40 * 3 * WORD + 2 * WORD);
        mutator.enter(|inside| {
            for (index, (number, name)) in slice.get(inside).unwrap().iter().enumerate() {
                assert_eq!((*number, &**name), (index, &*index.to_string()));
            }
            let lines = lines.get(inside).unwrap().get();
            assert_eq!((lines, lines.as_ptr().addr() % 64), (&[Line(0), Line(1), Line(2)][..], 0));
            assert!(empty.get(inside).unwrap().is_empty() && text.get(inside).unwrap().is_empty());
            let refused = inside.slice(usize::MAX / 8, |_| 1_u64);
            assert!(matches!(refused.map(drop), Err(Error::Parameter(_))));
        });
    });
}

/// The memory of such a slice is an object whose items are not looked at.
#[test]
fn a_slice_whose_items_are_not_all_made_is_freed() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            mutator.enter(|inside| {
                let made = inside.slice(10, |index| {
                    assert!(index < 4, "the fifth item");
                    inside.text("an item").unwrap()
                });
                made.map(drop)
            })
        }));
        assert!(unwound.is_err());
        // The mutator is outside again, so this does not wait for it.
        assert_eq!(kept(objects, &mut mutator), 0);
    });
}

#[test]
fn roots_of_other_objects_are_refused() {
    with_objects(256 << 10, |objects| {
        let others = TypedObjects::create(objects.heap(), SweptOptions::default()).unwrap();
        let (mut mutator, mut other) = (objects.register().unwrap(), others.register().unwrap());
        let mut root = mutator.enter(|inside| objects.root(inside, inside.alloc(7_u64).unwrap()).unwrap());
        other.enter(|inside| {
            let number = inside.alloc(8_u64).unwrap();
            assert!(matches!(root.get(inside), Err(Error::Parameter(_))));
            assert!(matches!(root.set(inside, number), Err(Error::Parameter(_))));
            assert!(matches!(objects.root(inside, number), Err(Error::Parameter(_))));
        });
        mutator.enter(|inside| assert_eq!(*root.get(inside).unwrap(), 7));
    });
}

#[test]
fn a_full_heap_refuses_and_is_collected_outside() {
    with_objects(32 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        for _ in 0..if cfg!(miri) { 2 } else { 4 } {
            let made = mutator.enter(|inside| {
                (0..).find(|&name| inside.alloc(Item { name, copy: name, next: None }).is_err()).unwrap()
            });
            assert!(made > 100, "{made} objects");
            mutator.enter(|inside| assert_eq!(inside.alloc([0_usize; 9]).map(drop), Err(Error::Limit)));
            mutator.collect(ALL).unwrap();
        }
    });
}

/// (design/gc.md `.typed.inside`)
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
                assert!(late.seen_at.unwrap().file().ends_with("typed.rs"), "{postponed}");
                scope.spawn(|| heap.collect(ALL).unwrap());
                while !inside.wants_stop() {
                    thread::yield_now();
                }
                // More than a buffer holds, while a stop is wanted: no point gives way.
                let items = list(inside, 0..if cfg!(miri) { 100 } else { 1000 });
                assert_eq!((&*text, names(items).len() % 100), ("unrooted", 0));
            });
        });
        assert_eq!(heap.counts().collections.get(), 2);
    });
}

/// (design/gc.md `.typed.due`)
#[test]
fn what_is_due_is_collected_outside() {
    with_objects(256 << 10, |objects| {
        let heap = objects.heap();
        heap.set_policy(Policy { capacity: 8 << 10, ..Policy::default() });
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
        let running = AtomicUsize::new(3);
        thread::scope(|scope| {
            for thread in 0..3 {
                let (board, running) = (&board, &running);
                scope.spawn(move || {
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
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
            let mut collections = 0;
            while running.load(Ordering::SeqCst) > 0 && collections < if cfg!(miri) { 3 } else { 3000 } {
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
        let only = kept(objects, &mut mutator);
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

#[test]
fn walks_know_the_types_of_objects() {
    with_objects(64 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        mutator.enter(|inside| {
            inside.alloc(Line(1)).unwrap();
            inside.text("four").unwrap();
            inside.slice(3, |index| index as u16).unwrap();
        });
        let mut found = Vec::new();
        let stopped = objects.heap().stop(ALL).unwrap();
        stopped.walk_objects(|object| found.push((object.type_name.unwrap(), object.block.size())));
        found.sort_unstable();
        let line = core::any::type_name::<Line>();
        assert_eq!(found, [("[u16]", 3 * WORD), ("str", 3 * WORD), (line, 128)]);
    });
}

#[test]
fn values_of_other_crates_are_plain() {
    with_objects(64 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let root = mutator.enter(|inside| {
            let after = inside.alloc((Plain(Duration::from_secs(3)), "static")).unwrap();
            objects.root(inside, inside.alloc(after).unwrap()).unwrap()
        });
        assert_ne!(kept(objects, &mut mutator), 0);
        mutator.enter(|inside| {
            let (after, text) = &**root.get(inside).unwrap();
            assert_eq!((after.as_secs(), *text), (3, "static"));
        });
    });
}

/// The twin: an implementation of `Trace` that forgets the references of its values.
struct Forgetful<'g>(Gc<'g, u64>);

// SAFETY: none: it forgets a reference. The test does not follow it.
unsafe impl Trace for Forgetful<'_> {
    type At<'g> = Forgetful<'g>;
    type Static = Forgetful<'static>;

    const HAS_REFERENCES: bool = true;

    fn trace(&mut self, _scan: &mut Scan<'_>) {
        let _forgotten = self.0;
    }
}

#[test]
#[should_panic(expected = "its number is freed")]
fn a_type_that_forgets_references_loses_objects() {
    with_objects(64 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let _root = mutator.enter(|inside| {
            let forgetful = inside.alloc(Forgetful(inside.alloc(7_u64).unwrap())).unwrap();
            objects.root(inside, forgetful).unwrap()
        });
        assert_eq!(kept(objects, &mut mutator), 2 * 2 * WORD, "its number is freed");
    });
}
