//! Transforms of typed objects (design/gc-transforms.md `.typed`, `.req.atomic`).

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;

use crate::common::{Raise, WORD, with_heap};
use crate::items::{ALL, Item, kept, names, objects, with_objects};
use tripoint_core::Error;
use tripoint_gc::{FinalQueue, Gc, Link, Plain, Transform, WeakLink, WeakPair, object_types};

object_types! {
    /// References of all kinds.
    struct User<'g> {
        plain: Gc<'g, Item<'g>>,
        link: Link<'g, Item<'g>>,
        weak: WeakLink<'g, Item<'g>>,
        by_key: WeakPair<'g, Item<'g>, str>,
        by_value: WeakPair<'g, str, Item<'g>>,
        items: Gc<'g, [Option<Gc<'g, Item<'g>>>]>,
        text: Gc<'g, str>,
        numbers: Gc<'g, [u64]>,
    }
}

#[test]
fn references_of_all_kinds_are_replaced() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let queue: FinalQueue<'_, Item<'static>> = objects.final_queue().unwrap();
        let mut transform = Transform::create(objects.heap(), 4).unwrap();
        let (user, strong, weak) = mutator.enter(|inside| {
            let item = |name| inside.alloc(Item { name, copy: name, next: None }).unwrap();
            let (old, other) = (item(1), item(2));
            let new = inside.alloc(Item { name: 3, copy: 3, next: Some(old) }).unwrap();
            let (text, numbers) = (inside.text("old").unwrap(), inside.slice(2, |_| 1_u64).unwrap());
            let user = inside
                .alloc(User {
                    plain: old,
                    link: Link::new(Some(old)),
                    weak: WeakLink::new(Some(old)),
                    by_key: WeakPair::new(Some((old, text))),
                    by_value: WeakPair::new(Some((text, old))),
                    items: inside.slice(3, |index| (index != 1).then_some(old)).unwrap(),
                    text,
                    numbers,
                })
                .unwrap();
            queue.register(inside, old).unwrap();
            transform.add(inside, old, new).unwrap();
            transform.add(inside, other, new).unwrap();
            transform.add(inside, text, inside.text("a new text").unwrap()).unwrap();
            transform.add(inside, numbers, inside.slice(300, |index| index as u64).unwrap()).unwrap();
            let full = transform.add(inside, old, new);
            assert!(matches!(full, Err(Error::Parameter(_))), "{full:?}");
            let roots = (objects.root(inside, old).unwrap(), objects.weak_root(inside, other).unwrap());
            (objects.root(inside, user).unwrap(), roots.0, roots.1)
        });
        for is_moved in [false, true] {
            if is_moved {
                mutator.collect(ALL).unwrap();
            } else {
                let mut stopped = mutator.stop(ALL).unwrap();
                // To items: five of the user, two of its slice, one of the new item, two roots and a registration. To the
                // text: three. To the numbers: one.
                assert_eq!(transform.apply(&mut stopped), Ok(5 + 2 + 1 + 2 + 1 + 3 + 1));
            }
            mutator.enter(|inside| {
                let user = user.get(inside).unwrap();
                let new = strong.get(inside).unwrap();
                assert_eq!((new.name, new.copy), (3, 3));
                assert!(new.next.unwrap().is_same(new), "it referred to the old one");
                assert!(weak.get(inside).unwrap().unwrap().is_same(new));
                assert!(user.plain.is_same(new) && user.link.get().unwrap().is_same(new));
                assert!(user.weak.get().unwrap().is_same(new));
                let (key, text) = user.by_key.get().unwrap();
                assert!(key.is_same(new) && text.is_same(user.text) && &*text == "a new text");
                let (key, value) = user.by_value.get().unwrap();
                assert!(key.is_same(user.text) && value.is_same(new));
                let items: Vec<_> =
                    user.items.iter().map(|item| item.map(|item| item.is_same(new))).collect();
                assert_eq!(items, [Some(true), None, Some(true)]);
                assert!(user.numbers.iter().copied().eq(0..300));
            });
        }
        drop((user, strong));
        mutator.collect(ALL).unwrap();
        mutator.enter(|inside| {
            let taken = queue.take(inside).unwrap().unwrap();
            assert_eq!(taken.name, 3, "the registration is of the new item");
            assert!(queue.take(inside).unwrap().is_none());
        });
    });
}

