//! Pinned roots, and weak roots that end before finalization (design/gc-typed.md `.typed.handles`).

use std::thread;

use crate::common::Arena;
use crate::items::{ALL, Item, kept, list, names, with_objects};
use tripoint_core::Error;
use tripoint_gc::{
    FinalQueue, NotApplied, PinnedRooted, Rooted, ShortWeakRooted, Step, Transform, TypedMutator, WeakRooted,
    object_types,
};

object_types! {
    #[repr(align(64))]
    struct Line(u8);

    struct Nothing;
}

type PinnedNumbers<'o> = PinnedRooted<'o, [u64]>;

/// How a test collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Whole,
    Young,
    Steps,
    Stress,
}

const EACH: [How; 4] = [How::Whole, How::Young, How::Steps, How::Stress];

impl How {
    /// Collects what was made since the last collection, at least.
    fn collect<'m>(self, mutator: &mut TypedMutator<'_, 'm, Arena<'m>>) {
        match self {
            Self::Whole | Self::Stress => drop(mutator.collect(ALL).unwrap()),
            Self::Young => drop(mutator.collect_up_to(0, ALL).unwrap()),
            Self::Steps => while !matches!(mutator.step(ALL, || false).unwrap(), Step::Done(_)) {},
        }
    }
}

/// Objects of all shapes stay where they are as long as they are pinned, and what they refer to is kept and moves.
#[test]
fn a_pinned_object_does_not_move() {
    for how in EACH {
        with_objects(256 << 10, |objects| {
            let mut mutator = objects.register().unwrap();
            let stressed = (how == How::Stress).then(|| objects.heap().stress());
            let (item, text, slice, rooted): (
                PinnedRooted<'_, Item<'static>>,
                PinnedRooted<'_, str>,
                PinnedRooted<'_, [u16]>,
                Rooted<'_, Item<'static>>,
            ) = mutator
                .try_enter(|inside| {
                    let items = list(inside, 0..5).unwrap();
                    Ok((
                        objects.pin(inside, items)?,
                        objects.pin(inside, inside.text("text")?)?,
                        objects.pin(inside, inside.slice(3, |index| index as u16)?)?,
                        objects.root(inside, list(inside, 7..9).unwrap())?,
                    ))
                })
                .unwrap();
            let (line, nothing): (PinnedRooted<'_, Line>, PinnedRooted<'_, Nothing>) = mutator
                .try_enter(|inside| {
                    let line = objects.pin(inside, inside.alloc(Line(9))?)?;
                    Ok((line, objects.pin(inside, inside.alloc(Nothing)?)?))
                })
                .unwrap();
            let at = (item.as_ptr(), text.as_ptr(), slice.as_ptr(), line.as_ptr(), nothing.as_ptr());
            let mut moved = 0;
            for round in 0..4 {
                let before = mutator.enter(|inside| rooted.get(inside).unwrap().as_ptr().addr());
                how.collect(&mut mutator);
                let now = (item.as_ptr(), text.as_ptr(), slice.as_ptr(), line.as_ptr(), nothing.as_ptr());
                assert_eq!(now, at, "{how:?}, in round {round}");
                mutator.enter(|inside| {
                    let found = item.get(inside).unwrap();
                    assert_eq!(found.as_ptr().addr(), at.0.addr());
                    assert_eq!(names(Some(found)), [4, 3, 2, 1, 0]);
                    assert_eq!(text.get(inside).unwrap().as_ptr(), at.1);
                    assert_eq!(&*text.get(inside).unwrap(), "text");
                    assert_eq!(slice.get(inside).unwrap().as_ptr(), at.2);
                    assert_eq!(slice.get(inside).unwrap().get(), [0, 1, 2]);
                    assert_eq!((line.get(inside).unwrap().0, at.3.addr() % 64), (9, 0));
                    let rooted = rooted.get(inside).unwrap();
                    assert_eq!(names(Some(rooted)), [8, 7]);
                    moved += usize::from(rooted.as_ptr().addr() != before);
                    // Others come and go beside them.
                    list(inside, 0..50);
                });
            }
            // The control: without a pin it is moved, unless nothing is.
            assert_eq!(moved > 0, how != How::Steps, "{how:?}");
            drop(stressed);
            drop((text, slice, line, nothing));
            let item_alone = kept(&mut mutator);
            drop(item);
            assert!(kept(&mut mutator) < item_alone, "a root that is dropped keeps nothing");
        });
    }
}

