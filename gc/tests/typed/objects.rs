//! Typed objects: what can be in them, and what keeps them (design/gc-typed.md `.req.safe`).

use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;

use crate::common::WORD;
use crate::items::{ALL, Item, kept, list, names, with_objects};
use tripoint_core::{Arena, Error};
use tripoint_gc::{
    Collection, Gc, Link, Plain, Postponed, Referent, Rooted, Scan, SweptOptions, Trace, Transform,
    TypedMutator, TypedObjects, WeakLink, object_types,
};

object_types! {
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

#[test]
fn what_a_root_leads_to_is_kept_until_it_is_dropped() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let root = mutator.enter(|inside| objects.root(inside, list(inside, 0..10).unwrap()).unwrap());
        let item = WORD + size_of::<Item<'_>>();
        assert_eq!(kept(&mut mutator), 10 * item);
        mutator.enter(|inside| {
            let first = root.get(inside).unwrap();
            assert_eq!(names(Some(first)), Vec::from_iter((0..10).rev()));
            assert!(first.next.unwrap().is_same(first.get().next.unwrap()));
        });
        drop(root);
        assert_eq!(kept(&mut mutator), 0);
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
        assert_eq!(kept(&mut mutator), 2 * WORD + "one and two".len().next_multiple_of(WORD));
        mutator.enter(|inside| assert_eq!(&*root.get(inside).unwrap(), "one and two"));
    });
}

/// A collection looks at roots that were written since the last look, or whose objects may be of a generation that it
/// collects (design/gc-typed.md `.typed.roots.generation`).
#[test]
fn roots_of_old_objects_are_not_looked_at() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let looked = |found: Result<Collection, Postponed>| found.unwrap().roots;
        let (mut roots, weak) = mutator.enter(|inside| {
            let numbers: Vec<_> = (0..100_usize).map(|number| inside.alloc(number).unwrap()).collect();
            let weak: Vec<_> =
                numbers.iter().map(|number| objects.weak_root(inside, *number).unwrap()).collect();
            (numbers.iter().map(|number| objects.root(inside, *number).unwrap()).collect::<Vec<_>>(), weak)
        });
        let found = [0, 0, 1, 0, 1, 2].map(|oldest| looked(mutator.collect_up_to(oldest, Duration::MAX)));
        assert_eq!(found, [200, 0, 200, 0, 0, 200]);
        // One refers to a young object now: its chunk is looked at, until all in it are old again.
        mutator.enter(|inside| roots[50].set(inside, inside.alloc(150).unwrap()).unwrap());
        assert!((1..40).contains(&looked(mutator.collect_up_to(0, Duration::MAX))));
        assert_eq!(looked(mutator.collect_up_to(0, Duration::MAX)), 0);
        // A walk changes nothing, and a transform may have a root refer to a younger object.
        mutator.stop(Duration::MAX).unwrap().walk_roots(|_| ());
        assert_eq!(looked(mutator.collect_up_to(0, Duration::MAX)), 0);
        let mut transform = Transform::create(objects.heap(), 1).unwrap();
        mutator.enter(|inside| {
            transform.add(inside, roots[70].get(inside).unwrap(), inside.alloc(170).unwrap()).unwrap();
        });
        transform.apply(&mut mutator.stop(Duration::MAX).unwrap()).unwrap();
        drop(transform);
        assert!((1..80).contains(&looked(mutator.collect_up_to(0, Duration::MAX))));
        // A slot that is used again refers to a young object, too.
        drop(roots.remove(0));
        roots.insert(
            0,
            mutator.enter(|inside| objects.root(inside, inside.alloc(200_usize).unwrap()).unwrap()),
        );
        for oldest in [0, 1, 0, 2] {
            mutator.collect_up_to(oldest, Duration::MAX).unwrap();
            mutator.enter(|inside| {
                for (index, (root, weak)) in roots.iter().zip(&weak).enumerate() {
                    let number = match index {
                        0 => 200,
                        50 => 150,
                        70 => 170,
                        _ => index,
                    };
                    assert_eq!(*root.get(inside).unwrap(), number);
                    let weak = weak.get(inside).unwrap().map(|number| *number);
                    if !(index == 0 || index == 50) || oldest == 2 {
                        assert_eq!(weak, (index != 0 && index != 50).then_some(number));
                    }
                }
            });
        }
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
            assert_eq!(kept(&mut mutator), 100 * 2 * WORD);
            mutator.enter(|inside| {
                for (number, root) in roots.iter().enumerate() {
                    assert_eq!(*root.get(inside).unwrap(), number);
                }
            });
            roots.truncate(40);
            assert_eq!(kept(&mut mutator), 40 * 2 * WORD);
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
            kept(&mut mutator);
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
        assert_eq!(kept(&mut mutator), 2 * pair);
    });
}

