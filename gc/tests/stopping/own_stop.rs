//! What a thread does in a stop of its own: nothing of it waits for that stop, or for what a walk or a step has locked
//! (design/gc.md `.req.own`).

use core::ptr::{self, NonNull};
use core::time::Duration;
use std::sync::Mutex;

use crate::common::{Arena, Nodes, Slots, TestHeap, TestPool, WORD, Yield, make, point, pool, with_heap};
use crate::items::{ALL, Item, list, names, objects};
use tripoint_core::{ClientArena, ClientArenaOptions, Event, EventHook, SymmetricFence};
use tripoint_gc::{
    Gc, Heap, HeapOptions, Kind, Moved, Policy, Step, Stopped, Tag, Traced, Transform, TypedMutator,
};
use tripoint_oracle::{forever, in_time};

type TestStopped<'a, 'm> = Stopped<'a, 'm, Arena<'m>, SymmetricFence>;

/// What calls a closure of the program in a stop.
#[derive(Clone, Copy, Debug)]
enum Walk {
    Objects,
    Roots,
    Segments,
    Referrers,
    Step,
    StepWithin,
}

const WALKS: [Walk; 6] =
    [Walk::Objects, Walk::Roots, Walk::Segments, Walk::Referrers, Walk::Step, Walk::StepWithin];

impl Walk {
    /// Has it call `act`, at least once if an object of the heap is in a root.
    fn have_call(self, stopped: &mut TestStopped<'_, '_>, mut act: impl FnMut()) {
        match self {
            Self::Objects => stopped.walk_objects(|_| act()),
            Self::Roots => stopped.walk_roots(|_| act()),
            Self::Segments => stopped.walk_segments(|_| act()),
            Self::Referrers => {
                let mut roots = Vec::new();
                stopped.walk_roots(|root| roots.push(root.addr));
                let mut objects = Vec::new();
                stopped.walk_objects(|object| objects.push(object));
                let is_in_root = |addr| roots.iter().any(|root| root.get() == addr);
                let kept = objects.iter().find(|object| is_in_root(object.reference.addr().get()));
                stopped.walk_referrers(*kept.unwrap(), |_| act());
            }
            Self::Step => {
                let mut is_asked = || {
                    act();
                    false
                };
                while !matches!(stopped.step(&mut is_asked), Step::Done(_)) {}
            }
            Self::StepWithin => {
                let clock = || {
                    act();
                    Duration::ZERO
                };
                stopped.step_within(Duration::from_secs(1), clock);
            }
        }
    }
}

/// Does `case` with each walk, in a heap of its own.
fn in_each_walk(case: impl Fn(&TestHeap<'_>, Walk) + Copy + Send + 'static) {
    for walk in WALKS {
        in_time(move || with_heap(256 << 10, |heap| case(heap, walk)));
    }
}

/// Makes `COUNT` nodes in a row of slots.
fn make_nodes<'m, K: Kind<Nodes>, const COUNT: usize>(
    heap: &'m TestHeap<'m>,
    pool: &TestPool<'m, K>,
    slots: &Slots<COUNT>,
) {
    let mutator = heap.register().unwrap();
    let mut point = point(pool, &mutator);
    (0..COUNT).for_each(|index| slots.set(index, make(&mut point, index, &[]).unwrap()));
}

#[test]
fn roots_are_dropped_and_made_in_a_walk() {
    in_each_walk(|heap, walk| {
        let pool = pool::<Traced>(heap, 0);
        let slots = Slots::<4>::default();
        make_nodes(heap, &pool, &slots);
        let root = |index| {
            let slot = NonNull::new(slots.base().as_ptr().wrapping_add(index)).unwrap();
            // SAFETY: the slots outlive the roots, and only this thread uses them.
            unsafe { heap.root_table(slot, 1, Tag::default()) }.unwrap()
        };
        // A collection in steps frees what is in no root when it begins.
        let mut dropped: Vec<_> = [0, 1, 3].map(root).into();
        let kept = root(2);
        let mut made = Vec::new();
        let mut stopped = heap.stop(ALL).unwrap();
        walk.have_call(&mut stopped, || {
            dropped.clear();
            if made.is_empty() {
                made.push(root(3));
            }
        });
        assert_eq!(made.len(), 1, "{walk:?}");
        let mut found = Vec::new();
        stopped.walk_roots(|root| found.push(root.root));
        assert_eq!(found, [made[0].id(), kept.id()], "{walk:?}");
        assert_eq!(stopped.collect().kept, 4 * WORD, "{walk:?}: what the last two roots refer to");
    });
}

