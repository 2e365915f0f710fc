//! One collection, from the stop to the sweep.

use core::time::Duration;

use tripoint_core::{Arena, BarrierPair, Event};

use crate::references::member::Tally;
use crate::references::own::Own;
use crate::references::scan::Scan;
use crate::stops::heap::Heap;
use crate::stops::mutator::Mutator;
use crate::stops::postponed::Postponed;
use crate::stops::stopped::Stopped;

/// What a collection did. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// In objects that are kept, and in buffers that are still attached.
    pub kept: usize,
    /// Freed.
    pub freed: usize,
    /// In objects that were searched for references.
    pub examined: usize,
    /// How many references were fixed.
    pub references: usize,
}

impl<'h, A: Arena, B: BarrierPair> Heap<'h, A, B> {
    /// Frees all objects that no root leads to, in all automatic pools of the heap, for a thread that has no
    /// mutator of it, or whose mutator is away. Waits for the stop for at most about `patience`.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Heap::stop`].
    pub fn collect(&'h self, patience: Duration) -> Result<Collection, Postponed> {
        let stopped = self.stop(patience)?;
        Ok(run(&stopped))
    }
}

impl<A: Arena, B: BarrierPair> Mutator<'_, A, B> {
    /// Frees all objects that no root leads to, in all automatic pools of the heap. Waits for the stop for at most about
    /// `patience`. This mutator gives way meanwhile: only roots keep what it refers to.
    ///
    /// # Errors
    /// [`Postponed`], as from [`Mutator::stop`].
    #[track_caller]
    pub fn collect(&mut self, patience: Duration) -> Result<Collection, Postponed> {
        let stopped = self.stop(patience, || ())?;
        Ok(run(&stopped))
    }
}

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Frees all objects that no root leads to, in all automatic pools of the heap. What a
    /// [walk](Stopped::walk_objects) shows afterwards, during the same stop, is live.
    pub fn collect(&self) -> Collection {
        run(self)
    }
}

/// The reason of collections that the program asks for.
const REQUEST: &str = "request";

fn run<A: Arena, B: BarrierPair>(stopped: &Stopped<'_, '_, A, B>) -> Collection {
    let heap = stopped.heap();
    heap.arena().event(Event::BeginCollection { heap: heap.event_address(), reason: REQUEST });
    let (members, roots) = (heap.members().lock(), heap.roots().lock());
    // SAFETY: `stopped` says that the heap is stopped.
    members.for_each(|link| unsafe { link.member().flip() });
    let own = Own::new(heap.arena(), &members);
    let mut scan = Scan::new(&own);
    // SAFETY: the heap is stopped, and roots were registered by a promise.
    roots.for_each(|root| unsafe { root.scan(&mut scan) });
    let mut is_any_grey = true;
    while is_any_grey {
        is_any_grey = false;
        // SAFETY: the heap is stopped, and all of its pools were flipped above.
        members.for_each(|link| is_any_grey |= unsafe { link.member().scan(&mut scan) });
    }
    let mut tally = Tally::default();
    // SAFETY: the heap is stopped, and no pool has grey objects any more: all that is reachable is black.
    members.for_each(|link| tally += unsafe { link.member().sweep() });
    heap.counts().collections.add(1);
    let (Tally { kept, freed }, examined) = (tally, scan.examined());
    heap.arena().event(Event::EndCollection { heap: heap.event_address(), examined, kept, freed });
    Collection { kept, freed, examined, references: scan.references() }
}
