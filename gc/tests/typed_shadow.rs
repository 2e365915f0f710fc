//! Random graphs of typed objects against a shadow graph, which knows what is reachable
//! (design/gc.md `.req.kept`, `.req.freed`, `.req.safe`).
//!
//! All of it is safe code. After each collection every reachable node has to be as it was made, and the bytes
//! that are kept have to be those of reachable nodes.

mod common;

use core::time::Duration;

use common::{Arena, WORD, with_heap};
use proptest::prelude::*;
use tripoint_core::{Error, SymmetricFence};
use tripoint_gc::{Gc, Inside, Link, Rooted, SweptOptions, TypedMutator, TypedObjects, object_types};
use tripoint_oracle::cases;

object_types! {
    struct Node<'g> {
        name: usize,
        text: Gc<'g, str>,
        links: Gc<'g, [Link<'g, Node<'g>>]>,
    }
}

type In<'g, 'm> = Inside<'g, Arena<'m>, SymmetricFence>;

/// What the shadow graph knows of a node.
#[derive(Debug)]
struct Shadow {
    name: usize,
    links: Vec<Option<usize>>,
}

impl Shadow {
    /// The bytes of the node, its text and its links.
    fn size(&self) -> usize {
        let text = text_of(self.name).len().next_multiple_of(WORD);
        (WORD + size_of::<Node<'_>>()) + (2 * WORD + text) + (2 + self.links.len()) * WORD
    }
}

fn text_of(name: usize) -> String {
    format!("{name}").repeat(name % 5)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A node with so many links, each to what a root has, in a root.
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
    /// A root changes to what a link of what a root has leads to.
    Follow {
        from: u8,
        index: u8,
        root: u8,
    },
    Clear {
        root: u8,
    },
    /// All is inside one closure until the next.
    Leave,
    Collect,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (prop_oneof![9 => 0_usize..6, 1 => 100_usize..300], any::<u8>())
            .prop_map(|(links, root)| Step::Make { links, root }),
        6 => (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(from, index, to)| Step::Link { from, index, to }),
        3 => (any::<u8>(), any::<u8>(), any::<u8>())
            .prop_map(|(from, index, root)| Step::Follow { from, index, root }),
        3 => any::<u8>().prop_map(|root| Step::Clear { root }),
        3 => Just(Step::Leave),
        2 => Just(Step::Collect),
    ]
}

const ROOTS: usize = 6;

fn root_of(number: u8) -> usize {
    usize::from(number) % ROOTS
}

/// A graph of nodes and its shadow.
struct Graph<'o, 'm> {
    objects: &'o TypedObjects<'m, Arena<'m>>,
    roots: [Option<Rooted<'o, Node<'static>>>; ROOTS],
    /// What the roots lead to.
    held: [Option<usize>; ROOTS],
    shadows: Vec<Shadow>,
    refused: usize,
}

