//! A mutator: nodes of the heap that only it uses, and their shadow.

use core::cell::Cell;
use core::ptr::NonNull;
use core::time::Duration;
use std::thread;

use tripoint_core::{Arena, BarrierPair, Error};
use tripoint_gc::{
    Collection, GENERATIONS, GenerationPolicy, LocationDependency, Message, Mutator, Parked, Policy,
};
use tripoint_oracle::Random;

use crate::common::{Slots, WORD, name, reference, set_reference};
use crate::flaw::Flaw;
use crate::nodes::{Class, Points, outside};
use crate::shadow::{Extent, Id, Node, SLOTS, Seen, Shadow, To, WORDS};

/// What a mutator's roots are.
#[derive(Debug)]
pub(crate) struct Roots {
    pub(crate) slots: Slots<SLOTS>,
    pub(crate) weak: Slots<SLOTS>,
    pub(crate) words: [Cell<usize>; WORDS],
}

impl Default for Roots {
    fn default() -> Self {
        let words = [const { Cell::new(0) }; WORDS];
        Self { slots: Slots::default(), weak: Slots::default(), words }
    }
}

/// How a mutator behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// It collects once in about that many operations.
    pub(crate) collects: usize,
    /// It forgets some roots if it has that many nodes.
    pub(crate) most: usize,
    /// Whether it is alone, so that it knows what the heap has.
    pub(crate) is_alone: bool,
    /// Whether it takes the messages of the heap, and changes its policy. One of several does.
    pub(crate) is_first: bool,
    pub(crate) flaw: Option<Flaw>,
}

/// Addresses that were hashed, so to speak.
#[derive(Debug)]
struct Hashed {
    dependency: LocationDependency,
    nodes: Vec<(Id, usize, *mut u8)>,
}

/// How often something was done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Done {
    pub(crate) made: usize,
    pub(crate) refused: usize,
    pub(crate) held: usize,
    pub(crate) taken: usize,
    pub(crate) stale: usize,
    pub(crate) compared: usize,
    /// Collections of young generations that were followed.
    pub(crate) young: usize,
}

pub(crate) struct Graph<'a, 'm, A: Arena, B: BarrierPair> {
    pub(crate) points: Points<'a, 'm, A, B>,
    /// It is dropped after its points.
    pub(crate) mutator: Mutator<'m, A, B>,
    pub(crate) roots: &'a Roots,
    pub(crate) shadow: Shadow,
    random: Random,
    habits: Habits,
    parked: Option<Parked<'m, A, B>>,
    hashed: Hashed,
    /// How many registrations for finalization there were.
    registrations: usize,
    /// The number of the last collection that was followed.
    collections: u64,
    pub(crate) done: Done,
}

impl<'a, 'm, A: Arena, B: BarrierPair> Graph<'a, 'm, A, B> {
    pub(crate) fn new(
        points: Points<'a, 'm, A, B>,
        mutator: Mutator<'m, A, B>,
        roots: &'a Roots,
        random: Random,
        habits: Habits,
    ) -> Self {
        let hashed = Hashed { dependency: mutator.reset_dependency(), nodes: Vec::new() };
        let collections = last_collection(&mutator);
        let (shadow, done) = (Shadow::default(), Done::default());
        let (parked, registrations) = (None, 0);
        Self {
            points,
            mutator,
            roots,
            shadow,
            random,
            habits,
            parked,
            hashed,
            registrations,
            collections,
            done,
        }
    }

    pub(crate) const fn seen(&self) -> Seen {
        self.shadow.seen
    }

    /// Does one operation.
    pub(crate) fn operate(&mut self) {
        let [slot, other, index] = [SLOTS, SLOTS, 256].map(|limit| self.random.below(limit));
        match self.random.below(1000) {
            0..500 => self.make(slot),
            500..650 => self.link(slot, index, other),
            650..760 => self.go_along(slot, index, other),
            760..800 => self.set_root(slot, To::Null, core::ptr::null_mut()),
            800..850 => self.set_root(slot, self.shadow.roots[other], self.roots.slots.get(other)),
            850..870 => self.point(slot),
            870..900 => self.forget_word(),
            900..930 => self.weaken(slot, other),
            930..950 => self.strengthen(slot, other),
            950..965 => self.finalize(slot),
            965..968 => self.definalize(slot),
            968..974 => self.take_message(Some(slot)),
            974..980 => self.take_message(None),
            980..985 => self.points.empty(Class::ALL[index % 5]),
            985..988 => self.hold(slot),
            988..992 => self.hash(slot),
            992 => self.set_root(slot, To::Outside, outside()),
            993 => self.change_policy(),
            994..996 => self.give_way(),
            _ => {}
        }
        if self.random.once_in(self.habits.collects) {
            self.collect();
        }
    }