/// As long as one of several exists, also if another thread has it.
#[test]
fn the_last_pin_counts() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let (first, second, rooted): (PinnedNumbers<'_>, PinnedNumbers<'_>, Rooted<'_, [u64]>) = mutator
            .try_enter(|inside| {
                let numbers = inside.slice(4, |index| index as u64)?;
                let pin = || objects.pin(inside, numbers);
                Ok((pin()?, pin()?, objects.root(inside, numbers)?))
            })
            .unwrap();
        let at = first.as_ptr().addr();
        let second = thread::scope(|scope| {
            let other = scope.spawn(move || {
                let mut mutator = objects.register().unwrap();
                drop(first);
                mutator.collect(ALL).unwrap();
                assert_eq!(second.as_ptr().addr(), at);
                second
            });
            other.join().unwrap()
        });
        mutator.collect(ALL).unwrap();
        let place = |mutator: &mut TypedMutator<'_, '_, _>| {
            mutator.enter(|inside| rooted.get(inside).unwrap().as_ptr().addr())
        };
        assert_eq!(place(&mut mutator), at);
        drop(second);
        mutator.collect(ALL).unwrap();
        assert_ne!(place(&mut mutator), at, "no root pins it");
        assert_eq!(mutator.enter(|inside| rooted.get(inside).unwrap().len()), 4);
    });
}

/// A transform would have the root keep another object, at another address.
#[test]
fn a_pinned_object_is_not_replaced() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let mut transform = Transform::create(objects.heap(), 1).unwrap();
        let pinned: PinnedRooted<'_, u64> = mutator
            .try_enter(|inside| {
                let (old, new) = (inside.alloc(1_u64)?, inside.alloc(2_u64)?);
                transform.add(inside, old, new)?;
                objects.pin(inside, old)
            })
            .unwrap();
        let at = pinned.as_ptr();
        let applied = mutator.stop(ALL).map(|mut stopped| transform.apply(&mut stopped)).unwrap();
        assert!(matches!(applied, Err(NotApplied::Ambiguous { .. })), "{applied:?}");
        assert_eq!(mutator.enter(|inside| *pinned.get(inside).unwrap().get()), 1);
        assert_eq!(pinned.as_ptr(), at);
    });
}

/// What the two kinds of weak roots lead to.
fn found<'m>(
    mutator: &mut TypedMutator<'_, 'm, Arena<'m>>,
    short: &ShortWeakRooted<'_, Item<'static>>,
    long: &WeakRooted<'_, Item<'static>>,
) -> [Option<usize>; 2] {
    mutator.enter(|inside| {
        [short.get(inside).unwrap(), long.get(inside).unwrap()].map(|item| item.map(|item| item.name))
    })
}

