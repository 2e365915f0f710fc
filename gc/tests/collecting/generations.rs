//! Collections of young generations against a model that knows the generation of each node
//! (design/gc-generations.md `.req.kept`, `.req.freed`).

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::time::Duration;
use std::collections::BTreeSet;

use crate::common::{
    Point, Slots, TestHeap, TestMutator, TestPool, WORD, make_with, name, noting_pool, point, pool,
    reference, set_reference, with_heap,
};
use proptest::prelude::*;
use tripoint_core::{Addr, Arena, Check, CheckLevel};
use tripoint_gc::{Collection, GENERATIONS, Message, Moved, Policy, Tag, Traced, Transform};
use tripoint_oracle::cases;

const ALL: Duration = Duration::MAX;
const SLOTS: usize = 6;
/// The usual size of a segment of these tests.
const SEGMENT: usize = 4 << 10;
const LAST: usize = GENERATIONS - 1;

/// What the model knows of a node.
#[derive(Debug)]
struct Shadow {
    node: *mut u8,
    references: Vec<Option<usize>>,
    generation: usize,
    is_gone: bool,
    moves: bool,
    /// How many times it is registered for finalization.
    registered: usize,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Make { moves: bool, references: usize, slot: usize },
    Link { from: usize, index: usize, to: usize },
    Follow { from: usize, index: usize, slot: usize },
    Clear { slot: usize },
    Weaken { slot: usize, from: usize },
    Register { slot: usize },
    Point { slot: usize },
    Transform { old: usize, new: usize },
    Collect { oldest: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let slot = || 0..SLOTS;
    let references = prop_oneof![8 => 0_usize..6, 1 => 6_usize..80, 1 => 500_usize..700];
    prop_oneof![
        12 => (any::<bool>(), references, slot())
            .prop_map(|(moves, references, slot)| Step::Make { moves, references, slot }),
        10 => (slot(), any::<usize>(), slot()).prop_map(|(from, index, to)| Step::Link { from, index, to }),
        4 => (slot(), any::<usize>(), slot()).prop_map(|(from, index, slot)| Step::Follow { from, index, slot }),
        2 => slot().prop_map(|slot| Step::Clear { slot }),
        2 => (slot(), slot()).prop_map(|(slot, from)| Step::Weaken { slot, from }),
        1 => slot().prop_map(|slot| Step::Register { slot }),
        1 => slot().prop_map(|slot| Step::Point { slot }),
        2 => (slot(), slot()).prop_map(|(old, new)| Step::Transform { old, new }),
        5 => (0..GENERATIONS).prop_map(|oldest| Step::Collect { oldest }),
    ]
}

/// Nodes in a pool that moves them and in one that does not, and their model.
struct World<'a, 'm> {
    pools: (&'a TestPool<'m, Moved>, &'a TestPool<'m, Traced>),
    points: (Point<'a, 'm, Moved>, Point<'a, 'm, Traced>),
    mutator: TestMutator<'m>,
    slots: &'a Slots<SLOTS>,
    weak: &'a Slots<SLOTS>,
    word: &'a Cell<usize>,
    shadows: Vec<Shadow>,
    roots: [Option<usize>; SLOTS],
    weak_roots: [Option<usize>; SLOTS],
    pointed: Option<usize>,
    /// Whether writes are noted.
    notes: bool,
    found: Found,
}

/// What happened meanwhile.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    young: usize,
    old_to_young: usize,
    finalized: usize,
    cleared: usize,
    transformed: usize,
}

impl World<'_, '_> {
    fn run(&mut self, step: Step) {
        match step {
            Step::Make { moves, references, slot } => self.make(moves, references, slot),
            Step::Link { from, index, to } => self.link(from, index, self.roots[to]),
            Step::Follow { from, index, slot } => {
                if let Some((shadow, index)) = self.reference_of(from, index) {
                    self.root(slot, self.shadows[shadow].references[index]);
                }
            }
            Step::Clear { slot } => self.root(slot, None),
            Step::Weaken { slot, from } => {
                self.weak_roots[slot] = self.roots[from];
                self.weak.set(slot, self.address(self.roots[from]));
            }
            Step::Register { slot } => {
                if let Some(shadow) = self.roots[slot] {
                    self.mutator.finalize(NonNull::new(self.shadows[shadow].node).unwrap()).unwrap();
                    self.shadows[shadow].registered += 1;
                }
            }
            Step::Point { slot } => {
                self.pointed = self.roots[slot];
                self.word.set(self.address(self.pointed).addr());
            }
            Step::Transform { old, new } => {
                if let (Some(old), Some(new)) = (self.roots[old], self.roots[new]) {
                    self.transform(old, new);
                }
            }
            Step::Collect { oldest } => {
                // The rest of a segment that ages would go on to be filled, with nodes that are old from the beginning.
                self.points.0.empty();
                self.points.1.empty();
                let found = self.mutator.collect_up_to(oldest, ALL).unwrap();
                self.compare(found, oldest);
            }
        }
    }