    fn set_root(&mut self, slot: usize, to: To, at: *mut u8) {
        self.shadow.roots[slot] = to;
        self.roots.slots.set(slot, at);
    }

    /// The node that a slot leads to.
    fn root(&self, slot: usize) -> Option<(Id, *mut u8)> {
        let To::Node(id) = self.shadow.roots[slot] else { return None };
        Some((id, self.roots.slots.get(slot)))
    }

    fn make(&mut self, slot: usize) {
        let class = Class::ALL[[0, 0, 0, 1, 1, 2, 2, 3, 4][self.random.below(9)]];
        let words = match self.random.below(400) {
            0 => 400 + self.random.below(300),
            1..20 => self.random.below(80),
            _ => self.random.below(6),
        };
        let (slots, name) = (&self.roots.slots, self.shadow.next_name());
        // Mostly what the slot has had, so that lists grow.
        let first = if self.random.once_in(4) { self.random.below(SLOTS) } else { slot };
        // A leaf has words that are no references, and look like some.
        let word = |index: usize| slots.get((first + index) % SLOTS);
        let made = self.points.make(class, name, words, word, || ());
        self.notice();
        match made {
            Ok(Some(at)) => self.enter(class, name, words, first, at, slot),
            Ok(None) => panic!("a commit failed though its thread did not give way"),
            Err(error) => self.meet_shortage(error),
        }
        if self.shadow.count() > 4 * self.habits.most {
            self.collect();
        }
    }

    /// Enters a node whose references lead to what slots have, from the first on.
    fn enter(&mut self, class: Class, name: usize, words: usize, first: usize, at: *mut u8, slot: usize) {
        let size = Node::size_of(self.points.header(class), words);
        let id = self.shadow.enter(class, name, size, at);
        if !class.is_leaf() {
            let roots = self.shadow.roots;
            let targets = (0..words).map(|index| roots[(first + index) % SLOTS]);
            self.shadow.node_mut(id).references.extend(targets);
        }
        self.set_root(slot, To::Node(id), at);
        self.done.made += 1;
    }

    fn meet_shortage(&mut self, error: Error) {
        assert!(is_shortage(error), "{error}");
        self.done.refused += 1;
        self.forget_most();
        self.collect();
    }

    fn forget_most(&mut self) {
        for slot in 0..SLOTS {
            if !self.random.once_in(4) {
                self.set_root(slot, To::Null, core::ptr::null_mut());
            }
        }
        (0..WORDS).for_each(|_| self.forget_word());
    }

    /// A reference of a node that a slot leads to.
    fn reference_of(&self, slot: usize, index: usize) -> Option<(Id, *mut u8, usize)> {
        let (id, at) = self.root(slot)?;
        let count = self.shadow.node(id).references.len();
        (count != 0).then(|| (id, at, index % count))
    }

    fn link(&mut self, from: usize, index: usize, to: usize) {
        let Some((id, at, index)) = self.reference_of(from, index) else { return };
        self.shadow.node_mut(id).references[index] = self.shadow.roots[to];
        // SAFETY: a slot leads to the node, which has this reference.
        unsafe { set_reference(at, index, self.roots.slots.get(to)) };
        if self.points.notes_writes() && self.habits.flaw != Some(Flaw::Barrier) {
            let place = at.wrapping_add((2 + index) * WORD);
            self.points.note_write(self.shadow.node(id).class, &mut self.mutator, place);
        }
    }

    fn go_along(&mut self, from: usize, index: usize, slot: usize) {
        let Some((id, at, index)) = self.reference_of(from, index) else { return };
        let to = self.shadow.node(id).references[index];
        // SAFETY: a slot leads to the node, which has this reference.
        self.set_root(slot, to, unsafe { reference(at, index) });
    }

    fn point(&mut self, slot: usize) {
        let Some((id, at)) = self.root(slot) else { return };
        let (word, node) = (self.random.below(WORDS), self.shadow.node(id));
        let (base, size) = (at.addr() - self.points.header(node.class) * WORD, node.size);
        self.shadow.pointed[word] = Some((id, at));
        if self.habits.flaw != Some(Flaw::Nail) {
            self.roots.words[word].set(base + self.random.below(size));
        }
    }

    fn forget_word(&mut self) {
        let word = self.random.below(WORDS);
        self.shadow.pointed[word] = None;
        self.roots.words[word].set(self.random.below(4096));
    }

