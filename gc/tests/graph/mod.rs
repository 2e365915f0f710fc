//! A graph of nodes in automatic pools, and its shadow, which knows what is reachable.
//!
//! Nodes live in a pool with references, one with references and headers, and one of leaves. After
//! each collection every reachable node has to be as it was made, and the bytes that are kept have to be those of
//! reachable nodes and of buffers that are attached, and no more. The fuzz target `gc_ops` takes in this file.

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use tripoint_core::{Check, CheckLevel, Error, PoolClass};
use tripoint_gc::{Collection, GENERATIONS, Kind, NoPath, PathStep, RootId, Tag, Transform};

use crate::common::{
    Nodes, Point, Slots, TestHeap, TestMutator, TestPool, WORD, layout, make_with, name, point, pool,
    reference, set_reference, write,
};

/// Whether a node was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Being {
    /// No collection has freed it.
    There,
    /// Nothing leads to it, but a collection of young generations may have left it.
    Perhaps,
    /// A collection has freed it.
    Gone,
}

/// What the shadow graph knows of a node.
#[derive(Debug)]
struct Shadow {
    node: *mut u8,
    /// The words in front of the address by which references know it.
    header: usize,
    name: usize,
    references: Vec<Option<usize>>,
    /// The bytes of the node.
    size: usize,
    being: Being,
    is_leaf: bool,
}

impl Shadow {
    fn base(&self) -> usize {
        self.node.addr() - self.header * WORD
    }
}

/// One step: what, and numbers to choose by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A node in a pool with that many references, each to what a slot has, in a slot.
    Make {
        pool: u8,
        references: usize,
        slot: u8,
    },
    /// A reference of what a slot has changes to what another has.
    Link {
        from: u8,
        index: u8,
        to: u8,
    },
    /// A slot changes to what a reference of what a slot has leads to.
    Follow {
        from: u8,
        index: u8,
        slot: u8,
    },
    Clear {
        slot: u8,
    },
    /// An ambiguous word points into what a slot has, at a byte.
    Point {
        slot: u8,
        byte: u8,
    },
    Forget,
    Empty {
        pool: u8,
    },
    Collect,
    /// A collection of the generations up to one.
    CollectYoung {
        oldest: u8,
    },
    /// A collection with a reservation held.
    Hold,
    /// Walks over all objects and roots, and a path to each object.
    Walk,
    /// What slots have takes the place of what others have, after a collection or not.
    Transform {
        pairs: [(u8, u8); 2],
        collects: bool,
    },
}

const SLOTS: usize = 8;

/// A graph of nodes and its shadow.
struct Graph<'a, 'm, K: Kind<Nodes>, L: Kind<Nodes>> {
    pools: [&'a TestPool<'m, K>; 2],
    leaves: &'a TestPool<'m, L>,
    points: [Point<'a, 'm, K>; 2],
    leaf_point: Point<'a, 'm, L>,
    /// It is dropped after its points.
    mutator: TestMutator<'m>,
    slots: &'a Slots<SLOTS>,
    /// A word that may be a reference.
    word: &'a Cell<usize>,
    /// The names of the roots: of the slots, and of the word.
    root_ids: [RootId; 2],
    shadows: Vec<Shadow>,
    roots: [Option<usize>; SLOTS],
    pointed: Option<usize>,
    names: usize,
    /// The number of the last collection that was noticed.
    collections: u64,
    found: Found,
}

/// What happened meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// How many times memory was refused at first.
    pub(crate) refused: u64,
    /// How many nodes changed their addresses.
    pub(crate) moved: usize,
    /// How many collections could not copy all that they wanted to.
    pub(crate) not_copied: usize,
    /// How many nodes stayed because a word pointed into them.
    pub(crate) nailed: usize,
    /// How many collections were of young generations that the steps asked for.
    pub(crate) young: usize,
    /// How many transforms were applied, and how many were not.
    pub(crate) transformed: usize,
    pub(crate) not_applied: usize,
}

