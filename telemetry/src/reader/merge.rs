//! The events of all rings, by time ([design/telemetry.md `.reader.merge`](crate::design::telemetry)).

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::vec::Vec;

use crate::reader::event::Item;
use crate::reader::ring::RingCursor;

/// Reads all rings of a file.
///
/// Events of one ring are returned in their order. Those of several rings are returned by time, as far as
/// they were written when the reader looked; of the same time, lasting ones come first. A thread reads the clock before it publishes an event, so an
/// event that is a little older may follow after the next look.
#[derive(Debug)]
pub struct Events<'r> {
    /// Those of lasting events, and then the others.
    rings: Vec<RingCursor<'r>>,
    /// The next item of each ring that has one, by time.
    next: Vec<Option<Item>>,
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'r> Events<'r> {
    pub(super) fn new(
        lasting: impl Iterator<Item = RingCursor<'r>>,
        recent: impl Iterator<Item = RingCursor<'r>>,
    ) -> Self {
        let rings: Vec<_> = lasting.chain(recent).collect();
        let next = rings.iter().map(|_| None).collect();
        Self { rings, next, order: BinaryHeap::new() }
    }

    /// The next event or gap; `None` if there is nothing new now. This does not wait.
    pub fn poll(&mut self) -> Option<Item> {
        if self.order.is_empty() {
            // Lasting events are looked at last: if an event is seen, the phase that its thread saw before is seen, too.
            self.rings.iter_mut().rev().for_each(RingCursor::look);
            (0..self.rings.len()).for_each(|ring| self.advance(ring));
        }
        let Reverse((_, ring)) = self.order.pop()?;
        let item = self.next[ring].take();
        self.advance(ring);
        item
    }

    /// The number of blocks, in all rings, of which a part made no sense or could not be read.
    #[must_use]
    pub fn damaged_blocks(&self) -> u64 {
        self.rings.iter().map(RingCursor::damaged_blocks).sum()
    }

    /// Takes the next item of a ring. A gap has no time, so it is returned before all events.
    fn advance(&mut self, ring: usize) {
        let item = self.rings[ring].next_in_look();
        if let Some(item) = &item {
            let ticks = if let Item::Event(event) = item { event.ticks } else { 0 };
            self.order.push(Reverse((ticks, ring)));
        }
        self.next[ring] = item;
    }
}
