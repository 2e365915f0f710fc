//! Finalization of typed objects: queues by type (design/gc-typed.md `.typed.final`).

use std::thread;

use crate::common::WORD;
use crate::items::{ALL, Item, kept, list, names, with_objects};
use tripoint_core::{Arena, BarrierPair, Error};
use tripoint_gc::{
    FinalQueue, Gc, Link, Rooted, SweptOptions, Transform, TypedMutator, TypedObjects, WeakRooted,
    object_types,
};

object_types! {
    /// An object that stands for something outside.
    struct Port<'g> {
        number: usize,
        items: Option<Gc<'g, Item<'g>>>,
        other: Link<'g, Port<'g>>,
    }

    #[repr(align(32))]
    struct Line(u8);
}

type Ports<'o> = FinalQueue<'o, Port<'static>>;

#[test]
fn dead_objects_wait_in_their_queue() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let (ports, texts): (Ports<'_>, FinalQueue<'_, str>) =
            (objects.final_queue().unwrap(), objects.final_queue().unwrap());
        let root: Rooted<'_, Port<'static>> = mutator
            .try_enter(|inside| {
                let port = |number| {
                    let items = list(inside, 0..3);
                    inside.alloc(Port { number, items, other: Link::default() })
                };
                let made = [port(0)?, port(1)?, port(2)?, port(3)?];
                // A ring, whose members die together.
                made[2].other.set(inside, made[1]);
                made[1].other.set(inside, made[2]);
                for index in [2, 3, 1, 0] {
                    ports.register(inside, made[index])?;
                }
                texts.register(inside, inside.text("a text")?)?;
                texts.register(inside, inside.text("another")?)?;
                objects.root(inside, made[3])
            })
            .unwrap();
        let none =
            mutator.try_enter(|inside| Ok(ports.take(inside)?.is_none() && texts.take(inside)?.is_none()));
        assert_eq!(none, Ok(true), "before a collection");
        let all = kept(&mut mutator);
        // What is found dead is kept until it is taken, and moves as other objects do.
        assert_eq!(kept(&mut mutator), all);
        mutator
            .try_enter(|inside| {
                let mut taken = Vec::new();
                while let Some(port) = ports.take(inside)? {
                    assert_eq!(names(port.items), [2, 1, 0]);
                    taken.push(port.number);
                    if let Some(other) = port.other.get() {
                        assert!(other.other.get().unwrap().is_same(port));
                    }
                }
                assert_eq!(taken, [2, 1, 0], "in the order of registration");
                assert_eq!(texts.take(inside)?.as_deref(), Some("a text"));
                Ok(())
            })
            .unwrap();
        let port = WORD + size_of::<Port<'_>>() + 3 * (WORD + size_of::<Item<'_>>());
        let text = 2 * WORD + "another".len().next_multiple_of(WORD);
        assert_eq!(kept(&mut mutator), port + text, "a port in a root, and a text in a queue");
        drop(texts);
        assert_eq!(kept(&mut mutator), port, "a queue that is dropped keeps nothing");
        drop(root);
        assert_eq!(kept(&mut mutator), port);
        mutator.enter(|inside| assert_eq!(ports.take(inside).unwrap().unwrap().number, 3));
        assert_eq!(kept(&mut mutator), 0);
    });
}

/// A registration ends when its object is in the queue, and an object may be registered again.
#[test]
fn an_object_is_taken_once_for_each_registration() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let [first, second]: [FinalQueue<'_, Line>; 2] = [(); 2].map(|()| objects.final_queue().unwrap());
        mutator.enter(|inside| {
            let line = inside.alloc(Line(7)).unwrap();
            for queue in [&first, &first, &second] {
                queue.register(inside, line).unwrap();
            }
        });
        for round in 0..3 {
            mutator.collect(ALL).unwrap();
            mutator.enter(|inside| {
                let mut lines = Vec::new();
                for queue in [&first, &second] {
                    while let Some(line) = queue.take(inside).unwrap() {
                        assert_eq!(line.0, 7);
                        lines.push(line);
                    }
                }
                assert_eq!(lines.len(), if round == 0 { 3 } else { 1 });
                assert!(lines.iter().all(|line| line.is_same(lines[0])));
                second.register(inside, lines[0]).unwrap();
            });
        }
    });
}

