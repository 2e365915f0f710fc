//! Finalization and weak references against a shadow graph, which knows what is reachable
//! (design/gc.md `.req.final`, `.req.weak`).

use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

use crate::common::{Nodes, Point, Slots, TestHeap, TestMutator, WORD, make, name, point, pool};
use crate::common::{reference, set_reference, with_heap};
use proptest::prelude::*;
use tripoint_core::{Check, CheckLevel, PoolClass};
use tripoint_gc::{Leaf, Message, Policy, Tag, Traced, WeakSlots};
use tripoint_oracle::cases;

const ALL: Duration = Duration::MAX;
const SLOTS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Strong,
    Weak,
    Leaf,
}

/// What the shadow graph knows of a node.
#[derive(Debug)]
struct Shadow {
    node: *mut u8,
    class: Class,
    name: usize,
    references: Vec<Option<usize>>,
}

impl Shadow {
    const fn size(&self) -> usize {
        (2 + self.references.len()) * WORD
    }

    /// The nodes that it keeps.
    fn keeps(&self) -> impl Iterator<Item = usize> {
        self.references.iter().flatten().copied().filter(|_| self.class == Class::Strong)
    }
}

/// One step: what, and numbers to choose by.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A node of a class with that many references, each to what a slot has, in a slot.
    Make {
        class: Class,
        references: usize,
        slot: usize,
    },
    /// A reference of what a slot has changes to what another has.
    Link {
        from: usize,
        index: usize,
        to: usize,
    },
    /// A slot changes to what a reference of what a slot has leads to.
    Follow {
        from: usize,
        index: usize,
        slot: usize,
    },
    Clear {
        slot: usize,
    },
    /// A weak slot changes to what a slot has.
    Weaken {
        slot: usize,
        weak: usize,
    },
    /// A slot changes to what a weak slot has.
    Strengthen {
        weak: usize,
        slot: usize,
    },
    Register {
        slot: usize,
    },
    Unregister {
        slot: usize,
    },
    /// The next object to be finalized is taken, and put in a slot or not.
    Take {
        slot: Option<usize>,
    },
    Collect,
}

fn step() -> impl Strategy<Value = Step> {
    let slot = || 0..SLOTS;
    let class = prop_oneof![4 => Just(Class::Strong), 2 => Just(Class::Weak), 1 => Just(Class::Leaf)];
    prop_oneof![
        10 => (class, 0_usize..5, slot())
            .prop_map(|(class, references, slot)| Step::Make { class, references, slot }),
        5 => (slot(), any::<usize>(), slot()).prop_map(|(from, index, to)| Step::Link { from, index, to }),
        2 => (slot(), any::<usize>(), slot()).prop_map(|(from, index, slot)| Step::Follow { from, index, slot }),
        5 => slot().prop_map(|slot| Step::Clear { slot }),
        3 => (slot(), slot()).prop_map(|(slot, weak)| Step::Weaken { slot, weak }),
        2 => (slot(), slot()).prop_map(|(weak, slot)| Step::Strengthen { weak, slot }),
        4 => slot().prop_map(|slot| Step::Register { slot }),
        1 => slot().prop_map(|slot| Step::Unregister { slot }),
        3 => prop::option::of(slot()).prop_map(|slot| Step::Take { slot }),
        3 => Just(Step::Collect),
    ]
}

/// A graph of nodes and its shadow.
struct Graph<'a, 'm> {
    strong: Point<'a, 'm, Traced>,
    weak: Point<'a, 'm, WeakSlots>,
    leaf: Point<'a, 'm, Leaf>,
    /// It is dropped after its points.
    mutator: TestMutator<'m>,
    slots: &'a Slots<SLOTS>,
    weak_slots: &'a Slots<SLOTS>,
    shadows: Vec<Shadow>,
    roots: [Option<usize>; SLOTS],
    weak_roots: [Option<usize>; SLOTS],
    registered: Vec<usize>,
    finalizable: VecDeque<usize>,
    collections: u64,
    names: usize,
    /// How many objects were taken.
    taken: usize,
}

impl Graph<'_, '_> {
    fn address(&self, shadow: Option<usize>) -> *mut u8 {
        shadow.map_or(ptr::null_mut(), |shadow| self.shadows[shadow].node)
    }

    fn object(&self, shadow: usize) -> NonNull<u8> {
        NonNull::new(self.shadows[shadow].node).unwrap()
    }