/// Whichever of the roots is dropped, and wherever the walk is: it shows the others whole, and once.
#[test]
fn a_walk_of_roots_goes_on_when_one_is_dropped() {
    const WORDS: usize = 100;
    for (dropped, at) in (0..3).flat_map(|dropped| [1, 99, 100, 101, 250, 300].map(|at| (dropped, at))) {
        in_time(move || {
            with_heap(64 << 10, |heap| {
                let pool = pool::<Traced>(heap, 0);
                let slots = Slots::<WORDS>::default();
                make_nodes(heap, &pool, &slots);
                // SAFETY: the slots outlive the roots, and only this thread uses them.
                let root = |_| unsafe { heap.root_table(slots.base(), WORDS, Tag::default()) }.unwrap();
                // The newest is the first.
                let mut roots = [0, 1, 2].map(root).map(Some);
                roots.reverse();
                let ids: Vec<_> = roots.iter().flatten().map(tripoint_gc::Root::id).collect();
                let mut stopped = heap.stop(ALL).unwrap();
                let mut found = Vec::new();
                stopped.walk_roots(|reference| {
                    found.push((reference.root, reference.addr.get()));
                    if found.len() == at {
                        roots[dropped] = None;
                    }
                });
                let expected: Vec<_> = (0..WORDS).map(|index| slots.get(index).addr()).collect();
                let shown = |root| found.iter().filter(move |(of, _)| *of == root).map(|(_, addr)| *addr);
                for (index, id) in ids.iter().copied().enumerate() {
                    let count = shown(id).count();
                    assert!(shown(id).eq(expected[..count].iter().copied()), "{dropped} at {at}: {index}");
                    let is_shown_before = at >= (index + 1) * WORDS;
                    if index != dropped || is_shown_before {
                        assert_eq!(count, WORDS, "{dropped} at {at}: {index}");
                    } else if at <= index * WORDS {
                        assert_eq!(count, 0, "{dropped} at {at}: {index}");
                    }
                }
                assert!(found.is_sorted_by_key(|(of, _)| ids.iter().position(|id| id == of)));
            });
        });
    }
}

#[test]
fn pools_are_dropped_and_made_in_a_walk() {
    in_each_walk(|heap, walk| {
        let (first, second) = (pool::<Traced>(heap, 0), pool::<Moved>(heap, 0));
        let kept = pool::<Traced>(heap, 0);
        let slots = Slots::<10>::default();
        make_nodes(heap, &first, &slots);
        make_nodes(heap, &second, &slots);
        make_nodes(heap, &kept, &slots);
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 10, Tag::default()) }.unwrap();
        let (mut dropped, mut made) = (Some((first, second)), Vec::new());
        let mut stopped = heap.stop(ALL).unwrap();
        walk.have_call(&mut stopped, || {
            dropped = None;
            if made.is_empty() {
                made.push(pool::<Moved>(heap, 0));
            }
        });
        assert_eq!(made.len(), 1, "{walk:?}");
        assert_eq!(stopped.collect().kept, 20 * WORD, "{walk:?}");
        drop(stopped);
        make_nodes(heap, &made[0], &slots);
        assert_eq!(heap.collect(ALL).unwrap().kept, 20 * WORD, "{walk:?}: in the pool that was made");
    });
}

#[test]
fn transforms_are_dropped_made_and_extended_in_a_walk() {
    in_each_walk(|heap, walk| {
        let pool = pool::<Traced>(heap, 0);
        let slots = Slots::<2>::default();
        make_nodes(heap, &pool, &slots);
        let [old, new] = [0, 1].map(|index| NonNull::new(slots.get(index)).unwrap());
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let mut dropped = Some(Transform::create(heap, 1).unwrap());
        // SAFETY: the objects were made just now, and nothing was collected. A node is as good as the other.
        unsafe { dropped.as_mut().unwrap().add_oldnew(old, new) }.unwrap();
        let (mut extended, mut made) = (Transform::create(heap, 9).unwrap(), Vec::new());
        // SAFETY: the objects were made just now, and nothing was collected. A node is as good as the other.
        unsafe { extended.add_oldnew(old, new) }.unwrap();
        let mut is_extended = false;
        let mut stopped = heap.stop(ALL).unwrap();
        walk.have_call(&mut stopped, || {
            dropped = None;
            if !is_extended {
                // SAFETY: the thread stops the heap, and nothing was collected. A node is as good as the other.
                unsafe { extended.add_oldnew(new, old) }.unwrap();
                made.push(Transform::create(heap, 1).unwrap());
            }
            is_extended = true;
        });
        assert_eq!(made.len(), 1, "{walk:?}");
        assert_eq!(stopped.collect().kept, 4 * WORD, "{walk:?}");
    });
}

