//! What is written of each event ([design/telemetry.md `.record`, `.quick`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::{Addr, Event, EventHook};

use crate::format::EventKind;
use crate::recorder::counters::{Observed, count_empty, count_fill, count_sample, kind_name};
use crate::recorder::heaps::{count_heap, heap_of, numbers_of_step};
use crate::recorder::telemetry::Telemetry;
#[cfg(feature = "std")]
use crate::recorder::thread;
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
            let wholly = Wholly { telemetry: self, arena, event, site, addresses };
            if !write_frequent(arena, event, |buffer| self.number(buffer), &wholly) {
                wholly.write_rest();
            }
        }
    }
}

/// Observes events of no arena: those of the contract, and of the program's global allocator.
impl EventHook for Telemetry {
    fn event(&self, event: Event) {
        self.observe(0, &event, &[]);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        self.observe(0, &event, site);
    }
}

/// Writes an event of one of the frequent kinds, in one of two ways. Returns false if it is of another
/// kind, or cannot be written in this way. `number` returns the number of a buffer.
// Events are matched by reference: their fields are read when they are written.
#[inline(always)]
fn write_frequent(arena: u64, event: &Event, number: impl Fn(Addr) -> u64, way: impl Way) -> bool {
    match event {
        Event::Alloc { pool, object, size, align, type_name } => {
            way.write(EventKind::Alloc, [type_name.unwrap_or("")], |addresses| {
                [arena, u64::from(pool.get()), addresses.of(*object), *size as u64, *align as u64]
            })
        }
        Event::Free { pool, object, size, align } => way.write(EventKind::Free, [], |addresses| {
            [arena, u64::from(pool.get()), addresses.of(*object), *size as u64, *align as u64]
        }),
        Event::Commit { pool, buffer, object, size } => way.write(EventKind::Commit, [], |addresses| {
            let (pool, buffer) = (u64::from(pool.get()), number(*buffer));
            [arena, pool, buffer, addresses.of(*object), *size as u64]
        }),
        Event::Fill { pool, buffer, base, size } => way.write(EventKind::Fill, [], |addresses| {
            let (pool, buffer) = (u64::from(pool.get()), number(*buffer));
            [arena, pool, buffer, addresses.of(*base), *size as u64]
        }),
        Event::Empty { pool, buffer, base, size } => way.write(EventKind::Empty, [], |addresses| {
            let (pool, buffer) = (u64::from(pool.get()), number(*buffer));
            [arena, pool, buffer, addresses.of(*base), *size as u64]
        }),
        _ => false,
    }
}

/// How the addresses of an event are written.
#[derive(Clone, Copy, Debug)]
struct Addresses {
    left_out: bool,
}

impl Addresses {
    /// The address, or zero if addresses are left out.
    #[inline(always)]
    fn of(self, address: Addr) -> u64 {
        if self.left_out { 0 } else { address.get() as u64 }
    }
}

/// A way to write a frequent event.
trait Way {
    /// Writes the event if its kind is on. Returns false if that is not possible in this way; then nothing has
    /// changed.
    fn write<const FIELDS: usize, const TEXTS: usize>(
        self,
        kind: EventKind,
        texts: [&str; TEXTS],
        fields: impl FnOnce(Addresses) -> [u64; FIELDS],
    ) -> bool;
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
    arena: u64,
    event: &'e Event,
    site: &'e [usize],
    addresses: Addresses,
}

impl Way for &Wholly<'_> {
    fn write<const FIELDS: usize, const TEXTS: usize>(
        self,
        kind: EventKind,
        texts: [&str; TEXTS],
        fields: impl FnOnce(Addresses) -> [u64; FIELDS],
    ) -> bool {
        Wholly::write(self, kind, fields(self.addresses), texts);
        true
    }
}

