//! Observes events: counts and writes them ([design/telemetry.md `.record`, `.quick`](crate::design::telemetry)). They are
//! declared in `core/src/events/event_table.rs`.

#![forbid(unsafe_code)]

use tripoint_core::internal::AtomicUsize;
use tripoint_core::{Addr, ContractWords, Event, EventHook, Result};

use crate::format::EventKind;
use crate::recorder::counters::{Observed, buffer_of, count_empty, count_fill, count_sample};
use crate::recorder::heaps::{count_heap, heap_of};
use crate::recorder::telemetry::Telemetry;
#[cfg(feature = "std")]
use crate::recorder::thread;
use crate::recorder::values::{Text, Word};
use crate::recorder::written::{self, Addresses, Way};
use crate::ring::thread_rings::Place;
use crate::sample::{Mean, Sample};

impl Telemetry {
    /// Observes an event of an arena; zero for none.
    #[inline(always)]
    pub(super) fn observe(&self, arena: u32, event: &Event, site: &[usize]) {
        let arena = u64::from(arena);
        // The most frequent ones first, in this function itself.
        match event {
            Event::Alloc { type_name: None, .. } if site.is_empty() => self.observe_frequent(arena, event),
            Event::Free { .. } if site.is_empty() => self.observe_frequent(arena, event),
            Event::Commit { .. } if site.is_empty() => self.observe_commit(arena, event),
            _ => self.observe_other(arena, event, site),
        }
    }

    #[inline(never)]
    fn observe_other(&self, arena: u64, event: &Event, site: &[usize]) {
        match event {
            Event::Fill { .. } => self.observe_fill(arena, event, site),
            Event::Empty { .. } => self.observe_empty(arena, event, site),
            _ => self.observe_any(arena, event, site),
        }
    }

    /// Observes a commit. The number of its buffer takes registers, which other events would have to save too.
    #[inline(never)]
    fn observe_commit(&self, arena: u64, event: &Event) {
        if matches!(event, Event::Commit { .. }) {
            self.observe_frequent(arena, event);
        }
    }

    /// Observes an event without a site, of which nothing is counted.
    #[inline(always)]
    fn observe_frequent(&self, arena: u64, event: &Event) {
        if !self.write_quickly(arena, event, |buffer| self.number(buffer)) {
            self.observe_any(arena, event, &[]);
        }
    }

    /// Counts and writes a fill.
    #[inline(never)]
    fn observe_fill(&self, arena: u64, event: &Event, site: &[usize]) {
        let Event::Fill { pool, buffer, size, .. } = *event else { return };
        self.observe_counted(arena, event, site, buffer, |number| {
            count_fill(self.image(), arena, u64::from(pool.get()), number, size as u64);
        });
    }

    /// Counts and writes an emptying.
    #[inline(never)]
    fn observe_empty(&self, arena: u64, event: &Event, site: &[usize]) {
        let Event::Empty { pool, buffer, size, .. } = *event else { return };
        self.observe_counted(arena, event, site, buffer, |number| {
            count_empty(self.image(), arena, u64::from(pool.get()), number, size as u64);
        });
    }

    /// Counts by the number of a buffer, and writes the event.
    #[inline(always)]
    fn observe_counted(
        &self,
        arena: u64,
        event: &Event,
        site: &[usize],
        buffer: Addr,
        count: impl FnOnce(u64),
    ) {
        if self.may_write() {
            let number = self.number(buffer);
            count(number);
            if !site.is_empty() || !self.write_quickly(arena, event, |_| number) {
                self.observe_any(arena, event, site);
            }
        }
    }

    /// Writes a frequent event without a site, or finds that its kind is off. Otherwise this returns false, and
    /// nothing has changed.
    #[inline(always)]
    fn write_quickly(&self, arena: u64, event: &Event, number: impl Fn(Addr) -> u64) -> bool {
        #[cfg(feature = "std")]
        return write_frequent(arena, event, number, Quickly(self));
        #[cfg(not(feature = "std"))]
        {
            let _ = (arena, event, number);
            false
        }
    }

    /// Writes any event, and counts it, except fills and emptyings.
    #[cold]
    #[inline(never)]
    fn observe_any(&self, arena: u64, event: &Event, site: &[usize]) {
        if self.may_write() {
            // Once for each event: the record says whether addresses were left out of all of it.
            let addresses = Addresses { left_out: self.switches().without_addresses() };
            let wholly = Wholly { telemetry: self, place: place_of(event), site, addresses };
            if !write_frequent(arena, event, |buffer| self.number(buffer), &wholly) {
                self.count(arena, event, addresses.left_out);
                written::any(arena, event, |buffer| self.number(buffer), &wholly);
            }
        }
    }

