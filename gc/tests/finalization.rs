//! Finalization, weak references and messages against a shadow graph, which knows what is reachable
//! (design/gc.md `.req.final`, `.req.weak`).

mod common;

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Nodes, Point, Slots, TestHeap, TestMutator, WORD, make, name, point, pool};
use common::{reference, set_reference, with_heap};
use proptest::prelude::*;
use tripoint_core::{Block, Check, CheckLevel, Error, PoolClass};
use tripoint_gc::{
    Awl, Cause, Format, Leaf, Message, Mutator, Policy, Scan, Swept, SweptOptions, Tag, Traced, WeakSlots,
};
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
    /// A node of a class with so many references, each to what a slot has, in a slot.
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
                // SAFETY: as above, the node has this reference.
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
            heap.set_policy(Policy { capacity, ..Policy::default() });
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

/// Whichever mutator takes a message, each object is finalized once.
#[test]
fn threads_share_the_queue() {
    const THREADS: usize = 3;
    // Each thread needs more than one fill, so that one of them finds a collection due.
    let count = if cfg!(miri) { 100 } else { 600 };
    with_heap(1 << 20, |heap| {
        heap.set_policy(Policy { capacity: 1 << 10, patience: ALL, ..Policy::default() });
        let pool = pool::<Leaf>(heap, 0);
        let all = Mutex::new(Vec::new());
        let take = |mutator: &TestMutator<'_>| {
            while let Some(message) = mutator.next_message() {
                let Message::Finalizable(object) = message else { panic!("{message:?}") };
                // SAFETY: it is kept until this mutator gives way.
                all.lock().unwrap().push(unsafe { name(object.as_ptr()) });
            }
        };
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (pool, take) = (&pool, &take);
                scope.spawn(move || {
                    let mut mutator = heap.register().unwrap();
                    let mut point = point(pool, &mutator);
                    for index in 0..count {
                        let object = make(&mut point, thread * count + index, &[ptr::null_mut(); 4]);
                        mutator.finalize(NonNull::new(object.unwrap()).unwrap()).unwrap();
                        if index % 16 == 0 {
                            take(&mutator);
                            mutator.poll();
                        }
                    }
                });
            }
        });
        assert!(heap.counts().by_threshold.get() > 0);
        let mut mutator = heap.register().unwrap();
        mutator.collect(ALL).unwrap();
        take(&mutator);
        assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
        let mut taken = all.into_inner().unwrap();
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(0..THREADS * count), "each once");
    });
}

#[test]
fn only_objects_of_the_heap_are_finalized() {
    with_heap(64 << 10, |heap| {
        let mutator = heap.register().unwrap();
        let mut local = 0_usize;
        let refused = mutator.finalize(NonNull::from(&mut local).cast());
        assert!(matches!(refused, Err(Error::Parameter(_))));
        assert!(!mutator.definalize(NonNull::from(&mut local).cast()));
        assert_eq!(mutator.next_message(), None);
    });
}

/// Also those that wait to be taken: nothing refers to a pool that is gone.
#[test]
fn registrations_end_with_their_pool_or_their_heap() {
    with_heap(64 << 10, |heap| {
        let mut mutator = heap.register().unwrap();
        let stays = pool::<Leaf>(heap, 0);
        let mut point_of_stays = point(&stays, &mutator);
        let left = NonNull::new(make(&mut point_of_stays, 1, &[]).unwrap()).unwrap();
        {
            let goes = pool::<Leaf>(heap, 0);
            let mut point = point(&goes, &mutator);
            let gone = NonNull::new(make(&mut point, 2, &[]).unwrap()).unwrap();
            mutator.finalize(gone).unwrap();
            mutator.collect(ALL).unwrap();
            mutator.finalize(NonNull::new(make(&mut point, 3, &[]).unwrap()).unwrap()).unwrap();
        }
        assert_eq!(mutator.next_message(), None);
        let left = NonNull::new(make(&mut point_of_stays, left.as_ptr().addr(), &[]).unwrap()).unwrap();
        mutator.finalize(left).unwrap();
        mutator.collect(ALL).unwrap();
        assert_eq!(heap.arena().check(CheckLevel::Deep), Ok(()));
    });
}

#[test]
fn collections_leave_messages_if_there_is_room() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Leaf>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        mutator.collect(ALL).unwrap();
        assert_eq!((mutator.next_message(), heap.counts().lost_messages.get()), (None, 0));
        heap.enable_messages(3).unwrap();
        let object = NonNull::new(make(&mut point, 1, &[]).unwrap()).unwrap();
        mutator.finalize(object).unwrap();
        let second = mutator.collect(ALL).unwrap();
        let third = mutator.collect(ALL).unwrap();
        assert_eq!(heap.counts().lost_messages.get(), 1);
        let cause = Cause::Requested;
        assert_eq!(mutator.next_message(), Some(Message::Began { number: 2, cause }));
        assert_eq!(mutator.next_message(), Some(Message::Ended(second)));
        assert_eq!(mutator.next_message(), Some(Message::Began { number: 3, cause }));
        assert_eq!(mutator.next_message(), Some(Message::Finalizable(object)));
        assert_eq!(mutator.next_message(), None);
        assert!(third.kept >= 2 * WORD, "kept until it was taken");
        let fourth = mutator.collect(ALL).unwrap();
        assert_eq!(fourth.freed, 2 * WORD);
        assert_eq!(mutator.next_message(), Some(Message::Began { number: 4, cause }));
        assert_eq!(mutator.next_message(), Some(Message::Ended(fourth)));
        assert_eq!(heap.counts().lost_messages.get(), 1);
    });
}