impl Wholly<'_> {
    fn write<const FIELDS: usize, const TEXTS: usize>(
        &self,
        kind: EventKind,
        fields: [u64; FIELDS],
        texts: [&str; TEXTS],
    ) {
        self.telemetry.write(kind, self.addresses.left_out, fields, texts, self.site);
    }

    /// The address, or zero if addresses are left out.
    fn address(&self, address: Addr) -> u64 {
        self.addresses.of(address)
    }

    /// Counts the event, and returns the number of the buffer that it is of.
    fn count_of(&self, buffer: Addr) -> u64 {
        let buffer = self.telemetry.number(buffer);
        self.count(buffer);
        buffer
    }

    fn count(&self, buffer: u64) {
        let (event, arena, without_addresses) = (self.event, self.arena, self.addresses.left_out);
        Observed { event, arena, buffer, without_addresses }
            .count(self.telemetry.image(), || self.telemetry.clock().ticks());
    }

    /// Counts and writes an event that is not frequent.
    fn write_rest(&self) {
        let arena = self.arena;
        match *self.event {
            Event::Reserve { pool, buffer, object, size, unit, type_name } => {
                let (pool, buffer) = (u64::from(pool.get()), self.telemetry.number(buffer));
                let fields = [arena, pool, buffer, self.address(object), size as u64, unit as u64];
                self.write(EventKind::Reserve, fields, [type_name.unwrap_or("")]);
            }
            Event::Sample { .. } => self.write_sample(),
            Event::CreatePoint { .. }
            | Event::DestroyPoint { .. }
            | Event::Trip { .. }
            | Event::Flip { .. }
            | Event::CommitFailed { .. }
            | Event::PushFrame { .. }
            | Event::PopFrame { .. }
            | Event::Abandon { .. } => self.write_of_point(),
            Event::BeginStop { .. }
            | Event::Stop { .. }
            | Event::PostponeStop { .. }
            | Event::EndStop { .. }
            | Event::GiveWay { .. }
            | Event::GoOn { .. }
            | Event::BeginCollection { .. }
            | Event::BeginSweep { .. }
            | Event::EndCollection { .. }
            | Event::BeginStep { .. }
            | Event::EndStep { .. } => self.write_of_heap(),
            _ => self.write_rare(),
        }
    }

    /// A sample: it is added to the sums of its pool, whether its event is written or not.
    #[cold]
    fn write_sample(&self) {
        let Event::Sample { kind, pool, class, object, size, offset, mean, type_name } = *self.event else {
            return;
        };
        let (arena, pool) = (self.arena, pool.map_or(0, |pool| u64::from(pool.get())));
        let (size, offset) = (size as u64, offset as u64);
        if let Some(sample) = Mean::new(mean).and_then(|mean| Sample::new(size, offset, mean)) {
            count_sample(self.telemetry.image(), arena, pool, class.unwrap_or(""), &sample);
        }
        let fields = [arena, pool, self.address(object), size, offset, u64::from(mean)];
        let texts = [kind, class.unwrap_or(""), type_name.unwrap_or("")];
        self.write(EventKind::Sample, fields, texts);
    }

    /// Events of points that are rare.
    #[cold]
    fn write_of_point(&self) {
        let arena = self.arena;
        match *self.event {
            Event::CreatePoint { pool, buffer, kind } => {
                let buffer = self.count_of(buffer);
                let fields = [arena, u64::from(pool.get()), buffer];
                self.write(EventKind::CreatePoint, fields, [kind_name(kind)]);
            }
            Event::DestroyPoint { pool, buffer } => {
                let buffer = self.count_of(buffer);
                self.write(EventKind::DestroyPoint, [arena, u64::from(pool.get()), buffer], []);
            }
            Event::Trip { pool, buffer, requests } => {
                let buffer = self.count_of(buffer);
                self.write(EventKind::Trip, [arena, u64::from(pool.get()), buffer, requests as u64], []);
            }
            Event::Flip { pool, buffer, objects } => {
                let buffer = self.count_of(buffer);
                let (base, size) = (self.address(objects.base()), objects.size() as u64);
                self.write(EventKind::Flip, [arena, u64::from(pool.get()), buffer, base, size], []);
            }
            Event::CommitFailed { pool, buffer, object, size } => {
                let buffer = self.count_of(buffer);
                let fields = [arena, u64::from(pool.get()), buffer, self.address(object), size as u64];
                self.write(EventKind::CommitFailed, fields, []);
            }
            Event::PushFrame { pool, buffer, init } => {
                let buffer = self.count_of(buffer);
                let fields = [arena, u64::from(pool.get()), buffer, self.address(init)];
                self.write(EventKind::PushFrame, fields, []);
            }
            Event::PopFrame { pool, buffer, init, size } => {
                let buffer = self.count_of(buffer);
                let fields = [arena, u64::from(pool.get()), buffer, self.address(init), size as u64];
                self.write(EventKind::PopFrame, fields, []);
            }
            Event::Abandon { pool, buffer, object } => {
                let fields =
                    [arena, u64::from(pool.get()), self.telemetry.number(buffer), self.address(object)];
                self.write(EventKind::Abandon, fields, []);
            }
            _ => {}
        }
    }

    fn count_of_heap(&self) {
        self.count(0);
        let Some(heap) = heap_of(self.event) else { return };
        let heap = self.telemetry.number(heap);
        count_heap(self.telemetry.image(), self.arena, heap, self.event, || self.telemetry.clock().ticks());
    }

    /// Events of heaps.
    #[cold]
    fn write_of_heap(&self) {
        let (arena, number) = (self.arena, |heap| self.telemetry.number(heap));
        self.count_of_heap();
        match *self.event {
            Event::BeginStop { heap, mutator } => {
                self.write(EventKind::BeginStop, [arena, number(heap), u64::from(mutator)], []);
            }
            Event::Stop { heap } => self.write(EventKind::Stop, [arena, number(heap)], []),
            Event::PostponeStop { heap, mutator } => {
                self.write(EventKind::PostponeStop, [arena, number(heap), u64::from(mutator)], []);
            }
            Event::EndStop { heap } => self.write(EventKind::EndStop, [arena, number(heap)], []),
            Event::GiveWay { heap, mutator } => {
                self.write(EventKind::GiveWay, [arena, number(heap), u64::from(mutator)], []);
            }
            Event::GoOn { heap, mutator } => {
                self.write(EventKind::GoOn, [arena, number(heap), u64::from(mutator)], []);
            }
            Event::BeginCollection { heap, reason } => {
                self.write(EventKind::BeginCollection, [arena, number(heap)], [reason]);
            }
            Event::EndCollection { heap, examined, kept, freed } => {
                let fields = [arena, number(heap), examined as u64, kept as u64, freed as u64];
                self.write(EventKind::EndCollection, fields, []);
            }
            Event::BeginSweep { heap, copied } => {
                self.write(EventKind::BeginSweep, [arena, number(heap), copied as u64], []);
            }
            Event::BeginStep { heap } => self.write(EventKind::BeginStep, [arena, number(heap)], []),
            Event::EndStep { heap, examined, collected, time } => {
                let [done, kept, freed, allowed, taken] = numbers_of_step(collected, time);
                let fields = [arena, number(heap), examined as u64, done, kept, freed, allowed, taken];
                self.write(EventKind::EndStep, fields, []);
            }
            _ => {}
        }
    }

    /// Events of arenas and pools, and of the contract.
    #[cold]
    fn write_rare(&self) {
        let arena = self.arena;
        self.count(0);
        match *self.event {
            Event::CreateArena { range } => {
                let fields = [arena, self.address(range.base()), range.size() as u64];
                self.write(EventKind::CreateArena, fields, []);
            }
            Event::DestroyArena { range } => {
                let fields = [arena, self.address(range.base()), range.size() as u64];
                self.write(EventKind::DestroyArena, fields, []);
            }
            Event::CreatePool { pool, class } => {
                self.write(EventKind::CreatePool, [arena, u64::from(pool.get())], [class]);
            }
            Event::DestroyPool { pool, class } => {
                self.write(EventKind::DestroyPool, [arena, u64::from(pool.get())], [class]);
            }
            Event::Extend { pool, base, size } => {
                let fields = [arena, u64::from(pool.get()), self.address(base), size as u64];
                self.write(EventKind::Extend, fields, []);
            }
            Event::Retract { pool, base, size } => {
                let fields = [arena, u64::from(pool.get()), self.address(base), size as u64];
                self.write(EventKind::Retract, fields, []);
            }
            Event::Grow { size } => self.write(EventKind::Grow, [arena, size as u64], []),
            Event::Shrink { size } => self.write(EventKind::Shrink, [arena, size as u64], []),
            Event::GrowthRefused { size } => {
                self.write(EventKind::GrowthRefused, [arena, size as u64], []);
            }
            Event::Phase { from, to } => self.write(EventKind::Phase, [], [from, to]),
            Event::Violation { kind, class, slot, count, bytes, address: at, call } => {
                let fields =
                    [slot as u64, count as u64, bytes as u64, self.address(Addr::new(at)), call as u64];
                self.write(EventKind::Violation, fields, [kind, class]);
            }
            Event::BeginAmnesty { slot, reason } => {
                self.write(EventKind::BeginAmnesty, [slot as u64], [reason]);
            }
            Event::EndAmnesty { slot, reason } => {
                self.write(EventKind::EndAmnesty, [slot as u64], [reason]);
            }
            _ => {}
        }
    }
}