    fn address(&self, shadow: Option<usize>) -> *mut u8 {
        shadow.map_or(ptr::null_mut(), |shadow| self.shadows[shadow].node)
    }

    fn root(&mut self, slot: usize, to: Option<usize>) {
        self.roots[slot] = to;
        self.slots.set(slot, self.address(to));
    }

    fn reference_of(&self, slot: usize, index: usize) -> Option<(usize, usize)> {
        let shadow = self.roots[slot]?;
        let count = self.shadows[shadow].references.len();
        (count != 0).then(|| (shadow, index % count))
    }

    fn make(&mut self, moves: bool, references: usize, slot: usize) {
        let (name, slots) = (self.shadows.len(), self.slots);
        let to = |index: usize| slots.get(index % SLOTS);
        let node = if moves {
            make_with(&mut self.points.0, name, references, to).unwrap()
        } else {
            make_with(&mut self.points.1, name, references, to).unwrap()
        };
        let references = (0..references).map(|index| self.roots[index % SLOTS]).collect();
        let generation = if moves { 0 } else { LAST };
        self.shadows.push(Shadow { node, references, generation, is_gone: false, moves, registered: 0 });
        self.root(slot, Some(self.shadows.len() - 1));
    }

    fn link(&mut self, from: usize, index: usize, to: Option<usize>) {
        let Some((shadow, index)) = self.reference_of(from, index) else { return };
        self.shadows[shadow].references[index] = to;
        let (node, address) = (self.shadows[shadow].node, self.address(to));
        // SAFETY: a slot leads to the node, which has this reference.
        unsafe { set_reference(node, index, address) };
        let is_younger = to.is_some_and(|to| self.shadows[to].generation < self.shadows[shadow].generation);
        self.found.old_to_young += usize::from(is_younger);
        if self.notes {
            let place = node.wrapping_add((2 + index) * WORD);
            if self.shadows[shadow].moves {
                self.pools.0.note_write(&mut self.mutator, place);
            } else {
                self.pools.1.note_write(&mut self.mutator, place);
            }
        }
    }

    /// A node takes the place of another, in references of all kinds.
    fn transform(&mut self, old: usize, new: usize) {
        let mut transform = Transform::create(self.mutator.heap(), 1).unwrap();
        let [old_node, new_node] = [old, new].map(|shadow| NonNull::new(self.shadows[shadow].node).unwrap());
        // SAFETY: slots have both. All references to nodes are passed in their places, and any node may be in the place of
        // another.
        unsafe { transform.add_oldnew(old_node, new_node) }.unwrap();
        let mut stopped = self.mutator.stop(ALL).unwrap();
        let applied = transform.apply(&mut stopped);
        drop(stopped);
        assert_eq!(applied.is_ok(), old != new && self.pointed != Some(old), "{applied:?}");
        if applied.is_err() {
            return;
        }
        // That many cards have to be found anew.
        let youngest = self.shadows[new].generation;
        let comes_to_younger =
            |shadow: &&Shadow| shadow.generation > youngest && shadow.references.contains(&Some(old));
        self.found.transformed += self.shadows.iter().filter(comes_to_younger).count();
        let references = self.shadows.iter_mut().flat_map(|shadow| &mut shadow.references);
        for reference in references.chain(&mut self.roots).chain(&mut self.weak_roots) {
            if *reference == Some(old) {
                *reference = Some(new);
            }
        }
        self.shadows[new].registered += core::mem::take(&mut self.shadows[old].registered);
        self.find_all();
    }

    /// Adds all that these lead to.
    fn close(&self, reached: &mut BTreeSet<usize>, from: impl IntoIterator<Item = usize>) {
        let mut grey: Vec<_> = from.into_iter().collect();
        while let Some(shadow) = grey.pop() {
            if reached.insert(shadow) {
                grey.extend(self.shadows[shadow].references.iter().flatten());
            }
        }
    }