impl<K: Kind<Nodes>, L: Kind<Nodes>> Graph<'_, '_, K, L> {
    fn run(&mut self, step: Step) {
        let slot = |slot: u8| usize::from(slot) % SLOTS;
        match step {
            Step::Make { pool, references, slot: to } => self.make(pool % 3, references, slot(to)),
            Step::Link { from, index, to } => {
                let to = self.roots[slot(to)];
                if let Some((shadow, index)) = self.reference_of(slot(from), index) {
                    self.shadows[shadow].references[index] = to;
                    let node = self.shadows[shadow].node;
                    // SAFETY: a slot leads to the node, which has this reference.
                    unsafe { set_reference(node, index, self.address(to)) };
                }
            }
            Step::Follow { from, index, slot: to } => {
                if let Some((shadow, index)) = self.reference_of(slot(from), index) {
                    let found = self.shadows[shadow].references[index];
                    self.root(slot(to), found);
                }
            }
            Step::Clear { slot: at } => self.root(slot(at), None),
            Step::Point { slot: at, byte } => {
                self.pointed = self.roots[slot(at)];
                let within = |shadow: &Shadow| shadow.base() + usize::from(byte) % shadow.size;
                self.word.set(self.pointed.map_or(0, |shadow| within(&self.shadows[shadow])));
            }
            Step::Forget => {
                self.pointed = None;
                self.word.set(usize::MAX - usize::from(u8::MAX));
            }
            Step::Empty { pool: 2 } => self.leaf_point.empty(),
            Step::Empty { pool } => self.points[usize::from(pool) % 2].empty(),
            Step::Collect => self.collect(),
            Step::CollectYoung { oldest } => {
                let found = self.mutator.collect_up_to(usize::from(oldest), Duration::MAX).unwrap();
                self.compare(found);
            }
            Step::Hold => self.hold(),
            Step::Walk => self.walk(),
            Step::Transform { pairs, collects } => {
                self.transform(pairs.map(|(old, new)| (slot(old), slot(new))), collects);
            }
        }
    }

    /// The reference with this number, if a slot leads to a node that has references.
    fn reference_of(&self, slot: usize, index: u8) -> Option<(usize, usize)> {
        let shadow = self.roots[slot]?;
        let count = self.shadows[shadow].references.len();
        (count != 0).then(|| (shadow, usize::from(index) % count))
    }

    fn address(&self, shadow: Option<usize>) -> *mut u8 {
        shadow.map_or(ptr::null_mut(), |shadow| self.shadows[shadow].node)
    }

    fn root(&mut self, slot: usize, to: Option<usize>) {
        self.roots[slot] = to;
        self.slots.set(slot, self.address(to));
    }

    fn make(&mut self, pool: u8, references: usize, slot: usize) {
        self.names += 1;
        let name = self.names;
        let targets: Vec<_> = match pool {
            2 => Vec::new(),
            _ => (0..references).map(|index| self.roots[index % SLOTS]).collect(),
        };
        // A leaf has words that are no references, and look like some.
        let slots = self.slots;
        let word = |index: usize| slots.get(index % SLOTS);
        let (made, header) = match pool {
            2 => (make_with(&mut self.leaf_point, name, references, word), 0),
            _ => {
                let point = &mut self.points[usize::from(pool)];
                (make_with(point, name, references, word), usize::from(pool) * 2)
            }
        };
        self.notice_collections();
        match made {
            Ok(node) => {
                let size = (header + 2 + references) * WORD;
                self.shadows.push(Shadow {
                    node,
                    header,
                    name,
                    references: targets,
                    size,
                    being: Being::There,
                    is_leaf: pool == 2,
                });
                self.root(slot, Some(self.shadows.len() - 1));
            }
            Err(error) => {
                assert_eq!(error, Error::Limit);
                self.collect();
            }
        }
    }

    /// Notices which objects a collection has freed that the heap began.
    fn notice_collections(&mut self) {
        if self.last_collection() != self.collections {
            self.find_moved();
            self.bury();
        }
    }

    fn last_collection(&self) -> u64 {
        self.mutator.heap().last_collection().map_or(0, |last| last.number)
    }