#[test]
fn old_objects_are_freed_and_new_ones_kept() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let mut transform = Transform::create(objects.heap(), 1).unwrap();
        let root = mutator.enter(|inside| {
            let old = inside.slice(1000, |index| index).unwrap();
            transform.add(inside, old, inside.slice(1, |index| index).unwrap()).unwrap();
            objects.root(inside, old).unwrap()
        });
        assert!(kept(&mut mutator) > 1000 * WORD);
        assert_eq!(mutator.stop(ALL).map(|mut stopped| transform.apply(&mut stopped)), Ok(Ok(1)));
        assert_eq!(kept(&mut mutator), 3 * WORD);
        mutator.enter(|inside| assert_eq!(root.get(inside).unwrap()[..], [0]));
    });
}

#[test]
fn objects_of_another_heap_are_refused() {
    with_objects(64 << 10, |ours| {
        with_objects(64 << 10, |others| {
            let mut transform = Transform::create(ours.heap(), 1).unwrap();
            let mut mutator = others.register().unwrap();
            mutator.enter(|inside| {
                let [old, new] = [1, 2].map(|number| inside.alloc(Plain(number)).unwrap());
                let refused = transform.add(inside, old, new);
                assert!(matches!(refused, Err(Error::Parameter(_))), "{refused:?}");
            });
        });
    });
}

/// A transform may live longer than its objects.
#[test]
fn pairs_of_objects_that_are_dropped_are_forgotten() {
    with_heap(256 << 10, |heap| {
        let mut transform = Transform::create(heap, 2).unwrap();
        let kept = objects(heap);
        let mut mutator = kept.register().unwrap();
        let add = |mutator: &mut tripoint_gc::TypedMutator<'_, '_, _>, transform: &mut Transform<'_, _>| {
            mutator.enter(|inside| {
                let item = |name, next| inside.alloc(Item { name, copy: name, next }).unwrap();
                transform.add(inside, item(1, None), item(2, Some(item(3, None)))).unwrap();
            });
        };
        add(&mut mutator, &mut transform);
        let dropped = objects(heap);
        add(&mut dropped.register().unwrap(), &mut transform);
        drop(dropped);
        let root = mutator.enter(|inside| {
            // In the memory of the objects that were dropped.
            let items = crate::items::list(inside, 0..1000).unwrap();
            kept.root(inside, items).unwrap()
        });
        mutator.collect(ALL).unwrap();
        assert_eq!(mutator.stop(ALL).map(|mut stopped| transform.apply(&mut stopped)), Ok(Ok(0)));
        mutator.enter(|inside| assert_eq!(names(Some(root.get(inside).unwrap())).len(), 1000));
    });
}

/// All threads see the old object or the new one, and by no two references different ones.
#[test]
fn a_transform_is_atomic() {
    const ROUNDS: usize = if cfg!(miri) { 5 } else { 200 };
    with_objects(512 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let roots = mutator.enter(|inside| {
            let item = inside.alloc(Item { name: 0, copy: 0, next: None }).unwrap();
            let holder = inside.alloc(Item { name: 0, copy: 0, next: Some(item) }).unwrap();
            (objects.root(inside, item).unwrap(), objects.root(inside, holder).unwrap())
        });
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _raise = Raise(&is_over);
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut mutator = objects.register().unwrap();
                    let mut last = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        mutator.enter(|inside| {
                            let item = roots.0.get(inside).unwrap();
                            let held = roots.1.get(inside).unwrap().next.unwrap();
                            assert!(item.is_same(held), "two references to different objects");
                            assert!(last <= item.name, "the old object came back");
                            last = item.name;
                            inside.alloc(Plain(last)).map(drop).unwrap_or(());
                        });
                    }
                });
            }
            let mut transform = Transform::create(objects.heap(), 1).unwrap();
            for round in 1..=ROUNDS {
                // The other threads may have used up the memory since the last collection.
                while mutator.enter(|inside| {
                    let Ok(new) = inside.alloc(Item { name: round, copy: round, next: None }) else {
                        return true;
                    };
                    transform.add(inside, roots.0.get(inside).unwrap(), new).unwrap();
                    false
                }) {
                    mutator.collect(ALL).unwrap();
                }
                let replaced = mutator.stop(Duration::MAX).map(|mut stopped| transform.apply(&mut stopped));
                assert_eq!(replaced, Ok(Ok(2)));
                if round % 10 == 0 {
                    mutator.collect(ALL).unwrap();
                }
            }
        });
        mutator.enter(|inside| assert_eq!(roots.0.get(inside).unwrap().name, ROUNDS));
    });
}