    fn weaken(&mut self, slot: usize, weak: usize) {
        self.shadow.weak_roots[weak] = self.shadow.roots[slot];
        self.roots.weak.set(weak, self.roots.slots.get(slot));
    }

    fn strengthen(&mut self, slot: usize, weak: usize) {
        self.set_root(slot, self.shadow.weak_roots[weak], self.roots.weak.get(weak));
    }

    fn finalize(&mut self, slot: usize) {
        let Some((id, at)) = self.root(slot).filter(|_| self.habits.is_first) else { return };
        match self.mutator.finalize(NonNull::new(at).unwrap()) {
            Ok(()) => {
                self.registrations += 1;
                self.shadow.registered.push((self.registrations, id));
            }
            Err(error) => assert!(is_shortage(error), "{error}"),
        }
    }

    fn definalize(&mut self, slot: usize) {
        let Some((id, at)) = self.root(slot).filter(|_| self.habits.is_first) else { return };
        let known = self.shadow.registered.iter().position(|&(_, registered)| registered == id);
        assert_eq!(
            self.mutator.definalize(NonNull::new(at).unwrap()),
            known.is_some(),
            "a registration was lost"
        );
        if let Some(known) = known
            && self.habits.flaw != Some(Flaw::Finalization)
        {
            self.shadow.registered.remove(known);
        }
    }

    /// Takes the next object to be finalized, and puts it in a slot or forgets it.
    fn take_message(&mut self, slot: Option<usize>) {
        if !self.habits.is_first {
            return;
        }
        let expected = self.shadow.finalizable.pop_front();
        let found = self.mutator.next_message();
        let Some(id) = expected else {
            return assert_eq!(found, None, "an object was finalized that is not dead");
        };
        let Some(Message::Finalizable(at)) = found else { panic!("an object was not finalized") };
        let node = self.shadow.node(id);
        assert!(node.at().is_null() || node.at() == at.as_ptr(), "another object was finalized");
        // SAFETY: it is kept until this mutator gives way; whether it is what was expected is what is tested.
        assert_eq!(unsafe { name(at.as_ptr()) }, node.name, "another object was finalized");
        self.done.taken += 1;
        if let Some(slot) = slot {
            self.set_root(slot, To::Node(id), at.as_ptr());
        }
    }

    /// Gives way with a reservation held.
    fn hold(&mut self, slot: usize) {
        let class = Class::ALL[self.random.below(5)];
        let (name, first, before) = (self.shadow.next_name(), self.random.below(SLOTS), self.collections);
        let (slots, mutator, how) = (&self.roots.slots, &mut self.mutator, self.random.below(3));
        let word = |index: usize| slots.get((first + index) % SLOTS);
        // What a fill collected meanwhile is not what the reservation is held over.
        let mut at_reserve = before;
        let made = self.points.make(class, name, 2, word, || {
            at_reserve = last_collection(mutator);
            match how {
                0 => drop(mutator.collect(Duration::MAX).unwrap()),
                1 => mutator.poll(),
                _ => mutator.away(thread::yield_now),
            }
        });
        let is_collected = last_collection(&self.mutator) != at_reserve;
        self.notice();
        match made {
            Ok(made) => {
                assert_eq!(
                    made.is_none(),
                    is_collected && !class.is_leaf(),
                    "a {class:?} held over a collection"
                );
                self.done.held += usize::from(is_collected);
                if let Some(at) = made {
                    self.enter(class, name, 2, first, at, slot);
                }
            }
            Err(error) => self.meet_shortage(error),
        }
    }

    /// Remembers where a node is.
    fn hash(&mut self, slot: usize) {
        let Some((id, at)) = self.root(slot) else { return };
        if self.habits.flaw != Some(Flaw::Location) {
            self.hashed.dependency.add(at);
        }
        self.hashed.nodes.push((id, self.shadow.node(id).name, at));
    }

    /// Asks whether addresses still hold, after a collection.
    fn check_hashed(&mut self) {
        let is_stale = self.mutator.is_stale(self.hashed.dependency);
        for &(id, name, at) in &self.hashed.nodes {
            let node = self.shadow.node(id);
            let has_moved = node.name == name && !node.at().is_null() && node.at() != at;
            assert!(is_stale || !has_moved, "an object moved and no dependency on it is stale");
        }
        self.done.stale += usize::from(is_stale && !self.hashed.nodes.is_empty());
        if is_stale || self.hashed.nodes.len() > 8 {
            self.hashed.nodes.clear();
            self.hashed.dependency = self.mutator.reset_dependency();
        }
    }

