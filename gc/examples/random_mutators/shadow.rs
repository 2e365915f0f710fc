//! The shadow graph: what a mutator made, and what is reachable of it.
//!
//! It knows no addresses between two collections but those that were read from roots and objects. After a collection it
//! follows the references of the heap and its own side by side: each reachable node has to be what it was.

use std::collections::VecDeque;

use crate::common::{Slots, WORD, name, reference};
use crate::nodes::{Class, outside};

/// The exact slots of a mutator, and as many weak ones.
pub(crate) const SLOTS: usize = 16;
/// Its ambiguous words.
pub(crate) const WORDS: usize = 4;

pub(crate) type Id = u32;

/// What a reference leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum To {
    #[default]
    Null,
    Node(Id),
    /// Memory that is not the heap's.
    Outside,
}

impl To {
    fn node(self) -> Option<Id> {
        if let Self::Node(id) = self { Some(id) } else { None }
    }
}

/// What is known of a node.
#[derive(Debug)]
pub(crate) struct Node {
    /// Not used twice; zero while this entry is free.
    pub(crate) name: usize,
    pub(crate) class: Class,
    pub(crate) size: usize,
    pub(crate) references: Vec<To>,
    /// Where it was when it was last read; null if it may have moved since.
    at: *mut u8,
    /// When it was last reached.
    reached: u64,
}

/// What is known of the collections since the shadow followed the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// There was one, of all generations.
    Full,
    /// There were several, the last of which was of all generations.
    FullAtLast,
    /// The last was of young generations.
    Young,
}

/// What is reachable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Live {
    pub(crate) objects: usize,
    pub(crate) bytes: usize,
}

/// How often something happened that the oracle is there for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) read: usize,
    pub(crate) moved: usize,
    pub(crate) nailed: usize,
    pub(crate) freed: usize,
    pub(crate) cleared: usize,
    pub(crate) finalizable: usize,
}

/// The shadow of all nodes of one mutator.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    nodes: Vec<Node>,
    free: Vec<Id>,
    names: usize,
    time: u64,
    live: Live,
    /// References that were reached, and what the heap has in their places.
    grey: Vec<(To, *mut u8)>,
    /// Nodes that were reached over an object whose address is not known.
    unread: Vec<Id>,
    /// Nodes with weak references that were reached.
    weak_nodes: Vec<Id>,
    pub(crate) roots: [To; SLOTS],
    pub(crate) weak_roots: [To; SLOTS],
    /// What ambiguous words point into, and where that is.
    pub(crate) pointed: [Option<(Id, *mut u8)>; WORDS],
    /// What is registered for finalization, with the number of the registration, in their order.
    pub(crate) registered: Vec<(usize, Id)>,
    pub(crate) finalizable: VecDeque<Id>,
    /// What is registered and dead, if it is not known whether the heap has noticed that.
    pub(crate) perhaps_finalizable: Vec<(usize, Id)>,
    /// Nodes to which a weak reference was cleared.
    cleared: Vec<Id>,
    pub(crate) seen: Seen,
}

impl Shadow {
    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub(crate) fn node_mut(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// The nodes that were made and not freed.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    pub(crate) const fn live(&self) -> Live {
        self.live
    }