impl<'m> Graph<'_, 'm> {
    fn held<'g>(&self, inside: &In<'g, 'm>, root: usize) -> Option<Gc<'g, Node<'g>>> {
        self.roots[root].as_ref().map(|root| root.get(inside).unwrap())
    }

    fn hold<'g>(
        &mut self,
        inside: &In<'g, 'm>,
        root: usize,
        node: Option<Gc<'g, Node<'g>>>,
        shadow: Option<usize>,
    ) -> Result<(), Error> {
        match (&mut self.roots[root], node) {
            (Some(root), Some(node)) => root.set(inside, node)?,
            (empty, Some(node)) => *empty = Some(self.objects.root(inside, node)?),
            (root, None) => *root = None,
        }
        self.held[root] = shadow;
        Ok(())
    }

    /// The number of a link of what a root has.
    fn link_of(&self, root: u8, index: u8) -> Option<(usize, usize)> {
        let shadow = self.held[root_of(root)]?;
        let count = self.shadows[shadow].links.len();
        (count != 0).then(|| (shadow, usize::from(index) % count))
    }

    /// Does a step inside the heap. Returns the error of an allocation.
    fn run<'g>(&mut self, inside: &In<'g, 'm>, step: Step) -> Result<(), Error> {
        match step {
            Step::Make { links, root } => {
                let name = self.shadows.len();
                let targets: [_; ROOTS] = core::array::from_fn(|root| self.held(inside, root));
                let text = inside.text(&text_of(name))?;
                let linked = inside.slice(links, |index| Link::new(targets[index % ROOTS]))?;
                let node = inside.alloc(Node { name, text, links: linked })?;
                let shadow =
                    Shadow { name, links: (0..links).map(|index| self.held[index % ROOTS]).collect() };
                self.hold(inside, root_of(root), Some(node), Some(name))?;
                self.shadows.push(shadow);
            }
            Step::Link { from, index, to } => {
                if let Some((shadow, index)) = self.link_of(from, index) {
                    let (node, to) = (self.held(inside, root_of(from)).unwrap(), root_of(to));
                    node.links[index].set(inside, self.held(inside, to));
                    self.shadows[shadow].links[index] = self.held[to];
                }
            }
            Step::Follow { from, index, root } => {
                if let Some((shadow, index)) = self.link_of(from, index) {
                    let found = self.held(inside, root_of(from)).unwrap().links[index].get();
                    self.hold(inside, root_of(root), found, self.shadows[shadow].links[index])?;
                }
            }
            Step::Clear { root } => self.hold(inside, root_of(root), None, None)?,
            Step::Leave | Step::Collect => {}
        }
        Ok(())
    }

    /// Compares what roots lead to. Returns the bytes of it.
    fn compare(&self, inside: &In<'_, 'm>) -> usize {
        let mut is_reached = vec![false; self.shadows.len()];
        let mut grey: Vec<_> =
            (0..ROOTS).filter_map(|root| self.held(inside, root).zip(self.held[root])).collect();
        let mut size = 0;
        while let Some((node, shadow)) = grey.pop() {
            let expected = &self.shadows[shadow];
            assert_eq!(
                (node.name, &*node.text),
                (expected.name, &*text_of(expected.name)),
                "a node was lost"
            );
            if core::mem::replace(&mut is_reached[shadow], true) {
                continue;
            }
            size += expected.size();
            assert_eq!(node.links.len(), expected.links.len());
            for (link, to) in node.links.iter().zip(&expected.links) {
                let found = link.get();
                assert_eq!(found.is_some(), to.is_some(), "a link was changed");
                grey.extend(found.zip(*to));
            }
        }
        size
    }
}

/// Runs the steps, and two collections at the end, the second without roots. Returns how many steps were refused.
fn run(size: usize, steps: &[Step]) -> usize {
    let mut refused = 0;
    with_heap(size, |heap| {
        let objects = TypedObjects::create(heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
        let mut graph = Graph {
            objects: &objects,
            roots: [const { None }; ROOTS],
            held: [None; ROOTS],
            shadows: Vec::new(),
            refused: 0,
        };
        let mut mutator = objects.register().unwrap();
        let mut steps = steps.iter().copied();
        let mut last = Some(Step::Leave);
        while last.is_some() {
            last = mutator.enter(|inside| {
                steps.by_ref().find(|&step| {
                    let done = graph.run(inside, step);
                    assert!(matches!(done, Ok(()) | Err(Error::Limit)), "{done:?}");
                    graph.refused += usize::from(done.is_err());
                    done.is_err() || matches!(step, Step::Leave | Step::Collect)
                })
            });
            if !matches!(last, Some(Step::Leave)) {
                collect(&objects, &mut mutator, &graph);
            }
        }
        refused = graph.refused;
        graph.roots = [const { None }; ROOTS];
        graph.held = [None; ROOTS];
        collect(&objects, &mut mutator, &graph);
        assert_eq!(objects.sizes().map(|sizes| sizes.total), [0, 0], "nothing is left");
    });
    refused
}

/// Collects while no buffer is attached, so that all that is kept is in nodes.
fn collect<'o, 'm>(
    objects: &'o TypedObjects<'m, Arena<'m>>,
    mutator: &mut TypedMutator<'o, 'm, Arena<'m>>,
    graph: &Graph<'_, 'm>,
) {
    let fresh = objects.register().unwrap();
    drop(core::mem::replace(mutator, fresh));
    let found = mutator.collect(Duration::MAX).unwrap();
    mutator.enter(|inside| assert_eq!(found.kept, graph.compare(inside), "what is kept is reachable"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 2 } else { 96 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_reachable_is_kept_and_nothing_else(
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 50 } else { 500 }),
        is_small in any::<bool>(),
    ) {
        run(if is_small { 48 << 10 } else { 1 << 20 }, &steps);
    }
}

/// In a small arena some nodes are refused, so that the property is tested there too.
#[test]
#[cfg_attr(miri, ignore = "it collects at each of many refusals")]
fn small_arenas_are_filled() {
    let steps: Vec<_> = (0..2000_u32).map(|step| Step::Make { links: 5, root: (step % 251) as u8 }).collect();
    assert!(run(48 << 10, &steps) > 0);
}
