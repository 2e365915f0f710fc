//! Random graphs of typed objects against a shadow graph, which knows what is reachable
//! (design/gc.md `.req.kept`, `.req.freed`; design/gc-typed.md `.req.safe`).
//!
//! All of it is safe code. Nodes and what they refer to are moved by each collection, except the bits of some nodes, which
//! are more aligned than a word. After each collection every reachable node has to be as it was made, and the bytes that
//! are kept have to be those of reachable nodes. The control is a type that is not traced.

use core::cell::Cell;
use core::time::Duration;
use std::thread;

use crate::common::{Arena, WORD, with_heap};
use proptest::prelude::*;
use tripoint_core::{Error, SymmetricFence};
use tripoint_gc::{
    GENERATIONS, Gc, Inside, Link, Rooted, Scan, SweptOptions, Trace, TypedMutator, TypedObjects,
    object_types,
};
use tripoint_oracle::{Party, cases};

object_types! {
    struct Node<'g> {
        name: usize,
        text: Text<'g>,
        links: Gc<'g, [Link<'g, Node<'g>>]>,
        bits: Option<Gc<'g, Bits<'g>>>,
    }

    /// It does not move.
    #[repr(align(16))]
    struct Bits<'g> {
        name: u128,
        owner: Link<'g, Node<'g>>,
    }
}

thread_local! {
    /// Whether collections of this thread forget texts: a flaw to be found.
    static FORGETS: Cell<bool> = const { Cell::new(false) };
}

struct Text<'g>(Gc<'g, str>);