    fn compare(&mut self, collection: Collection, oldest: usize) {
        let oldest = oldest.min(LAST);
        assert_eq!((collection.generations, collection.refused), (oldest + 1, 0));
        self.found.young += usize::from(oldest < LAST);
        let there = |shadow: &Shadow| !shadow.is_gone;
        let old =
            self.shadows.iter().enumerate().filter(|(_, shadow)| there(shadow) && shadow.generation > oldest);
        let mut kept = BTreeSet::new();
        let roots = self.roots.iter().copied().chain([self.pointed]).flatten();
        self.close(&mut kept, old.map(|(index, _)| index).chain(roots));
        // What is registered and was not kept is kept to be finalized.
        let dead: Vec<_> = (0..self.shadows.len())
            .filter(|index| {
                there(&self.shadows[*index]) && self.shadows[*index].registered > 0 && !kept.contains(index)
            })
            .collect();
        self.close(&mut kept, dead.iter().copied());
        let mut size = self.points.0.room() + self.points.1.room();
        for (index, shadow) in self.shadows.iter_mut().enumerate() {
            shadow.is_gone |= !kept.contains(&index);
            if shadow.is_gone {
                continue;
            }
            size += (2 + shadow.references.len()) * WORD;
            // A word keeps what it points into where it is. A segment that is for one node ages with all in it.
            let ages = self.pointed != Some(index) || is_in_large(self.mutator.heap(), shadow.node);
            if shadow.generation <= oldest && shadow.moves && ages {
                shadow.generation = (shadow.generation + 1).min(LAST);
            }
        }
        assert_eq!(collection.kept, size, "what is kept is what the model keeps, in {collection}");
        self.find_all();
        self.finalize(dead);
        assert_eq!(self.pools.0.check(CheckLevel::Deep), Ok(()));
        assert_eq!(self.pools.1.check(CheckLevel::Deep), Ok(()));
    }

    /// Learns where nodes are now, and compares them with the model.
    fn find_all(&mut self) {
        for slot in 0..SLOTS {
            let Some(weak) = self.weak_roots[slot] else { continue };
            let is_null = self.weak.get(slot).is_null();
            assert_eq!(self.shadows[weak].is_gone, is_null, "a weak reference is null if its node died");
            self.found.cleared += usize::from(is_null);
            if is_null {
                self.weak_roots[slot] = None;
            }
        }
        let strong = (0..SLOTS).filter_map(|slot| Some((self.roots[slot]?, self.slots.get(slot))));
        let weak = (0..SLOTS).filter_map(|slot| Some((self.weak_roots[slot]?, self.weak.get(slot))));
        let mut grey: Vec<_> = strong.chain(weak).collect();
        grey.extend(self.pointed.map(|shadow| (shadow, self.shadows[shadow].node)));
        let mut seen = BTreeSet::new();
        while let Some((index, node)) = grey.pop() {
            self.shadows[index].node = node;
            if !seen.insert((index, node)) {
                continue;
            }
            // SAFETY: a reference leads to the node, so it was kept; whether it was is what is tested.
            assert_eq!(unsafe { name(node) }, index, "a node was lost");
            for (at, to) in self.shadows[index].references.iter().enumerate() {
                // SAFETY: the node was just found, and has this reference.
                let found = unsafe { reference(node, at) };
                assert_eq!(to.is_none(), found.is_null(), "a node was changed");
                grey.extend(to.map(|to| (to, found)));
            }
        }
        let nodes: BTreeSet<_> = seen.iter().map(|(index, _)| index).collect();
        assert_eq!(nodes.len(), seen.len(), "references to a node lead to different places");
    }

    /// Takes the nodes from the queue that are to be finalized.
    fn finalize(&mut self, mut dead: Vec<usize>) {
        self.found.finalized += dead.len();
        let mut queue = Vec::new();
        while let Some(Message::Finalizable(node)) = self.mutator.next_message() {
            // SAFETY: it was kept to be finalized.
            queue.push(unsafe { name(node.as_ptr()) });
        }
        let times = |index: usize| self.shadows[index].registered;
        dead = dead.into_iter().flat_map(|index| core::iter::repeat_n(index, times(index))).collect();
        queue.sort_unstable();
        assert_eq!(queue, dead, "each registration of a node that died is a message");
        dead.iter().for_each(|index| self.shadows[*index].registered = 0);
    }
}