    fn root(&mut self, slot: usize, to: Option<usize>) {
        self.roots[slot] = to;
        self.slots.set(slot, self.address(to));
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Make { class, references, slot } => self.make(class, references, slot),
            Step::Link { from, index, to } => {
                if let Some((shadow, index)) = self.reference_of(from, index) {
                    let to = self.roots[to];
                    self.shadows[shadow].references[index] = to;
                    // SAFETY: a slot leads to the node, which has this reference.
                    unsafe { set_reference(self.shadows[shadow].node, index, self.address(to)) };
                }
            }
            Step::Follow { from, index, slot } => {
                if let Some((shadow, index)) = self.reference_of(from, index) {
                    self.root(slot, self.shadows[shadow].references[index]);
                }
            }
            Step::Clear { slot } => self.root(slot, None),
            Step::Weaken { slot, weak } => {
                self.weak_roots[weak] = self.roots[slot];
                self.weak_slots.set(weak, self.address(self.roots[slot]));
            }
            Step::Strengthen { weak, slot } => self.root(slot, self.weak_roots[weak]),
            Step::Register { slot } => {
                if let Some(shadow) = self.roots[slot] {
                    self.mutator.finalize(self.object(shadow)).unwrap();
                    self.registered.push(shadow);
                }
            }
            Step::Unregister { slot } => {
                if let Some(shadow) = self.roots[slot] {
                    let at = self.registered.iter().position(|&registered| registered == shadow);
                    assert_eq!(self.mutator.definalize(self.object(shadow)), at.is_some());
                    at.map(|at| self.registered.remove(at));
                }
            }
            Step::Take { slot } => self.take(slot),
            Step::Collect => {
                let found = self.mutator.collect(ALL).unwrap();
                let attached = self.strong.room() + self.weak.room() + self.leaf.room();
                let kept = self.follow_collection();
                assert_eq!(found.kept, kept + attached, "what is kept is reachable or in a buffer");
            }
        }
    }

    fn reference_of(&self, slot: usize, index: usize) -> Option<(usize, usize)> {
        let shadow = self.roots[slot]?;
        let count = self.shadows[shadow].references.len();
        let has_references = count != 0 && self.shadows[shadow].class != Class::Leaf;
        has_references.then(|| (shadow, index % count))
    }

    fn make(&mut self, class: Class, references: usize, slot: usize) {
        self.names += 1;
        let name = self.names;
        let targets: Vec<_> =
            (0..references).map(|index| self.roots[index % SLOTS].filter(|_| class != Class::Leaf)).collect();
        let words: Vec<_> = targets.iter().map(|&target| self.address(target)).collect();
        let node = match class {
            Class::Strong => make(&mut self.strong, name, &words),
            Class::Weak => make(&mut self.weak, name, &words),
            Class::Leaf => make(&mut self.leaf, name, &words),
        };
        let last = self.mutator.heap().last_collection();
        if last.map_or(0, |last| last.number) != self.collections {
            self.follow_collection();
        }
        self.shadows.push(Shadow { node: node.unwrap(), class, name, references: targets });
        self.root(slot, Some(self.shadows.len() - 1));
    }

    fn take(&mut self, slot: Option<usize>) {
        let taken = self.mutator.next_message();
        let expected = self.finalizable.pop_front();
        let object = expected.map(|shadow| Message::Finalizable(self.object(shadow)));
        assert_eq!(taken, object, "what is finalized");
        if let Some(shadow) = expected {
            self.taken += 1;
            // SAFETY: it is kept until this mutator gives way.
            assert_eq!(unsafe { name(self.shadows[shadow].node) }, self.shadows[shadow].name);
            if let Some(slot) = slot {
                self.root(slot, expected);
            }
        }
    }

    fn reach(&self, reached: &mut BTreeSet<usize>, from: impl IntoIterator<Item = usize>) {
        let mut grey: Vec<_> = from.into_iter().collect();
        while let Some(shadow) = grey.pop() {
            if reached.insert(shadow) {
                grey.extend(self.shadows[shadow].keeps());
            }
        }
    }

    /// Does to the shadow what a collection did, and compares. Returns the bytes of what is kept.
    fn follow_collection(&mut self) -> usize {
        self.collections = self.mutator.heap().last_collection().unwrap().number;
        let mut reached = BTreeSet::new();
        self.reach(&mut reached, self.roots.iter().flatten().copied());
        self.reach(&mut reached, self.finalizable.iter().copied());
        let (alive, dead): (Vec<_>, Vec<_>) =
            self.registered.iter().partition(|shadow| reached.contains(shadow));
        self.registered = alive;
        self.reach(&mut reached, dead.iter().copied());
        self.finalizable.extend(dead);
        for weak in &mut self.weak_roots {
            *weak = weak.filter(|shadow| reached.contains(shadow));
        }
        for &shadow in &reached {
            let shadow = &mut self.shadows[shadow];
            if shadow.class == Class::Weak {
                for weak in &mut shadow.references {
                    *weak = weak.filter(|shadow| reached.contains(shadow));
                }
            }
        }
        for (slot, &weak) in self.weak_roots.iter().enumerate() {
            assert_eq!(self.weak_slots.get(slot), self.address(weak), "a weak slot");
        }
        for &index in &reached {
            let shadow = &self.shadows[index];
            // SAFETY: the node is kept; whether it was is what is tested.
            assert_eq!(unsafe { name(shadow.node) }, shadow.name, "a node was lost");
            for (at, &to) in shadow.references.iter().enumerate() {
                // SAFETY: the node is kept, and has this reference.
                let found = unsafe { reference(shadow.node, at) };
                assert_eq!(found, self.address(to), "a reference of a {:?} node", shadow.class);
            }
        }
        reached.iter().map(|&shadow| self.shadows[shadow].size()).sum()
    }
}