/// A short one ends when its object is found dead, also if that is kept to be finalized, and stays so if that is
/// resurrected. A long one lasts until the object is freed.
#[test]
fn short_weak_roots_end_before_finalization() {
    for how in EACH {
        with_objects(256 << 10, |objects| {
            let mut mutator = objects.register().unwrap();
            let stressed = (how == How::Stress).then(|| objects.heap().stress());
            let queue: FinalQueue<'_, Item<'static>> = objects.final_queue().unwrap();
            let (root, short, long) = mutator
                .try_enter(|inside| {
                    let item = list(inside, 1..2).unwrap();
                    queue.register(inside, item)?;
                    Ok((
                        objects.root(inside, item)?,
                        objects.short_weak_root(inside, item)?,
                        objects.weak_root(inside, item)?,
                    ))
                })
                .unwrap();
            for _ in 0..2 {
                // It is moved, and the roots follow it.
                how.collect(&mut mutator);
                assert_eq!(found(&mut mutator, &short, &long), [Some(1); 2], "{how:?}: it is kept");
                mutator.enter(|inside| {
                    let [root, short] = [root.get(inside).unwrap(), short.get(inside).unwrap().unwrap()];
                    assert!(root.is_same(short));
                });
            }
            drop(root);
            if how == How::Young {
                // It is older by now.
                How::Whole.collect(&mut mutator);
            } else {
                how.collect(&mut mutator);
            }
            assert_eq!(
                found(&mut mutator, &short, &long),
                [None, Some(1)],
                "{how:?}: it waits to be finalized"
            );
            how.collect(&mut mutator);
            assert_eq!(found(&mut mutator, &short, &long), [None, Some(1)], "{how:?}: it still waits");
            let (root, again): (Rooted<'_, Item<'static>>, ShortWeakRooted<'_, Item<'static>>) = mutator
                .try_enter(|inside| {
                    let item = queue.take(inside)?.unwrap();
                    Ok((objects.root(inside, item)?, objects.short_weak_root(inside, item)?))
                })
                .unwrap();
            How::Whole.collect(&mut mutator);
            assert_eq!(found(&mut mutator, &short, &long), [None, Some(1)], "{how:?}: it is resurrected");
            assert_eq!(found(&mut mutator, &again, &long), [Some(1); 2], "{how:?}: one that was made since");
            drop(root);
            How::Whole.collect(&mut mutator);
            assert_eq!(found(&mut mutator, &again, &long), [None; 2], "{how:?}: it is freed");
            drop(stressed);
        });
    }
}

/// Also that of what a dead object leads to, that of a young object that dies at once, and one that refers to another
/// object later.
#[test]
fn short_weak_roots_end_with_all_that_only_finalization_keeps() {
    for how in EACH {
        with_objects(256 << 10, |objects| {
            let mut mutator = objects.register().unwrap();
            let stressed = (how == How::Stress).then(|| objects.heap().stress());
            let queue: FinalQueue<'_, Item<'static>> = objects.final_queue().unwrap();
            let (mut short, long, plain) = mutator
                .try_enter(|inside| {
                    let last = list(inside, 3..4).unwrap();
                    let first = inside.alloc(Item { name: 4, copy: 4, next: Some(last) })?;
                    queue.register(inside, first)?;
                    let plain = objects.short_weak_root(inside, list(inside, 9..10).unwrap())?;
                    Ok((objects.short_weak_root(inside, last)?, objects.weak_root(inside, last)?, plain))
                })
                .unwrap();
            how.collect(&mut mutator);
            assert_eq!(found(&mut mutator, &short, &long), [None, Some(3)], "{how:?}");
            assert_eq!(found(&mut mutator, &plain, &long), [None, Some(3)], "{how:?}: it was not registered");
            let root: Rooted<'_, Item<'static>> = mutator
                .try_enter(|inside| {
                    let item = list(inside, 5..6).unwrap();
                    short.set(inside, item)?;
                    objects.root(inside, item)
                })
                .unwrap();
            how.collect(&mut mutator);
            assert_eq!(found(&mut mutator, &short, &long), [Some(5), Some(3)], "{how:?}");
            mutator.enter(|inside| assert_eq!(names(queue.take(inside).unwrap()), [4, 3]));
            drop((root, stressed));
        });
    }
}

#[test]
fn handles_belong_to_the_objects_that_they_were_made_in() {
    with_objects(256 << 10, |objects| {
        with_objects(256 << 10, |others| {
            let (mut mutator, mut stranger) = (objects.register().unwrap(), others.register().unwrap());
            let (pinned, mut short) = mutator
                .try_enter(|inside| {
                    let number = inside.alloc(7_u64)?;
                    Ok((objects.pin(inside, number)?, objects.short_weak_root(inside, number)?))
                })
                .unwrap();
            stranger.enter(|inside| {
                let number = inside.alloc(8_u64).unwrap();
                assert!(matches!(objects.pin(inside, number), Err(Error::Parameter(_))));
                assert!(matches!(objects.short_weak_root(inside, number), Err(Error::Parameter(_))));
                assert!(matches!(pinned.get(inside), Err(Error::Parameter(_))));
                assert!(matches!(short.get(inside), Err(Error::Parameter(_))));
                assert!(matches!(short.set(inside, number), Err(Error::Parameter(_))));
            });
        });
    });
}