/// An attribute macro may change a declaration after `object_types!` has read it. So what has references is asked of the
/// fields as they are, whatever types were written (design/gc-typed.md `.typed.trace.compiled`).
#[test]
fn fields_are_asked_as_they_were_compiled() {
    struct Changed<'g>(u8, Link<'g, Item<'g>>);
    // SAFETY: the block is empty.
    tripoint_gc::__implement_trace!(unsafe {} Changed ['g] [u8 u64] [(; u8, u64,) Self]);

    #[expect(dead_code, reason = "no value is made")]
    enum Weakened<'g> {
        Nothing,
        Weak { to: WeakLink<'g, Item<'g>> },
    }
    // SAFETY: the block is empty.
    tripoint_gc::__implement_trace!(unsafe {} Weakened ['g] [u64] [Self::Nothing] [{to} Self::Weak]);

    assert_eq!([Changed::HAS_REFERENCES, Changed::HAS_WEAK_LINKS], [true, false]);
    assert_eq!([Weakened::HAS_REFERENCES, Weakened::HAS_WEAK_LINKS], [true, true]);
    assert_eq!([Line::HAS_REFERENCES, Nothing::HAS_REFERENCES], [false, false]);
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let root = mutator.enter(|inside| {
            let item = list(inside, 0..1).unwrap();
            objects.root(inside, inside.alloc(Changed(1, Link::new(Some(item)))).unwrap()).unwrap()
        });
        kept(&mut mutator);
        mutator.enter(|inside| assert_eq!(names(root.get(inside).unwrap().1.get()), [0]));
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
        assert_eq!(kept(&mut mutator), sizes);
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

/// Where objects are does not show, except by their addresses (design/gc-typed.md `.typed.move`).
#[test]
fn objects_move_while_no_thread_is_inside() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let count = if cfg!(miri) { 20 } else { 200 };
        let (mut first, mut second) = mutator.enter(|inside| {
            // Garbage between them, so that no object stays by chance.
            let items = (0..count).fold(None, |next, name| {
                inside.text("garbage").unwrap();
                Some(inside.alloc(Item { name, copy: name, next }).unwrap())
            });
            let root = |item| objects.root(inside, item).unwrap();
            (root(items.unwrap()), root(items.unwrap().next.unwrap()))
        });
        for round in 0..3 {
            let before = mutator.enter(|inside| first.get(inside).map(address).unwrap());
            let found = mutator.collect(ALL).unwrap();
            assert_eq!(
                (found.moved, found.refused),
                (count * (WORD + size_of::<Item<'_>>()), 0),
                "round {round}"
            );
            mutator.enter(|inside| {
                let [one, two] = [&first, &second].map(|root| root.get(inside).unwrap());
                assert_ne!(address(one), before);
                assert!(one.next.unwrap().is_same(two), "both references changed");
                assert_eq!(names(Some(one)), Vec::from_iter((0..count).rev()));
                first.set(inside, one).unwrap();
                second.set(inside, two).unwrap();
            });
        }
    });
}

fn address<T: Referent + ?Sized>(object: Gc<'_, T>) -> usize {
    core::ptr::from_ref(&*object).cast::<u8>().addr()
}

/// (design/gc.md `.location.use`)
#[test]
fn a_dependency_says_whether_addresses_changed() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let text = mutator.enter(|inside| objects.root(inside, inside.text("moved").unwrap()).unwrap());
        let [of_text, of_none] = mutator.enter(|inside| {
            let mut of_text = inside.reset_dependency();
            of_text.add(text.get(inside).unwrap().as_ptr().cast());
            assert!(!inside.is_stale(of_text));
            [of_text, inside.reset_dependency()]
        });
        mutator.collect(ALL).unwrap();
        mutator.enter(|inside| assert!(inside.is_stale(of_text) && !inside.is_stale(of_none)));
    });
}

