//! Collections in steps, against a shadow graph that knows what is reachable (design/gc-steps.md `.req.kept`,
//! `.req.freed`).
//!
//! Mutators run and write between the steps, and each step does as little as it may. After each, all that is reachable
//! has to be as it was made. When a collection is done, nothing is kept that was unreachable when it began.

use core::time::Duration;

use crate::common::{Arena, with_heap};
use proptest::prelude::*;
use tripoint_core::{Error, SymmetricFence};
use tripoint_gc::{Gc, Inside, Link, Rooted, Step, SweptOptions, TypedObjects, object_types};
use tripoint_oracle::cases;

object_types! {
    struct Node<'g> {
        name: usize,
        links: Gc<'g, [Link<'g, Node<'g>>]>,
    }
}

type In<'g, 'm> = Inside<'g, Arena<'m>, SymmetricFence>;

/// What a program does. Numbers are of roots, modulo [`ROOTS`], and of links, modulo how many there are.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Makes a node with links to what all roots have, in a root.
    Make {
        links: usize,
        root: u8,
    },
    /// A link of what a root has changes to what another has.
    Link {
        from: u8,
        index: u8,
        to: u8,
    },
    /// A link of what a root has is cleared.
    Unlink {
        from: u8,
        index: u8,
    },
    /// A root changes to what a link of what a root has leads to.
    Follow {
        from: u8,
        index: u8,
        root: u8,
    },
    Clear {
        root: u8,
    },
    /// A step of that many pieces.
    Step {
        pieces: u8,
    },
    /// A whole collection, which gives up the one in steps.
    Collect,
    /// One of young generations.
    CollectYoung,
    /// A walk, which gives up marks.
    Walk,
}

fn act() -> impl Strategy<Value = Act> {
    let links = prop_oneof![9 => 0_usize..6, 1 => 100_usize..300];
    prop_oneof![
        12 => (links, any::<u8>()).prop_map(|(links, root)| Act::Make { links, root }),
        8 => (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(from, index, to)| Act::Link { from, index, to }),
        4 => (any::<u8>(), any::<u8>()).prop_map(|(from, index)| Act::Unlink { from, index }),
        8 => (any::<u8>(), any::<u8>(), any::<u8>())
            .prop_map(|(from, index, root)| Act::Follow { from, index, root }),
        4 => any::<u8>().prop_map(|root| Act::Clear { root }),
        20 => (1_u8..4).prop_map(|pieces| Act::Step { pieces }),
        1 => Just(Act::Collect),
        1 => Just(Act::CollectYoung),
        1 => Just(Act::Walk),
    ]
}

const ROOTS: usize = 6;

fn root_of(number: u8) -> usize {
    usize::from(number) % ROOTS
}

/// A graph and its shadow: the links of each node, by the numbers of nodes.
struct Graph<'o, 'm> {
    objects: &'o TypedObjects<'m, Arena<'m>>,
    roots: [Option<Rooted<'o, Node<'static>>>; ROOTS],
    held: [Option<usize>; ROOTS],
    shadow: Vec<Vec<Option<usize>>>,
}