/// Runs the steps, then lets all die, and takes what is left. Returns how many objects were finalized.
fn run(heap: &TestHeap<'_>, steps: &[Step], spoil: impl FnOnce(&Graph<'_, '_>, &Nodes)) -> usize {
    let strong = pool::<Traced>(heap, 0);
    let (weak, leaf) = (pool::<WeakSlots>(heap, 0), pool::<Leaf>(heap, 0));
    let mutator = heap.register().unwrap();
    let (slots, weak_slots) = (Slots::<SLOTS>::default(), Slots::<SLOTS>::default());
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _root = unsafe { heap.root_table(slots.base(), SLOTS, Tag::default()) }.unwrap();
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _weak_root = unsafe { heap.root_weak(weak_slots.base(), SLOTS, Tag::default()) }.unwrap();
    let mut graph = Graph {
        strong: point(&strong, &mutator),
        weak: point(&weak, &mutator),
        leaf: point(&leaf, &mutator),
        mutator,
        slots: &slots,
        weak_slots: &weak_slots,
        shadows: Vec::new(),
        roots: [None; SLOTS],
        weak_roots: [None; SLOTS],
        registered: Vec::new(),
        finalizable: VecDeque::new(),
        collections: 0,
        names: 0,
        taken: 0,
    };
    steps.iter().for_each(|step| graph.run(*step));
    spoil(&graph, weak.format());
    (0..SLOTS).for_each(|slot| graph.run(Step::Clear { slot }));
    graph.run(Step::Collect);
    // What is registered may be kept by what was not taken yet.
    while !graph.finalizable.is_empty() {
        (0..graph.finalizable.len()).for_each(|_| graph.run(Step::Take { slot: None }));
        graph.run(Step::Collect);
    }
    graph.run(Step::Take { slot: None });
    assert!(graph.registered.is_empty(), "each was finalized once");
    graph.strong.empty();
    graph.weak.empty();
    graph.leaf.empty();
    graph.run(Step::Collect);
    assert_eq!(strong.header().total() + weak.header().total() + leaf.header().total(), 0);
    assert_eq!(heap.arena().check(CheckLevel::Deep), Ok(()));
    graph.taken
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 2 } else { 128 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn objects_are_finalized_once_and_weak_references_cleared_when_they_die(
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 60 } else { 400 }),
        capacity in prop_oneof![Just(usize::MAX), 0_usize..(16 << 10)],
    ) {
        with_heap(1 << 20, |heap| {
            heap.set_policy(Policy::with_capacity(capacity));
            run(heap, &steps, |_, _| ());
        });
    }
}

fn register_two() -> [Step; 4] {
    let node = |slot| Step::Make { class: Class::Strong, references: 2, slot };
    [node(0), node(1), Step::Register { slot: 0 }, Step::Register { slot: 1 }]
}

#[test]
fn what_is_registered_is_finalized() {
    with_heap(64 << 10, |heap| assert_eq!(run(heap, &register_two(), |_, _| ()), 2));
}

/// The twin: a registration is taken back, and the shadow does not know.
#[test]
#[should_panic(expected = "a node was lost")]
fn a_registration_that_is_lost_is_noticed() {
    with_heap(64 << 10, |heap| {
        run(heap, &register_two(), |graph, _| assert!(graph.mutator.definalize(graph.object(1))));
    });
}

/// The twin: a format that forgets the last reference of each weak node.
#[test]
#[should_panic(expected = "a reference of a Weak node")]
fn a_weak_reference_that_is_not_passed_on_is_not_cleared() {
    let leaf = Step::Make { class: Class::Leaf, references: 0, slot: 0 };
    let weak = Step::Make { class: Class::Weak, references: 1, slot: 1 };
    with_heap(64 << 10, |heap| {
        run(heap, &[leaf, weak, Step::Register { slot: 1 }], |graph, weak| {
            // The weak node is kept by its registration, and the leaf is not.
            assert_eq!(graph.registered, [1]);
            weak.forgets.store(true, Ordering::Relaxed);
        });
    });
}
