//! A queue at a counter, simulated event by event: a heap of boxed events.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use tripoint_adaptors::PoolAllocator;
use tripoint_core::{ManualPool, PoolBox};

use super::{Numbers, PoolVec};

const CUSTOMERS: u64 = if cfg!(miri) { 16 } else { 600 };

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time: u64,
    customer: u64,
    is_arrival: bool,
}

/// The events that are to come, soonest first.
trait Agenda {
    fn add(&mut self, event: Event);
    fn next(&mut self) -> Option<Event>;
}

impl Agenda for BinaryHeap<Reverse<Event>> {
    fn add(&mut self, event: Event) {
        self.push(Reverse(event));
    }

    fn next(&mut self) -> Option<Event> {
        self.pop().map(|Reverse(event)| event)
    }
}

/// A binary heap of boxes.
struct PoolHeap<'p, P: ManualPool> {
    events: PoolVec<'p, PoolBox<'p, Event, P>, P>,
    pool: &'p P,
}

impl<P: ManualPool> Agenda for PoolHeap<'_, P> {
    fn add(&mut self, event: Event) {
        let mut at = self.events.len();
        self.events.push(PoolBox::new_in(event, self.pool).unwrap());
        while at > 0 && *self.events[at] < *self.events[(at - 1) / 2] {
            self.events.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn next(&mut self) -> Option<Event> {
        let last = self.events.len().checked_sub(1)?;
        self.events.swap(0, last);
        let next = self.events.pop().map(PoolBox::into_inner);
        let mut at = 0;
        while let Some(child) = (2 * at + 1..(2 * at + 3).min(last)).min_by_key(|&child| *self.events[child])
            && *self.events[child] < *self.events[at]
        {
            self.events.swap(at, child);
            at = child;
        }
        next
    }
}

/// Returns the time at which each customer left.
fn simulate(agenda: &mut impl Agenda) -> Vec<(u64, u64)> {
    let mut numbers = Numbers::new(6);
    for customer in 0..CUSTOMERS {
        agenda.add(Event { time: numbers.below(5000), customer, is_arrival: true });
    }
    let (mut free_from, mut left) = (0, Vec::new());
    while let Some(Event { time, customer, is_arrival }) = agenda.next() {
        if is_arrival {
            free_from = time.max(free_from) + 1 + numbers.below(12);
            agenda.add(Event { time: free_from, customer, is_arrival: false });
        } else {
            left.push((time, customer));
        }
    }
    left
}

pub(crate) fn run<P: ManualPool>(pool: &P) {
    let mut heap = PoolHeap { events: PoolVec::new_in(PoolAllocator::new(pool)), pool };
    let left = simulate(&mut heap);
    assert_eq!(left.len() as u64, CUSTOMERS);
    assert!(left.is_sorted());
    assert_eq!(left, simulate(&mut BinaryHeap::new()));
}