    /// Counts an event that is not frequent.
    #[cold]
    fn count(&self, arena: u64, event: &Event, without_addresses: bool) {
        match *event {
            Event::Reserve { .. } | Event::Abandon { .. } => {}
            Event::Sample { pool, class, size, offset, mean, .. } => {
                let sample = Mean::new(mean).and_then(|mean| Sample::new(size.word(), offset.word(), mean));
                if let Some(sample) = sample {
                    count_sample(self.image(), arena, pool.word(), class.text(), &sample);
                }
            }
            _ => {
                let ticks = || self.clock().ticks();
                let buffer = buffer_of(event).map_or(0, |buffer| self.number(buffer));
                Observed { event, arena, buffer, without_addresses }.count(self.image(), ticks);
                if let Some(heap) = heap_of(event) {
                    count_heap(self.image(), arena, self.number(heap), event, ticks);
                }
            }
        }
    }
}

/// Observes events of no arena: those of the contract, and of the program's global allocator. A contract that it observes
/// counts in its words ([design/telemetry.md `.tallies`](crate::design::telemetry)), and goes on counting there when it is
/// dropped. So if it is [in memory](Telemetry::in_memory), that memory is used for nothing else afterwards.
impl EventHook for Telemetry {
    fn event(&self, event: Event) {
        self.observe(0, &event, &[]);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        self.observe(0, &event, site);
    }

    fn words_for(&self, contract: &ContractWords<'_>) -> Result<Option<&'static [AtomicUsize]>> {
        self.words_of_contract(contract)
    }
}

/// In which ring an event is written. Phases and violations of the contract last; what an amnesty excused may be as
/// frequent as turns, and does not.
fn place_of(event: &Event) -> Place {
    match *event {
        Event::Phase { .. } => Place::Lasting,
        Event::Violation { kind, .. } if Event::is_breach(kind) => Place::Lasting,
        _ => Place::Recent,
    }
}

/// Writes an event of one of the frequent kinds, in one of two ways. Returns false if it is of another
/// kind, or cannot be written in this way. `number` returns the number of a buffer.
#[inline(always)]
fn write_frequent(arena: u64, event: &Event, number: impl Fn(Addr) -> u64, way: impl Way) -> bool {
    match event {
        Event::Alloc { .. } => written::alloc(arena, event, number, way),
        Event::Free { .. } => written::free(arena, event, number, way),
        Event::Commit { .. } => written::commit(arena, event, number, way),
        Event::Fill { .. } => written::fill(arena, event, number, way),
        Event::Empty { .. } => written::empty(arena, event, number, way),
        _ => false,
    }
}

/// Without a call of any function, so that few registers have to be saved.
#[cfg(feature = "std")]
#[derive(Debug)]
struct Quickly<'t>(&'t Telemetry);

#[cfg(feature = "std")]
impl Way for Quickly<'_> {
    #[inline(always)]
    fn write<const FIELDS: usize, const TEXTS: usize>(
        self,
        kind: EventKind,
        texts: [&str; TEXTS],
        fields: impl FnOnce(Addresses) -> [u64; FIELDS],
    ) -> bool {
        let switches = self.0.switches();
        if !switches.is_on(kind) {
            return true;
        }
        if switches.without_addresses() || texts.iter().any(|text| !text.is_empty()) {
            return false;
        }
        thread::write_quickly(|| self.0.quick_file(), kind, TEXTS, || fields(Addresses { left_out: false }))
    }
}

/// With all that it has, in any ring.
#[derive(Debug)]
struct Wholly<'e> {
    telemetry: &'e Telemetry,
    place: Place,
    site: &'e [usize],
    addresses: Addresses,
}

impl Way for &Wholly<'_> {
    #[inline(always)]
    fn write<const FIELDS: usize, const TEXTS: usize>(
        self,
        kind: EventKind,
        texts: [&str; TEXTS],
        fields: impl FnOnce(Addresses) -> [u64; FIELDS],
    ) -> bool {
        let Wholly { telemetry, place, site, addresses } = *self;
        telemetry.write(place, kind, addresses.left_out, fields(addresses), texts, site);
        true
    }
}