#[test]
fn addresses_hold_where_no_class_moves_objects() {
    with_heap(64 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut dependency = mutator.reset_dependency();
        dependency.add(make(&mut point(&pool, &mutator), 1, &[]).unwrap());
        for _ in 0..20 {
            assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
        }
        assert!(!mutator.is_stale(dependency), "it died, and did not move");
    });
}

/// The keys of a table: its size, the table of values, and weak references. A value belongs to each, at the same
/// index; when a key is cleared, its value is.
struct Keys {
    /// Whether it says that no values depend on keys: a flaw to be found.
    is_independent: AtomicBool,
    /// Whether values died before their keys.
    are_lost: Arc<AtomicBool>,
}

// SAFETY: `make` writes the size before the commit, and nothing writes it after; all other words but the name are
// references, and are passed on.
unsafe impl Format for Keys {
    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises an object, which begins with its size.
        unsafe { object.cast::<usize>().read() }
    }

    unsafe fn dependent(&self, object: NonNull<u8>) -> *mut u8 {
        if self.is_independent.load(Ordering::Relaxed) {
            return ptr::null_mut();
        }
        // SAFETY: the first reference of keys is that to their values.
        unsafe { reference(object.as_ptr(), 0) }
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        let mut at = 0;
        while at < objects.size() {
            // SAFETY: the caller promises whole objects in a row.
            let keys = unsafe { objects.base().add(at) };
            // SAFETY: the caller promises whole objects in a row.
            let size = unsafe { self.skip(keys) };
            // SAFETY: the word is in the object, and no thread uses it meanwhile.
            let values = unsafe { keys.cast::<*mut u8>().add(2).as_mut() };
            scan.fix(values);
            // A format must not unwind in a collection, so this is judged afterwards.
            self.are_lost.fetch_or(values.is_null(), Ordering::Relaxed);
            for word in 3..size / WORD {
                // SAFETY: the word is in the object, and no thread uses it meanwhile.
                let key = unsafe { keys.cast::<*mut u8>().add(word).as_mut() };
                let was_there = !key.is_null();
                scan.fix(key);
                if was_there && key.is_null() && !values.is_null() {
                    // SAFETY: values are kept by their keys, and have as many references as there are keys.
                    unsafe { set_reference(*values, word - 3, ptr::null_mut()) };
                }
            }
            at += size;
        }
    }
}

fn with_table(is_independent: bool) {
    with_heap(256 << 10, |heap| {
        let values = pool::<Traced>(heap, 0);
        let are_lost = Arc::new(AtomicBool::new(false));
        let format = Keys { is_independent: AtomicBool::new(is_independent), are_lost: are_lost.clone() };
        let options = SweptOptions { segment_size: 4 << 10 };
        let keys: Awl<'_, _, _, _> = Swept::create(heap, format, options).unwrap();
        let mut mutator: Mutator<'_, _, _> = heap.register().unwrap();
        let mut value_point = point(&values, &mutator);
        // SAFETY: this thread has both, and uses the point while the mutator is running.
        let adjust = |buffer: &tripoint_gc::MutatorBuffer| unsafe { buffer.attend(&mutator) };
        let kind = tripoint_core::BufferKind::Mutator;
        let mut key_point = tripoint_ap::AllocationPoint::create_in(&keys, kind, (), adjust).unwrap();
        let slots = Slots::<4>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _root = unsafe { heap.root_table(slots.base(), 4, Tag::default()) }.unwrap();
        for slot in 0..3 {
            slots.set(slot, make(&mut value_point, slot, &[]).unwrap());
        }
        // The values refer to leaves of their own.
        let of_keys = [10, 11, 12].map(|name| make(&mut value_point, name, &[]).unwrap());
        let table = make(&mut value_point, 20, &of_keys).unwrap();
        slots.set(3, table);
        let words = [table, slots.get(0), slots.get(1), slots.get(2)];
        let layout = common::layout(0, words.len());
        let reservation = key_point.reserve(layout).unwrap();
        // SAFETY: so many words were reserved.
        unsafe { common::write(reservation.as_ptr().cast(), reservation.size(), 30, &words) };
        // SAFETY: the object was just made, in full.
        let made = unsafe { reservation.commit() };
        slots.set(3, made.map_or(ptr::null_mut(), NonNull::as_ptr));
        slots.set(1, ptr::null_mut());
        value_point.empty();
        key_point.empty();
        let found = mutator.collect(ALL).unwrap();
        assert!(!are_lost.load(Ordering::Relaxed), "values live as long as their keys");
        // The second key died; its value dies in the next collection.
        assert_eq!((found.kept, found.freed), ((2 * 2 + 5 + 6 + 3 * 2) * WORD, 2 * WORD));
        // SAFETY: keys and values are kept.
        let after = [0, 1, 2]
            .map(|index| unsafe { (reference(made.unwrap().as_ptr(), index + 1), reference(table, index)) });
        assert_eq!(after[1], (ptr::null_mut(), ptr::null_mut()));
        assert_eq!((after[0], after[2]), ((slots.get(0), of_keys[0]), (slots.get(2), of_keys[2])));
        assert_eq!(mutator.collect(ALL).unwrap().freed, 2 * WORD);
        slots.set(3, ptr::null_mut());
        let last = mutator.collect(ALL).unwrap();
        assert_eq!(last.kept, 2 * 2 * WORD, "the two keys that slots have");
    });
}

#[test]
fn a_weak_table_loses_the_value_with_the_key() {
    with_table(false);
}

/// The twin: without dependent objects the values are only weakly referred to.
#[test]
#[should_panic(expected = "values live as long as their keys")]
fn values_that_do_not_depend_on_keys_are_lost() {
    with_table(true);
}