    /// Notes what is known of nodes that are not reachable now: a collection of the whole heap has freed them.
    fn bury(&mut self) {
        let last = self.mutator.heap().last_collection().unwrap();
        self.collections = last.number;
        let reachable = self.reachable();
        for (index, shadow) in self.shadows.iter_mut().enumerate() {
            shadow.being = match shadow.being {
                _ if reachable.contains_key(&index) => Being::There,
                Being::Gone => Being::Gone,
                _ if last.generations == GENERATIONS => Being::Gone,
                _ => Being::Perhaps,
            };
        }
    }

    /// What roots lead to, and over how many objects.
    fn reachable(&self) -> BTreeMap<usize, usize> {
        let mut grey: VecDeque<_> = self.roots.iter().copied().chain([self.pointed]).flatten().collect();
        let mut reached: BTreeMap<_, _> = grey.iter().map(|&shadow| (shadow, 1)).collect();
        while let Some(shadow) = grey.pop_front() {
            for &to in self.shadows[shadow].references.iter().flatten() {
                if !reached.contains_key(&to) {
                    reached.insert(to, reached[&shadow] + 1);
                    grey.push_back(to);
                }
            }
        }
        reached
    }

    /// All objects that no collection has freed are shown once, and perhaps some that one may have; roots show what they hold; and a
    /// shortest path leads to what is reachable.
    fn walk(&mut self) {
        let reachable = self.reachable();
        let Self { mutator, shadows, roots, pointed, slots, word, root_ids, .. } = self;
        let mut stopped = mutator.stop(Duration::MAX).unwrap();
        let there = shadows.iter().enumerate().filter(|(_, shadow)| shadow.being == Being::There);
        let there: BTreeMap<_, _> = there.map(|(index, shadow)| (shadow.base(), index)).collect();
        let names: BTreeMap<_, _> =
            shadows.iter().enumerate().map(|(index, shadow)| (shadow.name, index)).collect();
        let (mut shown, mut objects) = (BTreeMap::new(), 0);
        stopped.walk_objects(|object| {
            objects += 1;
            // SAFETY: the object is there, and is a node.
            let index = names[&unsafe { name(object.reference.as_ptr()) }];
            let shadow = &shadows[index];
            assert_eq!(object.block.size(), shadow.size);
            assert_ne!(shadow.being, Being::Gone, "a node was freed, and is shown");
            if shadow.being == Being::There {
                assert_eq!(object.reference.as_ptr(), shadow.node);
                assert!(shown.insert(index, object).is_none(), "an object was shown twice");
            }
        });
        assert_eq!(shown.len(), there.len(), "all objects are shown");
        let mut held = Vec::new();
        stopped.walk_roots(|reference| {
            assert_eq!(reference.is_ambiguous, reference.root == root_ids[1]);
            held.push(reference.addr.get());
        });
        let mut expected: Vec<_> = (0..SLOTS).map(|slot| slots.get(slot).addr()).collect();
        expected.insert(0, word.get());
        assert_eq!(held, expected, "the newest root first");
        let mut table = vec![PathStep::default(); objects];
        // A few of them: each search may look at all.
        for &index in there.values().step_by(there.len() / 24 + 1) {
            let target = shadows[index].node;
            let path = stopped.path_to(target, &mut table);
            assert_eq!(
                path.ok().map(|path| path.steps.len()),
                reachable.get(&index).copied(),
                "a path was missed"
            );
            let Ok(path) = path else {
                assert_eq!(path, Err(NoPath::Unreachable));
                continue;
            };
            let steps: Vec<_> = path.steps.iter().map(|step| there[&step.object_base().addr()]).collect();
            match root_ids.iter().position(|id| *id == path.root) {
                Some(0) => assert!(roots.contains(&Some(steps[0]))),
                _ => assert_eq!(*pointed, Some(steps[0])),
            }
            for pair in steps.windows(2) {
                assert!(shadows[pair[0]].references.contains(&Some(pair[1])), "a path without a reference");
            }
            assert_eq!(steps.last(), Some(&index));
            assert_eq!(stopped.object_at(target), shown.get(&index).copied());
        }
    }