#[test]
fn typed_objects_and_their_roots_are_dropped_and_made_in_a_walk() {
    in_each_walk(|heap, walk| {
        let (dropped, kept) = (objects(heap), objects(heap));
        let mut mutator = dropped.register().unwrap();
        mutator.enter(|inside| assert!(list(inside, 0..10).is_some()));
        drop(mutator);
        let mut mutator = kept.register().unwrap();
        let mut roots = mutator.enter(|inside| {
            let one = || inside.alloc(Item { name: 1, copy: 1, next: None }).unwrap();
            let strong: Vec<_> = (0..50).map(|_| kept.root(inside, one()).unwrap()).collect();
            let pinned: Vec<_> = (0..50).map(|_| kept.pin(inside, one()).unwrap()).collect();
            (strong, pinned)
        });
        mutator.empty();
        let (mut dropped, mut made) = (Some(dropped), Vec::new());
        let mut stopped = heap.stop(ALL).unwrap();
        walk.have_call(&mut stopped, || {
            dropped = None;
            roots.0.truncate(1);
            roots.1.truncate(1);
            if made.is_empty() {
                made.push(objects(heap));
            }
        });
        assert_eq!(made.len(), 1, "{walk:?}");
        let mut count = 0;
        stopped.walk_roots(|_| count += 1);
        assert_eq!(count, 2, "{walk:?}");
        stopped.collect();
        assert_eq!(stopped.census(&mut []).all.objects, 2, "{walk:?}");
    });
}

/// However many roots of typed objects are dropped in between: all others are shown, and each once.
#[test]
fn a_walk_of_typed_roots_leaves_none_out_when_some_are_dropped() {
    const ROOTS: usize = 300;
    for at in [1, 100, 128, 200, 290] {
        in_time(move || {
            with_heap(256 << 10, |heap| {
                let objects = objects(heap);
                let mut mutator = objects.register().unwrap();
                let (mut strong, mut pinned) = mutator.enter(|inside| {
                    let item = || inside.alloc(Item { name: 1, copy: 1, next: None }).unwrap();
                    let strong = (0..ROOTS / 2).map(|_| {
                        let item = item();
                        (objects.root(inside, item).unwrap(), Gc::as_ptr(item).addr())
                    });
                    let strong: Vec<_> = strong.collect();
                    let pinned = (0..ROOTS / 2).map(|_| {
                        let item = item();
                        (objects.pin(inside, item).unwrap(), Gc::as_ptr(item).addr())
                    });
                    let pinned: Vec<_> = pinned.collect();
                    (strong, pinned)
                });
                let mut stopped = heap.stop(ALL).unwrap();
                let mut found = Vec::new();
                stopped.walk_roots(|root| {
                    found.push(root.addr.get());
                    if found.len() == at {
                        let mut number = 0;
                        let mut is_kept = || {
                            number += 1;
                            number % 50 == 0
                        };
                        strong.retain(|_| is_kept());
                        pinned.retain(|_| is_kept());
                    }
                });
                let strong = strong.iter().map(|(_, addr)| *addr);
                let kept: Vec<_> = strong.chain(pinned.iter().map(|(_, addr)| *addr)).collect();
                assert_eq!(kept.len(), ROOTS / 50);
                for addr in kept {
                    assert_eq!(found.iter().filter(|found| **found == addr).count(), 1, "at {at}");
                }
            });
        });
    }
}