    pub(crate) fn next_name(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    /// Enters a node that was just made.
    pub(crate) fn enter(&mut self, class: Class, name: usize, size: usize, at: *mut u8) -> Id {
        let id = self.free.pop().unwrap_or_else(|| {
            let fresh = Node { name: 0, class, size: 0, references: Vec::new(), at, reached: 0 };
            self.nodes.push(fresh);
            (self.nodes.len() - 1) as Id
        });
        let node = self.node_mut(id);
        (node.name, node.class, node.size, node.at, node.reached) = (name, class, size, at, 0);
        id
    }

    /// Does to the shadow what collections did to the heap since the last call, and compares. `extent` is what is known
    /// of them.
    pub(crate) fn follow(&mut self, slots: &Slots<SLOTS>, weak_slots: &Slots<SLOTS>, extent: Extent) {
        self.time += 1;
        self.live = Live::default();
        self.weak_nodes.clear();
        for (id, at) in self.pointed.into_iter().flatten() {
            self.grey.push((To::Node(id), at));
            self.seen.nailed += usize::from(self.node(id).class.moves());
        }
        self.read_grey();
        self.grey.extend((0..SLOTS).map(|slot| (self.roots[slot], slots.get(slot))));
        self.read_grey();
        for index in 0..self.finalizable.len() {
            self.reach(self.finalizable[index]);
        }
        self.find_dead(extent);
        for slot in 0..SLOTS {
            self.weak_roots[slot] = self.weaken(self.weak_roots[slot], weak_slots.get(slot), extent);
        }
        let mut next = 0;
        while let Some(&id) = self.weak_nodes.get(next) {
            next += 1;
            // No node with weak references moves.
            let (at, count) = (self.node(id).at, self.node(id).references.len());
            for index in 0..count {
                // SAFETY: the node was reached and does not move, so it is there, and has that many references.
                let found = unsafe { reference(at, index) };
                let now = self.weaken(self.node(id).references[index], found, extent);
                self.node_mut(id).references[index] = now;
            }
        }
        for id in core::mem::take(&mut self.cleared) {
            assert!(!self.is_reached(id), "a weak reference to a node that is kept was cleared");
        }
        self.bury();
    }

    /// What is registered is kept, and is to be finalized if nothing else leads to it. A collection of young generations
    /// need not notice that.
    fn find_dead(&mut self, extent: Extent) {
        let registered = core::mem::take(&mut self.registered);
        let (alive, dead): (Vec<_>, Vec<_>) =
            registered.into_iter().partition(|&(_, id)| self.is_reached(id));
        self.registered = alive;
        for (number, id) in dead {
            self.reach(id);
            if extent == Extent::Full {
                self.finalizable.push_back(id);
            } else {
                self.perhaps_finalizable.push((number, id));
            }
            self.seen.finalizable += 1;
        }
    }

    /// What a weak reference leads to after a collection, which has put `found` in its place.
    fn weaken(&mut self, to: To, found: *mut u8, extent: Extent) -> To {
        if let To::Node(id) = to
            && found.is_null()
        {
            self.cleared.push(id);
            self.seen.cleared += 1;
            return To::Null;
        }
        if let To::Node(id) = to
            && extent != Extent::Young
        {
            assert!(self.is_reached(id), "a weak reference leads to a node that is dead");
        }
        // A node that is dead and in an older generation is as it was, and so is all that it leads to.
        self.grey.push((to, found));
        self.read_grey();
        to
    }

    fn is_reached(&self, id: Id) -> bool {
        self.node(id).reached == self.time
    }

    /// Notes that a node is kept, by something that does not show where it is.
    fn reach(&mut self, id: Id) {
        self.unread.push(id);
        while let Some(id) = self.unread.pop() {
            let node = &self.nodes[id as usize];
            if self.is_reached(id) {
                continue;
            }
            if !node.class.moves() {
                self.grey.push((To::Node(id), node.at));
                self.read_grey();
                continue;
            }
            self.count_reached(id);
            self.nodes[id as usize].at = core::ptr::null_mut();
            let references = self.nodes[id as usize].references.iter();
            self.unread.extend(references.filter_map(|to| to.node()));
        }
    }

    fn count_reached(&mut self, id: Id) {
        let node = &mut self.nodes[id as usize];
        node.reached = self.time;
        self.live.objects += 1;
        self.live.bytes += node.size;
        if node.class.is_weak() {
            self.weak_nodes.push(id);
        }
    }

    /// Compares the grey references with the heap, and all that they lead to.
    fn read_grey(&mut self) {
        while let Some((to, at)) = self.grey.pop() {
            let id = match to {
                To::Node(id) => id,
                To::Null => {
                    assert!(at.is_null(), "a reference was changed");
                    continue;
                }
                To::Outside => {
                    assert_eq!(at, outside(), "a reference to other memory was changed");
                    continue;
                }
            };
            assert!(!at.is_null() && at != outside(), "a reference was changed");
            let is_known = self.is_reached(id);
            let node = &self.nodes[id as usize];
            if is_known && !node.at.is_null() {
                assert_eq!(node.at, at, "two references to a node lead to different places");
                continue;
            }
            if !is_known && !node.at.is_null() && node.at != at {
                assert!(node.class.moves(), "a node was moved");
                self.seen.moved += 1;
            }
            // SAFETY: the node is reachable, so it was kept; whether it was is what is tested.
            assert_eq!(unsafe { name(at) }, node.name, "a node was lost");
            self.seen.read += 1;
            if !is_known {
                self.count_reached(id);
            }
            let node = &mut self.nodes[id as usize];
            node.at = at;
            if node.class.is_weak() {
                continue;
            }
            for (index, &to) in node.references.iter().enumerate() {
                // SAFETY: the node is there, and has that many references.
                self.grey.push((to, unsafe { reference(at, index) }));
            }
        }
    }

    /// Forgets what was not reached.
    fn bury(&mut self) {
        for (id, node) in self.nodes.iter_mut().enumerate() {
            if node.name != 0 && node.reached != self.time {
                node.name = 0;
                node.references.clear();
                self.free.push(id as Id);
                self.seen.freed += 1;
            }
        }
    }
}

impl Node {
    /// Where it is; null if that is not known.
    pub(crate) const fn at(&self) -> *mut u8 {
        self.at
    }

    /// The bytes of a node with that many words behind its name.
    pub(crate) const fn size_of(header: usize, words: usize) -> usize {
        (header + 2 + words) * WORD
    }
}