    /// Nodes take the place of others, unless that has no meaning or a word points into an old one.
    fn transform(&mut self, pairs: [(usize, usize); 2], collects: bool) {
        let pairs: Vec<_> =
            pairs.iter().filter_map(|(old, new)| Some((self.roots[*old]?, self.roots[*new]?))).collect();
        let Ok(mut transform) = Transform::create(self.mutator.heap(), pairs.len()) else { return };
        for &(old, new) in &pairs {
            let [old, new] = [old, new].map(|shadow| NonNull::new(self.shadows[shadow].node).unwrap());
            // SAFETY: slots have both. All references to nodes are passed in their places, and any node may be in the
            // place of another.
            unsafe { transform.add_oldnew(old, new) }.unwrap();
        }
        if collects {
            self.collect();
        }
        let is_old = |shadow: usize| pairs.iter().filter(|(old, _)| *old == shadow).count();
        let is_right = pairs.iter().all(|&(old, new)| is_old(old) == 1 && is_old(new) == 0);
        let is_nailed = self.pointed.is_some_and(|shadow| is_old(shadow) > 0);
        let mut stopped = self.mutator.stop(Duration::MAX).unwrap();
        let applied = transform.apply(&mut stopped);
        drop(stopped);
        assert_eq!(applied.is_ok(), is_right && !is_nailed, "{applied:?}");
        self.found.transformed += usize::from(applied.is_ok() && !pairs.is_empty());
        self.found.not_applied += usize::from(applied.is_err());
        if applied.is_ok() {
            let references = self.shadows.iter_mut().flat_map(|shadow| &mut shadow.references);
            for reference in references.chain(&mut self.roots).flatten() {
                let pair = pairs.iter().find(|(old, _)| old == reference);
                *reference = pair.map_or(*reference, |(_, new)| *new);
            }
        }
        // Nothing moved, and what is reachable is as the shadow says.
        self.find_moved();
    }

    fn collect(&mut self) {
        let found = self.mutator.collect(Duration::MAX).unwrap();
        self.compare(found);
    }

    fn hold(&mut self) {
        let Ok(reservation) = self.points[0].reserve(layout(0, 1)) else { return };
        let references = [self.slots.get(0)];
        // SAFETY: that many bytes were reserved.
        unsafe { write(reservation.as_ptr().cast(), reservation.size(), 0, &references) };
        let found = self.mutator.collect(Duration::MAX).unwrap();
        // SAFETY: a whole node.
        assert!(unsafe { reservation.commit() }.is_err(), "a collection did not see it");
        self.compare(found);
    }

    /// Learns where nodes are now, beginning with the roots.
    fn find_moved(&mut self) {
        let mut now: BTreeMap<usize, *mut u8> = BTreeMap::new();
        // What a word points into does not move.
        let mut grey: Vec<_> =
            self.pointed.map(|shadow| (shadow, self.shadows[shadow].node)).into_iter().collect();
        grey.extend((0..SLOTS).filter_map(|slot| Some((self.roots[slot]?, self.slots.get(slot)))));
        while let Some((index, node)) = grey.pop() {
            if let Some(&known) = now.get(&index) {
                assert_eq!(known, node, "two references to a node lead to different places");
                continue;
            }
            now.insert(index, node);
            let shadow = &self.shadows[index];
            // SAFETY: roots lead to the node, so it was kept; whether it was is what is tested.
            assert_eq!(unsafe { name(node) }, shadow.name, "a node was lost");
            for (at, &to) in shadow.references.iter().enumerate() {
                // SAFETY: the node was just found, and has this reference.
                let found = unsafe { reference(node, at) };
                assert_eq!(to.is_none(), found.is_null(), "a node was changed");
                grey.extend(to.map(|to| (to, found)));
            }
        }
        for (index, node) in now {
            let shadow = &mut self.shadows[index];
            let is_moved = shadow.node != node;
            let (moves, is_pointed) =
                (if shadow.is_leaf { L::MOVES } else { K::MOVES }, self.pointed == Some(index));
            assert!(!is_moved || moves && !is_pointed, "a node was moved");
            self.found.moved += usize::from(is_moved);
            self.found.nailed += usize::from(moves && is_pointed);
            shadow.node = node;
        }
    }