/// A mutator that registers would wait for the end of the stop, and a second stop, too.
#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))),
    ignore = "it is not known which thread this is"
)]
#[test]
fn a_thread_does_not_wait_for_its_own_stop() {
    in_each_walk(|heap, walk| {
        let (pool, typed) = (pool::<Traced>(heap, 0), objects(heap));
        let slots = Slots::<1>::default();
        make_nodes(heap, &pool, &slots);
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let refused = || {
            assert!(heap.register().is_err(), "{walk:?}");
            assert!(typed.register().is_err(), "{walk:?}");
            assert!(heap.stop(ALL).is_err(), "{walk:?}");
            assert!(heap.collect(ALL).is_err(), "{walk:?}");
        };
        let mut mutator = heap.register().unwrap();
        let mut stopped = mutator.stop(ALL).unwrap();
        refused();
        walk.have_call(&mut stopped, refused);
        drop(stopped);
        let mut stops_again = || assert!(mutator.stop(ALL).is_err(), "{walk:?}");
        assert!(heap.stop_with(Duration::ZERO, &mut stops_again).is_err(), "{walk:?}: the mutator runs");
        drop(mutator);
        let stopped = heap.stop_with(ALL, refused).unwrap();
        refused();
        drop(stopped);
        heap.register().unwrap().collect(ALL).unwrap();
    });
}

/// It comes inside to return the memory that its points hold, and would wait for that until the stop ends.
#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))),
    ignore = "it is not known which thread this is"
)]
#[test]
fn typed_mutators_are_emptied_and_dropped_in_a_walk() {
    in_each_walk(|heap, walk| {
        let (nodes, typed) = (pool::<Traced>(heap, 0), objects(heap));
        let slots = Slots::<1>::default();
        make_nodes(heap, &nodes, &slots);
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 1, Tag::default()) }.unwrap();
        let mut mutators = [0, 1].map(|_| {
            let mut mutator = typed.register().unwrap();
            mutator.enter(|inside| assert!(list(inside, 0..10).is_some()));
            Some(mutator)
        });
        let held = |stopped: &mut TestStopped<'_, '_>| {
            let mut held = 0;
            stopped.walk_segments(|segment| held += segment.held);
            held
        };
        let mut stopped = heap.stop(ALL).unwrap();
        assert!(held(&mut stopped) > 0, "{walk:?}");
        walk.have_call(&mut stopped, || {
            mutators[0] = None;
            mutators[1].as_mut().unwrap().empty();
        });
        assert_eq!(held(&mut stopped), 0, "{walk:?}");
        let [_, Some(mut mutator)] = mutators else { unreachable!() };
        assert_eq!(stopped.collect().kept, 2 * WORD, "{walk:?}");
        drop(stopped);
        mutator.enter(|inside| assert!(list(inside, 0..10).is_some()));
    });
}

type Forever = TypedMutator<'static, 'static, Arena<'static>>;

/// Does something to a mutator once, at the first event of a kind.
struct Act {
    is_time: fn(Event) -> bool,
    act: fn(Forever) -> Option<Forever>,
    mutator: Mutex<Option<Forever>>,
    afterwards: Mutex<Option<Forever>>,
}

impl EventHook for Act {
    fn event(&self, event: Event) {
        if !(self.is_time)(event) {
            return;
        }
        // What is done has events of its own.
        let Some(mutator) = self.mutator.lock().unwrap().take() else { return };
        *self.afterwards.lock().unwrap() = (self.act)(mutator);
    }
}

/// An event hook needs no `unsafe`. If the memory were free at once, and were found to be free by the sweep once more, two
/// objects would have it; or it would be used after its segment was returned.
#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))),
    ignore = "it is not known which thread this is"
)]
#[test]
fn typed_mutators_are_emptied_and_dropped_while_objects_move() {
    let begins_sweep: fn(Event) -> bool = |event| matches!(event, Event::BeginSweep { .. });
    let makes_room: fn(Event) -> bool = |event| matches!(event, Event::Extend { .. });
    let drops: fn(Forever) -> Option<Forever> = |_| None;
    let empties: fn(Forever) -> Option<Forever> = |mut mutator| {
        mutator.empty();
        Some(mutator)
    };
    for (is_time, at) in [(begins_sweep, "sweep"), (makes_room, "room for copies")] {
        for (act, what) in [(drops, "drop"), (empties, "empty")] {
            for has_pinned in [false, true] {
                in_time(move || act_while_objects_move(is_time, act, has_pinned, &format!("{what} at {at}")));
            }
        }
    }
}