impl<'m> Graph<'_, 'm> {
    fn held<'g>(&self, inside: &In<'g, 'm>, root: usize) -> Option<Gc<'g, Node<'g>>> {
        self.roots[root].as_ref().map(|root| root.get(inside).unwrap())
    }

    fn hold<'g>(
        &mut self,
        inside: &In<'g, 'm>,
        root: usize,
        to: Option<(Gc<'g, Node<'g>>, usize)>,
    ) -> Result<(), Error> {
        match (&mut self.roots[root], to) {
            (Some(root), Some((node, _))) => root.set(inside, node)?,
            (empty, Some((node, _))) => *empty = Some(self.objects.root(inside, node)?),
            (root, None) => *root = None,
        }
        self.held[root] = to.map(|(_, number)| number);
        Ok(())
    }

    fn link_of(&self, root: u8, index: u8) -> Option<(usize, usize)> {
        let number = self.held[root_of(root)]?;
        let count = self.shadow[number].len();
        (count != 0).then(|| (number, usize::from(index) % count))
    }

    fn run<'g>(&mut self, inside: &In<'g, 'm>, act: Act) -> Result<(), Error> {
        match act {
            Act::Make { links, root } => {
                let targets: [_; ROOTS] = core::array::from_fn(|root| self.held(inside, root));
                let linked = inside.slice(links, |index| Link::new(targets[index % ROOTS]))?;
                let number = self.shadow.len();
                let node = inside.alloc(Node { name: number, links: linked })?;
                self.shadow.push((0..links).map(|index| self.held[index % ROOTS]).collect());
                self.hold(inside, root_of(root), Some((node, number)))?;
            }
            Act::Link { from, index, to } => {
                if let Some((number, index)) = self.link_of(from, index) {
                    let node = self.held(inside, root_of(from)).unwrap();
                    node.links[index].set(inside, self.held(inside, root_of(to)));
                    self.shadow[number][index] = self.held[root_of(to)];
                }
            }
            Act::Unlink { from, index } => {
                if let Some((number, index)) = self.link_of(from, index) {
                    self.held(inside, root_of(from)).unwrap().links[index].set(inside, None);
                    self.shadow[number][index] = None;
                }
            }
            Act::Follow { from, index, root } => {
                if let Some((number, index)) = self.link_of(from, index) {
                    let found = self.held(inside, root_of(from)).unwrap().links[index].get();
                    self.hold(inside, root_of(root), found.zip(self.shadow[number][index]))?;
                }
            }
            Act::Clear { root } => self.hold(inside, root_of(root), None)?,
            Act::Step { .. } | Act::Collect | Act::CollectYoung | Act::Walk => {}
        }
        Ok(())
    }

    /// Which nodes the roots lead to, by the shadow.
    fn reachable(&self) -> Vec<bool> {
        let mut is_reached = vec![false; self.shadow.len()];
        let mut grey: Vec<_> = self.held.iter().flatten().copied().collect();
        while let Some(number) = grey.pop() {
            if !core::mem::replace(&mut is_reached[number], true) {
                grey.extend(self.shadow[number].iter().flatten());
            }
        }
        is_reached
    }

    /// Compares all that roots lead to with the shadow.
    fn compare(&self, inside: &In<'_, 'm>) {
        let mut is_reached = vec![false; self.shadow.len()];
        let mut grey: Vec<_> =
            (0..ROOTS).filter_map(|root| self.held(inside, root).zip(self.held[root])).collect();
        while let Some((node, number)) = grey.pop() {
            assert_eq!(node.name, number, "a node was lost");
            if core::mem::replace(&mut is_reached[number], true) {
                continue;
            }
            let expected = &self.shadow[number];
            assert_eq!(node.links.len(), expected.len());
            for (link, to) in node.links.iter().zip(expected) {
                let found = link.get();
                assert_eq!(found.is_some(), to.is_some(), "a link was changed");
                grey.extend(found.zip(*to));
            }
        }
        assert_eq!(is_reached, self.reachable());
    }
}

/// What was reachable when a collection in steps began, and how many nodes there were.
struct Begun {
    reachable: usize,
    nodes: usize,
}

/// How often what happened, so that tests know that it did.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    done: usize,
    marking: usize,
    sweeping: usize,
    refused: usize,
}

/// The nodes that the heap has.
fn nodes(objects: &TypedObjects<'_, Arena<'_>>) -> usize {
    let mut stopped = objects.heap().stop(Duration::MAX).unwrap();
    let mut count = 0;
    stopped.walk_objects(|object| {
        count += usize::from(object.type_name.is_some_and(|name| !name.contains('[')))
    });
    count
}