/// Whether a node is in a segment of more than the usual size.
fn is_in_large(heap: &TestHeap<'_>, node: *mut u8) -> bool {
    let base_of = |addr: Addr| heap.arena().segment_base(addr);
    let found = base_of(Addr::of(node));
    found.is_some_and(|(_, base)| base_of(Addr::new(base.get() + SEGMENT)) == found)
}

fn run(heap: &TestHeap<'_>, steps: &[Step], noted: Option<bool>) -> Found {
    heap.set_policy(Policy::with_capacity(usize::MAX));
    let (moving, fixed) = match noted {
        None => (pool::<Moved>(heap, 0), pool::<Traced>(heap, 0)),
        Some(_) => (noting_pool::<Moved>(heap), noting_pool::<Traced>(heap)),
    };
    let mutator = heap.register().unwrap();
    let (slots, weak, word) = (Slots::<SLOTS>::default(), Slots::<SLOTS>::default(), Cell::new(0_usize));
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _slots = unsafe { heap.root_table(slots.base(), SLOTS, Tag::default()) }.unwrap();
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _weak = unsafe { heap.root_weak(weak.base(), SLOTS, Tag::default()) }.unwrap();
    // SAFETY: the word outlives the root, and only this thread uses it.
    let _word = unsafe { heap.root_ambiguous(NonNull::from(&word).cast(), 1) }.unwrap();
    let mut world = World {
        pools: (&moving, &fixed),
        points: (point(&moving, &mutator), point(&fixed, &mutator)),
        mutator,
        slots: &slots,
        weak: &weak,
        word: &word,
        shadows: Vec::new(),
        roots: [None; SLOTS],
        weak_roots: [None; SLOTS],
        pointed: None,
        notes: noted == Some(true),
        found: Found::default(),
    };
    steps.iter().for_each(|step| world.run(*step));
    world.run(Step::Collect { oldest: LAST });
    world.found
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(if cfg!(miri) { 3 } else { 96 }),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// With writes that are noted, and with formats that promise nothing.
    #[test]
    fn what_older_nodes_refer_to_is_kept(
        steps in prop::collection::vec(step(), 0..if cfg!(miri) { 40 } else { 400 }),
        is_noted in any::<bool>(),
    ) {
        with_heap(2 << 20, |heap| {
            run(heap, &steps, is_noted.then_some(true));
        });
    }
}

/// A node in the last generation comes to refer to a new one, and nothing else does.
fn old_to_young(moves: bool) -> Vec<Step> {
    let collect = |oldest| Step::Collect { oldest };
    vec![
        Step::Make { moves, references: 2, slot: 0 },
        collect(0),
        collect(1),
        collect(0),
        Step::Make { moves: true, references: 0, slot: 1 },
        Step::Link { from: 0, index: 0, to: 1 },
        Step::Clear { slot: 1 },
        collect(0),
        collect(0),
        collect(1),
        Step::Follow { from: 0, index: 0, slot: 2 },
    ]
}

#[test]
fn a_node_that_an_old_one_refers_to_is_kept() {
    for moves in [true, false] {
        let found = [None, Some(true)].map(|noted| {
            let mut found = Found::default();
            with_heap(64 << 10, |heap| found = run(heap, &old_to_young(moves), noted));
            (found.young, found.old_to_young)
        });
        assert_eq!(found, [(6, 1); 2]);
    }
}

/// The twin: the format promises that writes are noted, and this one is not.
#[test]
#[cfg_attr(miri, ignore = "it reads what was freed")]
#[should_panic(expected = "what is kept is what the model keeps")]
fn a_write_that_is_not_noted_loses_a_node() {
    with_heap(64 << 10, |heap| {
        run(heap, &old_to_young(true), Some(false));
    });
}

/// The properties are tested of what they are about.
#[test]
#[cfg_attr(miri, ignore = "hundreds of steps: the property above has some")]
fn the_steps_do_all_of_it() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let steps = prop::collection::vec(step(), 400);
    let mut all = Found::default();
    for _ in 0..8 {
        let steps = proptest::strategy::ValueTree::current(&steps.new_tree(&mut runner).unwrap());
        with_heap(2 << 20, |heap| {
            let found = run(heap, &steps, Some(true));
            all.young += found.young;
            all.old_to_young += found.old_to_young;
            all.finalized += found.finalized;
            all.cleared += found.cleared;
            all.transformed += found.transformed;
        });
    }
    assert!(
        all.young > 20
            && all.old_to_young > 10
            && all.finalized > 0
            && all.cleared > 0
            && all.transformed > 10,
        "{all:?}"
    );
}