// SAFETY: the one reference is traced, except where a test is to find that it is not, and does not follow it.
unsafe impl Trace for Text<'_> {
    type At<'g> = Text<'g>;
    type Static = Text<'static>;

    const HAS_REFERENCES: bool = true;
    const HAS_WEAK_LINKS: bool = false;

    fn trace(&mut self, scan: &mut Scan<'_>) {
        if !FORGETS.get() {
            self.0.trace(scan);
        }
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
    /// The bytes of the node, its text, its links and its bits.
    fn size(&self) -> usize {
        let text = text_of(self.name).len().next_multiple_of(WORD);
        let bits = if has_bits(self.name) { WORD + (16 - WORD) + size_of::<Bits<'_>>() } else { 0 };
        (WORD + size_of::<Node<'_>>()) + (2 * WORD + text) + (2 + self.links.len()) * WORD + bits
    }
}

const fn has_bits(name: usize) -> bool {
    name.is_multiple_of(3)
}

fn text_of(name: usize) -> String {
    format!("{name}").repeat(name % 5)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A node with that many links, each to what a root has, in a root.
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
                let bits = has_bits(name)
                    .then(|| inside.alloc(Bits { name: name as u128, owner: Link::default() }))
                    .transpose()?;
                let node = inside.alloc(Node { name, text: Text(text), links: linked, bits })?;
                if let Some(bits) = bits {
                    bits.owner.set(inside, node);
                }
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

    /// The bytes that are to be kept.
    fn size(&self) -> usize {
        let mut is_reached = vec![false; self.shadows.len()];
        let mut grey: Vec<usize> = self.held.iter().copied().flatten().collect();
        let mut size = 0;
        while let Some(shadow) = grey.pop() {
            if !core::mem::replace(&mut is_reached[shadow], true) {
                size += self.shadows[shadow].size();
                grey.extend(self.shadows[shadow].links.iter().flatten());
            }
        }
        size
    }

    /// Compares what roots lead to.
    fn compare(&self, inside: &In<'_, 'm>) {
        let mut is_reached = vec![false; self.shadows.len()];
        let mut grey: Vec<_> =
            (0..ROOTS).filter_map(|root| self.held(inside, root).zip(self.held[root])).collect();
        while let Some((node, shadow)) = grey.pop() {
            let expected = &self.shadows[shadow];
            assert_eq!(
                (node.name, &*node.text.0),
                (expected.name, &*text_of(expected.name)),
                "a node was lost"
            );
            if core::mem::replace(&mut is_reached[shadow], true) {
                continue;
            }
            assert_eq!(node.bits.is_some(), has_bits(node.name));
            if let Some(bits) = node.bits {
                assert_eq!(bits.name, node.name as u128, "bits were lost");
                assert!(bits.owner.get().unwrap().is_same(node), "both references to a node lead to it");
            }
            assert_eq!(node.links.len(), expected.links.len());
            for (link, to) in node.links.iter().zip(&expected.links) {
                let found = link.get();
                assert_eq!(found.is_some(), to.is_some(), "a link was changed");
                grey.extend(found.zip(*to));
            }
        }
    }
}

/// Does the steps in these objects, calls `collect` after some of them and twice at the end, the second time without
/// roots. Returns how many steps were refused.
fn run_in<'o, 'm>(
    objects: &'o TypedObjects<'m, Arena<'m>>,
    steps: &[Step],
    collect: impl Fn(&mut TypedMutator<'o, 'm, Arena<'m>>, &Graph<'_, 'm>),
) -> usize {
    let mut graph = Graph {
        objects,
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
            collect(&mut mutator, &graph);
            mutator.enter(|inside| graph.compare(inside));
        }
    }
    graph.roots = [const { None }; ROOTS];
    graph.held = [None; ROOTS];
    collect(&mut mutator, &graph);
    graph.refused
}

/// Does the steps in a heap of this size. Returns how many were refused.
fn run(size: usize, steps: &[Step]) -> usize {
    let mut refused = 0;
    with_heap(size, |heap| {
        let objects = TypedObjects::create(heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
        // The first collection is one of the whole heap: that is what the control is about.
        let turn = Cell::new(GENERATIONS - 1);
        refused = run_in(&objects, steps, |mutator, graph| {
            turn.set(turn.get() + 1);
            let oldest = turn.get() % (GENERATIONS + 1);
            if oldest < GENERATIONS - 1 && graph.size() != 0 {
                mutator.collect_up_to(oldest, Duration::MAX).unwrap();
                return;
            }
            // While no buffer is attached, all that is kept is in nodes.
            mutator.empty();
            let found = mutator.collect(Duration::MAX).unwrap();
            assert_eq!(found.kept, graph.size(), "what is kept is reachable");
        });
        assert_eq!(objects.sizes().total, 0, "nothing is left");
    });
    refused
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 2 } else { 64 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_reachable_is_kept_and_nothing_else(
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 50 } else { 500 }),
        is_small in any::<bool>(),
    ) {
        run(if is_small { 64 << 10 } else { 1 << 20 }, &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 1 } else { 8 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Each thread has a graph, and collects when the others are anywhere. So graphs move while their threads are
    /// outside, and threads collect for others.
    #[test]
    fn what_threads_reach_is_kept(
        steps in prop::collection::vec(
            prop::collection::vec(step(), 0..if cfg!(miri) { 20 } else { 150 }),
            3,
        ),
    ) {
        with_heap(4 << 20, |heap| {
            let objects = TypedObjects::create(heap, SweptOptions { segment_size: 4 << 10 }).unwrap();
            let (party, threads) = (Party::new(), steps.len());
            thread::scope(|scope| {
                let _member = party.enter();
                for steps in &steps {
                    let (objects, party) = (&objects, &party);
                    scope.spawn(move || {
                        let _member = party.enter();
                        party.meet(threads);
                        run_in(objects, steps, |mutator, graph| {
                            let found = mutator.collect(Duration::MAX).unwrap();
                            assert!(found.kept >= graph.size(), "a node was lost");
                        });
                    });
                }
            });
            heap.collect(Duration::MAX).unwrap();
            assert_eq!(objects.sizes().total, 0, "nothing is left");
        });
    }
}

#[test]
#[should_panic(expected = "what is kept is reachable")]
fn a_text_that_is_not_traced_is_found() {
    FORGETS.set(true);
    run(1 << 20, &[Step::Make { links: 2, root: 0 }, Step::Make { links: 2, root: 1 }, Step::Collect]);
}

/// In a small arena some nodes are refused, so that the property is tested there too.
#[test]
#[cfg_attr(miri, ignore = "it collects at each of many refusals")]
fn small_arenas_are_filled() {
    let steps: Vec<_> = (0..900_u32).map(|step| Step::Make { links: 5, root: (step % 251) as u8 }).collect();
    assert!(run(64 << 10, &steps) > 0);
}