    fn compare(&mut self, collection: Collection) {
        let Collection { kept, moved, refused, .. } = collection;
        self.found.not_copied += usize::from(refused != 0);
        assert!(moved + refused <= kept);
        self.found.young += usize::from(collection.generations < GENERATIONS);
        self.find_moved();
        self.bury();
        let reachable = self.reachable();
        let mut size = 0;
        for &index in reachable.keys() {
            let shadow = &self.shadows[index];
            // SAFETY: roots lead to the node, so it was kept; whether it was is what is tested.
            assert_eq!(unsafe { name(shadow.node) }, shadow.name, "a node was lost");
            for (at, &to) in shadow.references.iter().enumerate() {
                // SAFETY: roots lead to the node, so it was kept, and it has this reference.
                assert_eq!(unsafe { reference(shadow.node, at) }, self.address(to), "a node was changed");
            }
            size += shadow.size;
        }
        let attached = self.points[0].room() + self.points[1].room() + self.leaf_point.room();
        assert!(kept >= size + attached, "what is reachable or in a buffer is kept");
        let may_keep = collection.generations < GENERATIONS;
        assert!(may_keep || kept == size + attached, "what is kept is reachable or in a buffer");
        self.check(self.pools[0]);
        self.check(self.pools[1]);
        self.check(self.leaves);
    }

    fn check<M: Kind<Nodes>>(&self, pool: &TestPool<'_, M>) {
        assert_eq!(pool.check(CheckLevel::Deep), Ok(()));
        let (mut free, mut end) = (0, 0);
        pool.walk_free(&mut |gap| {
            assert!(end <= gap.base().addr().get(), "gaps in order");
            (free, end) = (free + gap.size(), gap.limit().addr().get());
        });
        assert_eq!(free, pool.sizes().free);
    }
}

/// Runs the steps, and two collections at the end, the second without roots.
pub(crate) fn run<K: Kind<Nodes>, L: Kind<Nodes>>(
    heap: &TestHeap<'_>,
    steps: &[Step],
    forgets: bool,
) -> Found {
    let (nodes, headed, leaves) = (pool::<K>(heap, 0), pool::<K>(heap, 2), pool::<L>(heap, 0));
    nodes.format().forgets.store(forgets, Ordering::Relaxed);
    let mutator = heap.register().unwrap();
    let (slots, word) = (Slots::<SLOTS>::default(), Cell::new(0_usize));
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let slots_root = unsafe { heap.root_table(slots.base(), SLOTS, Tag::default()) }.unwrap();
    // SAFETY: the word outlives the root, and only this thread uses it.
    let word_root = unsafe { heap.root_ambiguous(NonNull::from(&word).cast(), 1) }.unwrap();
    let points = [point(&nodes, &mutator), point(&headed, &mutator)];
    let leaf_point = point(&leaves, &mutator);
    let mut graph = Graph {
        mutator,
        pools: [&nodes, &headed],
        leaves: &leaves,
        points,
        leaf_point,
        slots: &slots,
        word: &word,
        root_ids: [slots_root.id(), word_root.id()],
        shadows: Vec::new(),
        roots: [None; SLOTS],
        pointed: None,
        names: 0,
        collections: 0,
        found: Found::default(),
    };
    steps.iter().for_each(|step| graph.run(*step));
    graph.collect();
    (0..SLOTS).for_each(|slot| graph.root(slot, None));
    graph.run(Step::Forget);
    (0..3).for_each(|pool| graph.run(Step::Empty { pool }));
    graph.collect();
    assert!(graph.pools.iter().all(|pool| pool.header().total() == 0), "nothing is left");
    graph.found.refused = heap.counts().by_refusal.get();
    graph.found
}
