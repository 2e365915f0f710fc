//! A path from a root to an object: why it is kept (design/gc.md `.walk.path`).
//!
//! A search in breadth, whose queue is the table that the caller provides. Which objects were met is kept in their mark
//! bits, which no collection uses meanwhile. Each entry of the queue knows the one from which it was met, so that the
//! path is in the table when the object is found, and is moved to its beginning.

use core::fmt;
use core::ptr;

use tripoint_core::internal::Defer;
use tripoint_core::{Addr, Arena, BarrierPair, aver};

use crate::at_stop::Flipped;
use crate::collect::flip::know_objects;
use crate::heaps::own::Own;
use crate::heaps::stopped::Stopped;
use crate::roots::root::RootId;
use crate::scans::scan::{Scan, Shown};

/// Where a search met an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Nowhere,
    Root(RootId),
    Step(usize),
}

/// An object on a path, or an entry of the table that a search for one uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    base: *const u8,
    from: From,
}

impl Default for PathStep {
    fn default() -> Self {
        Self { base: ptr::null(), from: From::Nowhere }
    }
}

impl PathStep {
    /// The base of the object, for [`Stopped::object_at`].
    #[must_use]
    pub const fn object_base(&self) -> *const u8 {
        self.base
    }
}

/// A path from a root to an object. No other is shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Path<'t> {
    /// The root.
    pub root: RootId,
    /// The objects: the root refers to the first, each refers to the next, and the last is the one that was asked for.
    pub steps: &'t [PathStep],
}

/// Why there is no path.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoPath {
    /// There is no object at that address.
    NoObject,
    /// No root leads to the object by references that keep objects, and finalization does not keep it: the next
    /// collection frees it.
    Unreachable,
    /// No root leads to the object, but it, or an object that leads to it, is registered for finalization, or waits for
    /// the program to take it ([`Mutator::next_message`](crate::Mutator::next_message)). The next collection keeps it.
    Finalizable,
    /// The table is full. As many entries as the heap has objects are always enough.
    Full,
}

impl fmt::Display for NoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoObject => "no object is at that address: pass an address in an object",
            Self::Unreachable => "no root leads to the object: the next collection frees it",
            Self::Finalizable => {
                "no root leads to the object, but finalization keeps it: take it from the queue of messages when it is there"
            }
            Self::Full => "the table is full: pass one entry for each object of the heap",
        })
    }
}

tripoint_core::debug_as_text!(NoPath: NoObject, Unreachable, Finalizable, Full);

impl core::error::Error for NoPath {}

/// A search, and its queue.
struct Search<'a, 't, A> {
    flipped: Flipped<'a>,
    own: &'a Own<'a, A>,
    table: &'t mut [PathStep],
    met: usize,
    target: Addr,
    found: Option<usize>,
    is_full: bool,
}

impl<A: Arena> Search<'_, '_, A> {
    /// Meets what a reference leads to.
    fn meet(&mut self, shown: &Shown<'_>, from: From) {
        if self.found.is_some() {
            return;
        }
        let Some((_, segment, base)) = self.own.referent(shown) else { return };
        if !segment.see(base) {
            return;
        }
        let Some(entry) = self.table.get_mut(self.met) else {
            self.is_full = true;
            return;
        };
        *entry = PathStep { base: segment.pointer(base).as_ptr(), from };
        if base == self.target {
            self.found = Some(self.met);
        }
        self.met += 1;
    }

    /// Meets what the entries from `first` on lead to, until the object is found. Returns the number of entries.
    fn follow_all(&mut self, first: usize) -> usize {
        let mut next = first;
        while self.found.is_none() && next < self.met {
            self.follow(next);
            next += 1;
        }
        next
    }

    /// Meets what the object of an entry refers to.
    fn follow(&mut self, step: usize) {
        let base = Addr::of(self.table[step].base);
        let found = self.own.find(base);
        aver!(found.is_some(), "the object at {base} is in no segment any more");
        let Some((link, segment)) = found else { return };
        // SAFETY: the segment is of that pool, and an object begins there: `meet` found it.
        let object = unsafe { link.member().object(segment, base) };
        let at = self.flipped.at_stop();
        let mut show = |shown: Shown<'_>| self.meet(&shown, From::Step(step));
        // SAFETY: the object is of this pool.
        unsafe { link.member().scan_object(object, &mut Scan::show(at, &mut show)) };
    }
}

/// Moves the path that ends at entry `last` to the beginning of the table. Returns its root and its length.
fn gather(table: &mut [PathStep], last: usize) -> Option<(RootId, usize)> {
    // Turns the links around: each entry then knows the next one of the path.
    let (mut next, mut at) = (From::Nowhere, last);
    let root = loop {
        match core::mem::replace(&mut table[at].from, next) {
            From::Step(before) => (next, at) = (From::Step(at), before),
            From::Root(root) => break root,
            From::Nowhere => return None,
        }
    };
    // An object is met before what is met from it, so no entry is overwritten before it is moved.
    for length in 1.. {
        let step = table[at];
        table[length - 1] = PathStep { from: From::Nowhere, ..step };
        match step.from {
            From::Step(after) => at = after,
            _ => return Some((root, length)),
        }
    }
    None
}

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Finds a shortest path from a root to the object that has the byte at `addr`: the reason why it is kept.
    ///
    /// The search uses an entry of `table` for each object that it meets. The steps of the path are then at the
    /// beginning of the table. It takes time in proportion to the objects that it meets and their references.
    ///
    /// # Errors
    /// [`NoPath`], which says what to do.
    pub fn path_to<'t>(&self, addr: *const u8, table: &'t mut [PathStep]) -> Result<Path<'t>, NoPath> {
        let members = self.heap().members().lock();
        let at = self.at_stop();
        let flipped = know_objects(at, self.heap(), &members);
        let own = Own::new(self.heap().arena(), &members);
        let object = own.object_at(flipped, Addr::of(addr)).ok_or(NoPath::NoObject)?;
        // Also if a format panics: a mark that stays would keep an object from being scanned.
        let forget = Defer::new(|| {
            // SAFETY: no collection begins before this function returns, which has locked the pools.
            members.for_each(|link| unsafe { link.member().forget_seen(at) });
        });
        let target = object.block.range().base();
        let mut search = Search { flipped, own: &own, table, met: 0, target, found: None, is_full: false };
        self.heap().roots().lock().for_each(|root| {
            let mut show = |shown: Shown<'_>| search.meet(&shown, From::Root(root.id()));
            root.scan(&mut Scan::show(at, &mut show));
        });
        let reached = search.follow_all(0);
        let is_finalizable = search.found.is_none() && !search.is_full && {
            let show = |object: *mut u8| {
                let mut object = object;
                search.meet(&Shown::Exact(&mut object), From::Nowhere);
            };
            self.heap().mailbox().lock().show_objects(show);
            search.follow_all(reached);
            search.found.is_some()
        };
        let Search { table, found, is_full, .. } = search;
        drop(forget);
        let last = match found {
            Some(_) if is_finalizable => return Err(NoPath::Finalizable),
            Some(last) => last,
            None if is_full => return Err(NoPath::Full),
            None => return Err(NoPath::Unreachable),
        };
        let (root, length) = gather(table, last).ok_or(NoPath::Unreachable)?;
        Ok(Path { root, steps: &table[..length] })
    }
}