/// Collects, and returns how many registrations were looked at.
fn looked<A: Arena + Clone, B: BarrierPair>(
    mutator: &mut TypedMutator<'_, '_, A, B>,
    oldest: usize,
) -> usize {
    mutator.collect_up_to(oldest, ALL).unwrap().registrations
}

fn take_all<A: Arena + Clone, B: BarrierPair>(
    mutator: &mut TypedMutator<'_, '_, A, B>,
    queue: &FinalQueue<'_, u64>,
) -> Vec<u64> {
    mutator
        .enter(|inside| core::iter::from_fn(|| queue.take(inside).unwrap().map(|number| *number)).collect())
}

/// A collection looks at a registration if its object may be of a generation that it collects (design/gc.md
/// `.final.generation`).
#[test]
fn registrations_of_old_objects_are_not_looked_at() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let queue: FinalQueue<'_, u64> = objects.final_queue().unwrap();
        let roots: Vec<_> = mutator.enter(|inside| {
            let register = |number| {
                let object = inside.alloc(number).unwrap();
                queue.register(inside, object).unwrap();
                objects.root(inside, object).unwrap()
            };
            (0..20).map(register).collect()
        });
        // The objects are in generation 1 after the first, and in generation 2 after the third.
        assert_eq!([0, 0, 1, 0, 1, 2].map(|oldest| looked(&mut mutator, oldest)), [20, 0, 20, 0, 0, 20]);
        // One is young, and one is registered anew.
        mutator.enter(|inside| {
            queue.register(inside, inside.alloc(20).unwrap()).unwrap();
            queue.register(inside, roots[0].get(inside).unwrap()).unwrap();
        });
        assert_eq!([0, 0, 1].map(|oldest| looked(&mut mutator, oldest)), [2, 0, 0]);
        // All die at once: the queues of generations were not in the order of registration.
        assert_eq!(take_all(&mut mutator, &queue), [20], "the young one was dead");
        mutator.enter(|inside| queue.register(inside, inside.alloc(21).unwrap()).unwrap());
        drop(roots);
        assert_eq!(looked(&mut mutator, 2), 22);
        assert_eq!(
            take_all(&mut mutator, &queue),
            (0..20).chain([0, 21]).collect::<Vec<_>>(),
            "in the order of registration"
        );
    });
}

/// A transform may have a registration be one of a younger object.
#[test]
fn a_registration_of_an_old_object_may_become_that_of_a_young_one() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let queue: FinalQueue<'_, u64> = objects.final_queue().unwrap();
        let root = mutator.enter(|inside| {
            let old = inside.alloc(1).unwrap();
            queue.register(inside, old).unwrap();
            objects.root(inside, old).unwrap()
        });
        for _ in 0..3 {
            mutator.collect(ALL).unwrap();
        }
        let mut transform = Transform::create(objects.heap(), 1).unwrap();
        mutator.enter(|inside| {
            transform.add(inside, root.get(inside).unwrap(), inside.alloc(2).unwrap()).unwrap();
        });
        assert_eq!(transform.apply(&mut mutator.stop(ALL).unwrap()), Ok(2), "a root and a registration");
        // It moves, and the registration follows it.
        mutator.collect_up_to(0, ALL).unwrap();
        drop(root);
        mutator.collect_up_to(1, ALL).unwrap();
        mutator.enter(|inside| assert_eq!(queue.take(inside).unwrap().as_deref(), Some(&2)));
    });
}