    fn change_policy(&mut self) {
        if !self.habits.is_first {
            return;
        }
        let heap = self.mutator.heap();
        match self.random.below(4) {
            0 => self.parked = Some(heap.park()),
            1 => self.parked = None,
            _ => {
                let capacity = [0, 1 << 10, 64 << 10, 1 << 20][self.random.below(4)];
                let (mortality, is_patient) = (self.random.below(800) as u32, self.random.once_in(2));
                let patience = if is_patient { Duration::MAX } else { Duration::ZERO };
                heap.set_policy(Policy {
                    generations: [GenerationPolicy { capacity, mortality }; GENERATIONS],
                    patience,
                });
            }
        }
    }

    fn give_way(&mut self) {
        match self.random.below(2) {
            0 => self.mutator.poll(),
            _ => self.mutator.away(thread::yield_now),
        }
        self.notice();
    }

    /// Collects the heap, or some of its generations. If this is its only mutator, compares what is kept.
    fn collect(&mut self) {
        let oldest = if self.random.once_in(2) { GENERATIONS - 1 } else { self.random.below(GENERATIONS) };
        let found = self.mutator.collect_up_to(oldest, Duration::MAX).unwrap();
        self.notice();
        if self.habits.is_alone && is_full(&found) {
            let expected = self.shadow.live().bytes + self.points.room();
            assert_eq!(found.kept, expected, "what is kept is reachable or in a buffer");
            self.done.compared += 1;
        }
        if self.shadow.live().objects > self.habits.most {
            self.forget_most();
        }
    }

    /// Follows collections if there were any since the last that was followed.
    pub(crate) fn notice(&mut self) {
        let Some(last) = self.mutator.heap().last_collection() else { return };
        if last.number == self.collections {
            return;
        }
        let extent = match is_full(&last) {
            true if last.number == self.collections + 1 => Extent::Full,
            true => Extent::FullAtLast,
            false => Extent::Young,
        };
        self.done.young += usize::from(extent == Extent::Young);
        self.collections = last.number;
        self.shadow.follow(&self.roots.slots, &self.roots.weak, extent);
        self.check_hashed();
        if !self.shadow.perhaps_finalizable.is_empty() {
            self.take_all();
        }
    }

    /// Takes all messages, to learn which objects the heap has noticed to be dead. A collection of young generations does
    /// not notice all, and what it puts into the queue keeps others.
    fn take_all(&mut self) {
        while !self.shadow.finalizable.is_empty() {
            self.take_message(None);
        }
        while let Some(Message::Finalizable(at)) = self.mutator.next_message() {
            // SAFETY: it is kept until this mutator gives way.
            let found = unsafe { name(at.as_ptr()) };
            let perhaps = &self.shadow.perhaps_finalizable;
            let known = perhaps.iter().position(|&(_, id)| self.shadow.node(id).name == found);
            self.shadow.perhaps_finalizable.remove(known.expect("an object was finalized that is not dead"));
            self.done.taken += 1;
        }
        let not_noticed = core::mem::take(&mut self.shadow.perhaps_finalizable);
        self.shadow.registered.extend(not_noticed);
        self.shadow.registered.sort_unstable();
    }

    /// Returns what its points have not used.
    pub(crate) fn empty(&mut self) {
        Class::ALL.into_iter().for_each(|class| self.points.empty(class));
    }

    /// Releases all of its roots, and takes back or takes all that is to be finalized.
    pub(crate) fn end(&mut self) {
        self.parked = None;
        (0..SLOTS).for_each(|slot| self.set_root(slot, To::Null, core::ptr::null_mut()));
        for word in 0..WORDS {
            self.shadow.pointed[word] = None;
            self.roots.words[word].set(0);
        }
        self.drain();
        while self.habits.is_first && !self.shadow.registered.is_empty() {
            let before = self.shadow.registered.len();
            self.mutator.collect(Duration::MAX).unwrap();
            self.notice();
            assert!(self.shadow.registered.len() < before, "what is registered and dead was not finalized");
            self.drain();
        }
    }

    fn drain(&mut self) {
        while !self.shadow.finalizable.is_empty() {
            self.take_message(None);
        }
    }
}

fn last_collection<A: Arena, B: BarrierPair>(mutator: &Mutator<'_, A, B>) -> u64 {
    mutator.heap().last_collection().map_or(0, |last| last.number)
}

/// Whether it was of the whole heap.
fn is_full(collection: &Collection) -> bool {
    collection.generations == GENERATIONS
}

/// Whether a request may be refused for this reason.
pub(crate) const fn is_shortage(error: Error) -> bool {
    matches!(
        error,
        Error::Memory
            | Error::Limit
            | Error::CommitLimit
            | Error::Resource
            | Error::ResourceLimit { .. }
            | Error::Frozen
    )
}