/// An address of these may be used outside, as long as a root keeps the object.
#[test]
fn aligned_objects_and_large_ones_stay() {
    with_objects(256 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let (line, wide, large) = mutator.enter(|inside| {
            for index in 0..100 {
                inside.alloc((Line(index), index)).unwrap();
            }
            let wide = Wide(inside.alloc(7_u128).unwrap());
            (
                objects.root(inside, inside.alloc(Line(1)).unwrap()).unwrap(),
                objects.root(inside, inside.alloc(wide).unwrap()).unwrap(),
                objects.root(inside, inside.slice(2000, |index| index).unwrap()).unwrap(),
            )
        });
        let look = |mutator: &mut TypedMutator<'_, '_, _>| {
            mutator.enter(|inside| {
                let (line, wide) = (line.get(inside).unwrap(), wide.get(inside).unwrap());
                let large = large.get(inside).unwrap();
                assert_eq!((line.0, *wide.0, large[1999]), (1, 7, 1999));
                [address(line), address(wide), address(wide.0), address(large)]
            })
        };
        let before = look(&mut mutator);
        let found = mutator.collect(ALL).unwrap();
        assert_eq!((found.moved, look(&mut mutator)), (0, before));
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
        assert_eq!(kept(&mut mutator), slices + 40 * 3 * WORD + 2 * WORD);
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
        assert_eq!(kept(&mut mutator), 0);
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
        let mut stopped = mutator.stop(ALL).unwrap();
        stopped.walk_objects(|object| found.push((object.type_name.unwrap(), object.block.size())));
        found.sort_unstable();
        let line = core::any::type_name::<Line>();
        assert_eq!(found, [("[u16]", 2 * WORD + 8), ("str", 3 * WORD), (line, 128)]);
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
        assert_ne!(kept(&mut mutator), 0);
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
    const HAS_WEAK_LINKS: bool = false;

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
        assert_eq!(kept(&mut mutator), 2 * 2 * WORD, "its number is freed");
    });
}

/// A value without a size, which counts how many times it is traced.
struct Counting;

static TRACES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: there is no reference in it.
unsafe impl Trace for Counting {
    type At<'g> = Self;
    type Static = Self;

    const HAS_REFERENCES: bool = true;
    const HAS_WEAK_LINKS: bool = false;

    fn trace(&mut self, _scan: &mut Scan<'_>) {
        TRACES.fetch_add(1, Ordering::Relaxed);
    }
}

/// There may be `usize::MAX` of them in a slice.
#[test]
fn items_without_a_size_are_not_traced_one_by_one() {
    with_objects(64 << 10, |objects| {
        let mut mutator = objects.register().unwrap();
        let slice =
            mutator.enter(|inside| objects.root(inside, inside.slice(1000, |_| Counting).unwrap()).unwrap());
        assert_eq!(kept(&mut mutator), 2 * WORD);
        mutator.enter(|inside| assert_eq!(slice.get(inside).unwrap().len(), 1000));
        assert_eq!(TRACES.load(Ordering::Relaxed), 0);
    });
}

/// A program makes room in a quiet moment, and allocates without a fill until it is used up.
#[test]
fn room_that_was_made_is_enough_without_a_fill() {
    with_objects(64 << 10, |objects| {
        let (heap, mut mutator) = (objects.heap(), objects.register().unwrap());
        let fills = || heap.arena().counts().fills.get();
        for _ in 0..3 {
            let room = mutator.enter(|inside| inside.make_room::<Item<'_>>(40)).unwrap();
            let before = fills();
            mutator.enter(|inside| {
                assert_eq!(inside.make_room::<Item<'_>>(room), Ok(room), "there is as much already");
                assert_eq!(names(list(inside, 0..room)).len(), room);
            });
            assert_eq!((room >= 40, fills()), (true, before));
        }
        // What is refused begins no collection, and what cannot be says so.
        let mut refused = |count| mutator.enter(|inside| inside.make_room::<Item<'_>>(count));
        assert_eq!([10_000, usize::MAX].map(|count| refused(count).is_err()), [true; 2]);
        assert_eq!(heap.counts().collections.get(), 0);
    });
}