/// (design/gc.md `.weak.stage`)
#[test]
fn a_weak_root_leads_to_an_object_until_it_was_taken() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let ports: Ports<'_> = objects.final_queue().unwrap();
        let weak: WeakRooted<'_, Port<'static>> = mutator
            .try_enter(|inside| {
                let port = inside.alloc(Port { number: 5, items: None, other: Link::default() })?;
                ports.register(inside, port)?;
                objects.weak_root(inside, port)
            })
            .unwrap();
        mutator.collect(ALL).unwrap();
        mutator.enter(|inside| {
            let port = weak.get(inside).unwrap().unwrap();
            assert!(ports.take(inside).unwrap().unwrap().is_same(port));
            assert_eq!(port.number, 5);
        });
        mutator.collect(ALL).unwrap();
        mutator.enter(|inside| assert!(weak.get(inside).unwrap().is_none()));
    });
}

#[test]
fn queues_of_other_objects_and_messages_are_separate() {
    with_objects(256 << 10, |objects| {
        let others = TypedObjects::create(objects.heap(), SweptOptions::default()).unwrap();
        let (mut mutator, mut other) = (objects.register().unwrap(), others.register().unwrap());
        let queue: FinalQueue<'_, u64> = objects.final_queue().unwrap();
        mutator.try_enter(|inside| queue.register(inside, inside.alloc(1)?)).unwrap();
        other.enter(|inside| {
            let number = inside.alloc(2_u64).unwrap();
            assert!(matches!(queue.register(inside, number), Err(Error::Parameter(_))));
            assert!(matches!(queue.take(inside), Err(Error::Parameter(_))));
        });
        {
            let mut untyped = objects.heap().register().unwrap();
            untyped.collect(ALL).unwrap();
            assert_eq!(untyped.next_message(), None, "typed objects are no messages of the heap");
        }
        mutator.enter(|inside| assert_eq!(*queue.take(inside).unwrap().unwrap(), 1));
    });
}

/// A queue that is leaked keeps its objects until their pools are dropped, and its records until the heap is.
#[test]
fn leaked_queues_end_with_their_heap() {
    crate::common::with_heap(256 << 10, |heap| {
        let objects = TypedObjects::create(heap, SweptOptions::default()).unwrap();
        let mut mutator = objects.register().unwrap();
        let queues = [(); 3].map(|()| objects.final_queue::<u64>().unwrap());
        mutator.enter(|inside| {
            for queue in &queues {
                queue.register(inside, inside.alloc(3_u64).unwrap()).unwrap();
            }
        });
        mutator.collect(ALL).unwrap();
        core::mem::forget(queues);
        drop(mutator);
        drop(objects);
        heap.collect(ALL).unwrap();
    });
}

/// Each port is taken by one thread.
#[test]
fn threads_share_queues() {
    let (threads, each) = (3, if cfg!(miri) { 5 } else { 200 });
    with_objects(1 << 20, |objects| {
        let ports: Ports<'_> = objects.final_queue().unwrap();
        thread::scope(|scope| {
            for thread in 0..threads {
                let ports = &ports;
                scope.spawn(move || {
                    let mut mutator = objects.register().unwrap();
                    for index in 0..each {
                        mutator.enter(|inside| {
                            let (number, other) = (thread * each + index, Link::default());
                            let port = inside.alloc(Port { number, items: None, other }).unwrap();
                            ports.register(inside, port).unwrap();
                        });
                        if index % 50 == 0 {
                            mutator.collect(ALL).unwrap();
                        }
                    }
                });
            }
        });
        // All are registered.
        let taken: Vec<usize> = thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|_| {
                    scope.spawn(|| {
                        let mut mutator = objects.register().unwrap();
                        mutator.collect(ALL).unwrap();
                        let mut taken = Vec::new();
                        while let Some(port) =
                            mutator.enter(|inside| ports.take(inside).unwrap().map(|port| port.number))
                        {
                            taken.push(port);
                        }
                        taken
                    })
                })
                .collect();
            handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
        });
        let mut sorted = taken;
        sorted.sort_unstable();
        assert_eq!(sorted, Vec::from_iter(0..threads * each));
    });
}