/// If `has_pinned`, an object stays where the mutator has memory.
fn act_while_objects_move(
    is_time: fn(Event) -> bool,
    act: fn(Forever) -> Option<Forever>,
    has_pinned: bool,
    case: &str,
) {
    let (mutator, afterwards) = (Mutex::new(None), Mutex::new(None));
    let hook = forever(Act { is_time, act, mutator, afterwards });
    let memory = Box::leak(Box::new_uninit_slice(128 << 10));
    let options = ClientArenaOptions { grain: Some(1 << 10), event_hook: Some(hook) };
    let arena = forever(ClientArena::create(memory, options).unwrap());
    let options = HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) };
    let heap = forever(Heap::create(arena, options).unwrap());
    // A pool that makes room for copies is locked meanwhile. The first to do so is one of the second, whose root is exact.
    let (acted_on, moved) = (forever(objects(heap)), objects(heap));
    let mut mutator = moved.register().unwrap();
    let root = mutator.enter(|inside| moved.root(inside, list(inside, 0..10).unwrap()).unwrap());
    let mut of_hook = acted_on.register().unwrap();
    let pinned = of_hook.enter(|inside| {
        let item = list(inside, 0..10).unwrap();
        has_pinned.then(|| acted_on.pin(inside, item).unwrap())
    });
    *hook.mutator.lock().unwrap() = Some(of_hook);
    heap.collect(ALL).unwrap();
    assert!(hook.mutator.lock().unwrap().is_none(), "{case}: there was such an event");
    assert!(
        has_pinned || acted_on.sizes().free == 0,
        "{case}: no memory of a segment that was returned counts as free"
    );
    let mut other = acted_on.register().unwrap();
    other.enter(|inside| {
        let make = |name| inside.alloc(Item { name, copy: name, next: None }).ok();
        // All that is free.
        let made: Vec<_> = (0..).map_while(make).collect();
        let is_as_made = |(name, item): (usize, &Gc<'_, Item<'_>>)| [item.name, item.copy] == [name; 2];
        assert!(made.iter().enumerate().all(is_as_made), "{case}");
        if let Some(pinned) = &pinned {
            assert_eq!(names(Some(pinned.get(inside).unwrap())).len(), 10, "{case}");
        }
    });
    mutator.enter(|inside| assert_eq!(names(Some(root.get(inside).unwrap())).len(), 10, "{case}"));
}

/// Roots are fixed when a step begins, and once more before its marking ends. What becomes a root after both, such as an
/// object that only a weak root held, is kept, too.
#[test]
fn what_becomes_a_root_in_a_step_is_kept() {
    const LISTS: usize = 4;
    const NODES: usize = 40;
    // So a list is several pieces of a step.
    const REFERENCES: usize = 60;
    for has_clock in [false, true] {
        in_time(move || {
            with_heap(256 << 10, |heap| {
                heap.set_policy(Policy::with_capacity(usize::MAX));
                let pool = pool::<Traced>(heap, 0);
                let (weak, strong) = (Slots::<LISTS>::default(), Slots::<LISTS>::default());
                let mutator = heap.register().unwrap();
                let mut point = point(&pool, &mutator);
                for list in 0..LISTS {
                    let mut references = [ptr::null_mut(); REFERENCES];
                    (0..NODES).for_each(|name| references[0] = make(&mut point, name, &references).unwrap());
                    weak.set(list, references[0]);
                }
                drop(point);
                drop(mutator);
                // SAFETY: the slots outlive the root, only this thread uses them, and they refer to nodes.
                let _weak_root = unsafe { heap.root_weak(weak.base(), LISTS, Tag::default()) }.unwrap();
                let root = |list| {
                    strong.set(list, weak.get(list));
                    let slot = NonNull::new(strong.base().as_ptr().wrapping_add(list)).unwrap();
                    // SAFETY: the slots outlive the roots, only this thread uses them, and this one refers to a node.
                    unsafe { heap.root_table(slot, 1, Tag::default()) }.unwrap()
                };
                let (mut roots, mut asked) = (vec![root(0)], 0);
                let mut make_root = || {
                    asked += 1;
                    if asked % 2 == 0 && roots.len() < LISTS {
                        roots.push(root(roots.len()));
                    }
                };
                let mut stopped = heap.stop(ALL).unwrap();
                let step = if has_clock {
                    stopped.step_within(Duration::from_secs(1), || {
                        make_root();
                        Duration::ZERO
                    })
                } else {
                    stopped.step(|| {
                        make_root();
                        true
                    })
                };
                let Step::Done(report) = step else { panic!("a step in which all is to be done: {step:?}") };
                assert_eq!(roots.len(), LISTS);
                assert_eq!(report.kept, LISTS * NODES * (2 + REFERENCES) * WORD, "clock: {has_clock}");
                assert_eq!(report.freed, 0, "clock: {has_clock}");
                (0..LISTS).for_each(|list| assert_eq!(weak.get(list), strong.get(list), "{list}"));
            });
        });
    }
}