fn run(size: usize, acts: &[Act]) -> Tally {
    let mut tally = Tally::default();
    with_heap(size, |heap| {
        // Parked, so that only steps and what the acts ask for collect, unless memory is refused.
        let _parked = heap.park();
        let objects = TypedObjects::create(heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
        let mut graph = Graph {
            objects: &objects,
            roots: [const { None }; ROOTS],
            held: [None; ROOTS],
            shadow: Vec::new(),
        };
        let mut mutator = objects.register().unwrap();
        let mut begun: Option<Begun> = None;
        for &act in acts {
            match act {
                Act::Step { mut pieces } => {
                    let begun_now = begun.take().unwrap_or_else(|| Begun {
                        reachable: graph.reachable().iter().filter(|is| **is).count(),
                        nodes: graph.shadow.len(),
                    });
                    let step = mutator.step(Duration::MAX, || {
                        pieces -= 1;
                        pieces != 0
                    });
                    match step.unwrap() {
                        Step::Marking { .. } => tally.marking += 1,
                        Step::Sweeping { .. } => tally.sweeping += 1,
                        Step::Done(_) => {
                            tally.done += 1;
                            let since = graph.shadow.len() - begun_now.nodes;
                            let found = nodes(&objects);
                            assert!(found <= begun_now.reachable + since, "{found} nodes are kept");
                            mutator.enter(|inside| graph.compare(inside));
                            continue;
                        }
                        _ => unreachable!(),
                    }
                    begun = Some(begun_now);
                }
                Act::Collect => {
                    mutator.collect(Duration::MAX).unwrap();
                    begun = None;
                    assert_eq!(nodes(&objects), graph.reachable().iter().filter(|is| **is).count());
                }
                Act::CollectYoung => {
                    mutator.collect_up_to(0, Duration::MAX).unwrap();
                    begun = None;
                }
                Act::Walk => {
                    nodes(&objects);
                    begun = None;
                }
                _ => {
                    let done = mutator.enter(|inside| graph.run(inside, act));
                    assert!(matches!(done, Ok(()) | Err(Error::Limit)), "{done:?}");
                    if done.is_err() {
                        tally.refused += 1;
                        mutator.collect(Duration::MAX).unwrap();
                        begun = None;
                    }
                }
            }
            mutator.enter(|inside| graph.compare(inside));
        }
        graph.roots = [const { None }; ROOTS];
        graph.held = [None; ROOTS];
        drop(mutator);
        heap.collect(Duration::MAX).unwrap();
        assert_eq!(objects.sizes().total, 0, "nothing is left");
    });
    tally
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 2 } else { 48 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_reachable_is_kept_between_steps(
        acts in prop::collection::vec(act(), 0..if cfg!(miri) { 30 } else { 600 }),
        is_small in any::<bool>(),
    ) {
        run(if is_small { 64 << 10 } else { 1 << 20 }, &acts);
    }
}

/// Acts that are the same in each run, many of which change what was marked.
fn many_acts(count: u32) -> Vec<Act> {
    let mut random = 1_u32;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 24) as u8
    };
    (0..count)
        .map(|_| match next() % 10 {
            0..=2 => Act::Make { links: usize::from(next() % 6), root: next() },
            3 => Act::Make { links: 100 + usize::from(next()), root: next() },
            4 | 5 => Act::Link { from: next(), index: next(), to: next() },
            6 => Act::Unlink { from: next(), index: next() },
            7 => Act::Follow { from: next(), index: next(), root: next() },
            _ => Act::Step { pieces: 1 },
        })
        .collect()
}

/// The properties above are tested while objects are marked, and collections end though mutators write.
#[test]
fn collections_take_many_steps_and_end() {
    let tally = run(4 << 20, &many_acts(if cfg!(miri) { 40 } else { 2000 }));
    println!("{tally:?}");
    if !cfg!(miri) {
        assert!(tally.done > 3 && tally.marking > tally.done && tally.sweeping > 3, "{tally:?}");
    }
}

/// A caller that unwinds out of the first step has begun a collection, which the next step goes on with or another
/// collection gives up: no object counts as scanned that mutators write afterwards.
#[test]
fn a_first_step_that_unwinds_loses_nothing() {
    use core::panic::AssertUnwindSafe;
    use std::panic::{catch_unwind, resume_unwind};
    // Which links are written: Miri writes few.
    const EACH: usize = if cfg!(miri) { 100 } else { 1 };
    for ends_by_step in [false, true] {
        with_heap(1 << 20, |heap| {
            let _parked = heap.park();
            let objects = TypedObjects::create(heap, SweptOptions::default()).unwrap();
            let mut mutator = objects.register().unwrap();
            // Nodes whose links fill more than a piece: the first step scans some, and leaves others.
            let roots = mutator.enter(|inside| {
                [(); 2].map(|()| {
                    let links = inside.slice(1000, |_| Link::new(None)).unwrap();
                    let node = inside.alloc(Node { name: 0, links }).unwrap();
                    objects.root(inside, node).unwrap()
                })
            });
            let unwinds = || mutator.step(Duration::MAX, || resume_unwind(Box::new("on purpose")));
            assert!(catch_unwind(AssertUnwindSafe(unwinds)).is_err());
            mutator.enter(|inside| {
                for root in &roots {
                    for link in root.get(inside).unwrap().links.iter().step_by(EACH) {
                        let node = Node { name: 7, links: inside.slice(0, |_| Link::new(None)).unwrap() };
                        link.set(inside, Some(inside.alloc(node).unwrap()));
                    }
                }
            });
            if ends_by_step {
                while !matches!(mutator.step(Duration::MAX, || false), Ok(Step::Done(_))) {}
            } else {
                mutator.collect(Duration::MAX).unwrap();
            }
            assert_eq!(nodes(&objects), 2 + 2 * 1000 / EACH);
            mutator.enter(|inside| {
                for root in &roots {
                    let node = root.get(inside).unwrap();
                    assert!(
                        node.links
                            .iter()
                            .step_by(EACH)
                            .all(|link| link.get().is_some_and(|node| node.name == 7))
                    );
                }
            });
        });
    }
}
