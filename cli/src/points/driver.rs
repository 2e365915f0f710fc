//! Makes the calls of a log one after another, and compares what they do with what the log says
//! ([design/point-log.md `.replay`](tripoint_telemetry::design::point_log)).

use core::alloc::Layout;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;

use rustc_hash::FxHashSet;
use tripoint::events::Event;
use tripoint::{Addr, Arena, BufferKind};
use tripoint_telemetry::format::EventKind;
use tripoint_telemetry::reader::{Fields, RecordedEvent};
use tripoint_telemetry::{LogError, LogReader};

use super::account::{Account, Bytes};
use super::classes::{self, OtherClass};
use super::fates::Fates;
use super::heap_account::HeapAccount;
use super::heap_pool;
use super::hook::Hook;
use super::objects::Impossible;
use super::packet_call::{PacketCall, Unit};
use super::pool::{Call, Pool};
use super::seen::{Seen, Whose};
use super::state::{PointState, PoolState, State};
use super::verdict::{Divergence, Otherwise, Verdict};

/// The most trips that the replay requests before one call.
const TRIPS_MAX: u64 = 1 << 20;

/// The most events of one call, which are kept until the call is found.
const EVENTS_MAX: usize = 1 << 20;

const SECOND_ARENA: Impossible = Impossible("a second arena is not replayed: log each arena by itself");
const NO_POOL: Impossible = Impossible("there is no such pool, which the log should have from its beginning");

/// Why a replay ends before the log does.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The log cannot be read.
    Log(LogError),
    /// An event is one that no log has, or that is not replayed.
    Impossible {
        event: u64,
        why: Impossible,
    },
    Diverged(Box<Divergence>),
}

impl From<LogError> for Stopped {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

/// An event of the log, and what is compared of it; nothing of trips.
#[derive(Debug)]
struct Logged {
    event: RecordedEvent,
    seen: Option<Seen>,
}

/// How far a replay goes, and on what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    /// The number of the last event.
    pub(crate) until: u64,
    /// Another class for all manual pools.
    pub(crate) other: Option<OtherClass>,
}

/// A replay.
pub(super) struct Driver<'a, A: Arena, R> {
    arena: &'a A,
    hook: &'static Hook,
    log: LogReader<R>,
    fates: &'a Fates,
    aim: Aim,
    /// The arena in the log.
    whose: Whose,
    pools: BTreeMap<u64, Box<dyn Pool + 'a>>,
    /// Events of the log up to the next call.
    ahead: VecDeque<Logged>,
    /// Those before it that belong to later calls of other threads.
    later: VecDeque<Logged>,
    account: Account,
    threads: FxHashSet<u32>,
    calls: u64,
    replayed: u64,
    /// Events of the log that are not replayed ([`Whose::passes_over`]).
    passed_over: u64,
    heaps: HeapAccount,
    kinds: BTreeMap<&'static str, [u64; 2]>,
    otherwise: Otherwise,
}

impl<'a, A: Arena, R: Read> Driver<'a, A, R> {
    /// A replay in an arena that was just created, as the log's was.
    pub(super) fn new(
        arena: &'a A,
        hook: &'static Hook,
        log: LogReader<R>,
        fates: &'a Fates,
        aim: Aim,
        created: RecordedEvent,
    ) -> Self {
        let (base, is_of_system) = match &created.fields {
            Fields::CreateArena { base, class, .. } => (*base, class.as_str() == Some("ArenaVm")),
            _ => (0, false),
        };
        let mut driver = Self {
            arena,
            hook,
            log,
            fates,
            aim,
            whose: Whose { base, is_of_system, has_heap: fates.has_heap },
            pools: BTreeMap::new(),
            ahead: VecDeque::new(),
            later: VecDeque::new(),
            account: Account::default(),
            threads: FxHashSet::default(),
            calls: 0,
            replayed: 0,
            passed_over: 0,
            heaps: HeapAccount::default(),
            kinds: BTreeMap::new(),
            otherwise: Otherwise::default(),
        };
        driver.push(created);
        driver
    }

    /// Makes all calls, up to the one that destroys the arena. Then [`Driver::verdict`] says what came of it.
    pub(super) fn run(&mut self) -> Result<(), Stopped> {
        let created = self.next_call()?;
        created.map_or(Ok(()), |created| self.compare(&created))?;
        while let Some(call) = self.next_call()? {
            let first = self.ahead.front().map_or(call.serial, |logged| logged.event.serial);
            if first > self.aim.until {
                break;
            }
            if let Fields::DestroyArena { .. } = call.fields {
                // The replay's arena is dropped after what there is was shown, and says the same.
                self.hook.push(Event::DestroyArena { range: self.arena.range() });
                self.compare(&call)?;
                match self.next_call()? {
                    None => break,
                    Some(call) => {
                        return Err(Stopped::Impossible { event: call.serial, why: SECOND_ARENA });
                    }
                }
            }
            if let Fields::DestroyPool { pool, .. } = call.fields {
                self.check_pool(pool)?;
            }
            self.make(&call).map_err(|why| Stopped::Impossible { event: call.serial, why })?;
            self.compare(&call)?;
            self.calls += 1;
        }
        self.check_counters()
    }

    fn push(&mut self, event: RecordedEvent) {
        let seen = Seen::of(&event.fields, self.whose);
        self.ahead.push_back(Logged { event, seen });
    }

    /// The next event of the log that is not passed over.
    fn next_replayed(&mut self) -> Result<Option<RecordedEvent>, Stopped> {
        while let Some(event) = self.log.next_event()? {
            if !self.is_passed_over(&event.fields) {
                return Ok(Some(event));
            }
            self.passed_over += 1;
            let impossible = |why| Stopped::Impossible { event: event.serial, why };
            self.heaps.see(&event).map_err(impossible)?;
            self.compare_flip(&event)?;
        }
        Ok(None)
    }

    /// Compares the objects that a flip saw with those that the point has in the replay.
    fn compare_flip(&self, event: &RecordedEvent) -> Result<(), Stopped> {
        let Fields::Flip { pool, buffer, base, size, .. } = event.fields else { return Ok(()) };
        let impossible = |why| Stopped::Impossible { event: event.serial, why };
        let pool = self.pools.get(&pool).ok_or(NO_POOL).map_err(impossible)?;
        let from = base.wrapping_sub(self.whose.base);
        let seen = (from, from.wrapping_add(size));
        let arena = self.arena.range().base();
        let mut found = None;
        pool.whole().look(&mut |logged, now, _, _| {
            if let Some(now) = now.filter(|_| logged == buffer) {
                let at = |addr: Addr| addr.get().wrapping_sub(arena.get()) as u64;
                found = Some((at(now.base), at(now.init)));
            }
        });
        if found == Some(seen) {
            return Ok(());
        }
        let text = |(from, to): (u64, u64)| format!("objects from +{from:#x} to +{to:#x}");
        Err(Stopped::Diverged(Box::new(Divergence {
            event: event.serial,
            call: "a flip by the heap".into(),
            call_event: event.serial,
            logged: text(seen),
            replayed: found.map_or_else(|| "no such point with memory".into(), text),
        })))
    }

    fn is_passed_over(&self, fields: &Fields) -> bool {
        fields.kind().is_some_and(|kind| self.whose.passes_over(kind))
    }

    /// Reads one event of the log. Returns whether there was one.
    fn read(&mut self) -> Result<bool, Stopped> {
        let Some(event) = self.next_replayed()? else { return Ok(false) };
        if self.ahead.len() == EVENTS_MAX {
            let why = Impossible("more events of one call came before it than are replayed");
            return Err(Stopped::Impossible { event: event.serial, why });
        }
        let is_replayed =
            Seen::of(&event.fields, self.whose).is_some() || matches!(event.fields, Fields::Trip { .. });
        if !is_replayed {
            let why = Impossible("events of this kind are not replayed");
            return Err(Stopped::Impossible { event: event.serial, why });
        }
        self.push(event);
        Ok(true)
    }

    /// Reads up to the next event that is a call. None at the end of the log.
    fn next_call(&mut self) -> Result<Option<RecordedEvent>, Stopped> {
        self.ahead.append(&mut self.later);
        loop {
            if let Some(call) = self.ahead.back().filter(|last| last.seen.is_some_and(Seen::is_call)) {
                let call = call.event;
                self.put_off_others(call.thread);
                return Ok(Some(call));
            }
            if !self.read()? {
                break;
            }
        }
        match self.ahead.front() {
            None => Ok(None),
            Some(first) => Err(self.diverged(&first.event, Some(first), "no call")),
        }
    }

    /// Keeps the events of other threads for their calls: fills of a heap are between two calls
    /// (design/point-log.md `.order.stops`).
    fn put_off_others(&mut self, thread: u32) {
        if self.whose.has_heap {
            let ahead = core::mem::take(&mut self.ahead).into_iter();
            (self.ahead, self.later) = ahead.partition(|logged| logged.event.thread == thread);
        }
    }

    /// Makes a call, after the trips that it observed, and what the log decides for pools of a heap.
    fn make(&mut self, call: &RecordedEvent) -> Result<(), Impossible> {
        self.decide_way(call);
        let mut trips = 0_u64;
        for Logged { event, .. } in &self.ahead {
            let found = |pool| self.pools.get(pool).ok_or(NO_POOL);
            let prepared = match &event.fields {
                Fields::Trip { pool, buffer, requests, .. } => {
                    trips = trips.saturating_add(*requests);
                    if trips > TRIPS_MAX {
                        return Err(Impossible("more trips than are replayed were requested before it"));
                    }
                    found(pool).and_then(|pool| pool.whole().trip(*buffer, *requests))
                }
                Fields::Fill { pool, base, size, .. } => {
                    found(pool).and_then(|pool| pool.decide_fill(base.wrapping_sub(self.whose.base), *size))
                }
                Fields::RefuseReserve { pool, error, .. } => {
                    found(pool).map(|pool| pool.decide_refusal(error.as_str().unwrap_or_default()))
                }
                Fields::PacketUnit { pool, unit, start, length, .. } => {
                    let [number, start, length] = [unit, start, length].map(|&word| word as u32);
                    found(pool).and_then(|pool| pool.pass_unit(Unit { number, start, length }))
                }
                _ => Ok(()),
            };
            self.otherwise.leave_out_if(self.aim.other, prepared)?;
        }
        match call.fields {
            Fields::CreatePool { pool, option_1, option_2, option_3, option_4, option_5, class, .. } => {
                let options = [option_1, option_2, option_3, option_4, option_5];
                let class = class.as_str().unwrap_or_default();
                // If it is refused, the event of the log is missing.
                if let Ok(made) = classes::make(self.arena, self.hook, class, options, self.aim.other)? {
                    self.pools.insert(pool, made);
                    self.otherwise.pools += u64::from(classes::is_manual(class));
                }
                Ok(())
            }
            Fields::DestroyPool { pool, .. } => {
                let removed = self.pools.remove(&pool).map(drop).ok_or(NO_POOL);
                self.otherwise.leave_out_if(self.aim.other, removed)
            }
            _ => {
                let (pool, buffer, call) = self.call_of(call)?;
                let pool = self.pools.get_mut(&pool).ok_or(NO_POOL);
                let made = pool.and_then(|pool| pool.call(buffer, call));
                self.otherwise.leave_out_if(self.aim.other, made)
            }
        }
    }

    /// Has the point of a reserve empty its buffer first, if it did so in the log: it gave way to its heap, or it had no room.
    fn decide_way(&self, call: &RecordedEvent) {
        if let Fields::Reserve { pool, buffer, .. } | Fields::RefuseReserve { pool, buffer, .. } = call.fields
        {
            let empties = |logged: &Logged| matches!(logged.event.fields, Fields::Empty { buffer: of, .. } if of == buffer);
            let gives_way = self.ahead.iter().any(empties);
            self.pools.get(&pool).into_iter().for_each(|pool| pool.decide_way(gives_way));
        }
    }

    /// The pool, the buffer and the call of an event; zero for no buffer.
    fn call_of(
        &self,
        RecordedEvent { serial, fields, .. }: &RecordedEvent,
    ) -> Result<(u64, u64, Call), Impossible> {
        Ok(match *fields {
            Fields::CreatePoint { pool, buffer, kind, .. } => {
                let is_internal = kind.as_str() == Some("internal");
                let kind = if is_internal { BufferKind::Internal } else { BufferKind::Mutator };
                (pool, buffer, Call::CreatePoint(kind))
            }
            Fields::DestroyPoint { pool, buffer, .. } => (pool, buffer, Call::DestroyPoint),
            Fields::Reserve { pool, buffer, object, size, unit, requested, align, .. } => {
                let (layout, committed) = (layout(requested, align)?, self.fates.committed(*serial, size));
                let (size, unit) = (size as usize, unit as usize);
                (pool, buffer, Call::Reserve { layout, object, size, unit, committed })
            }
            Fields::RefuseReserve { pool, buffer, requested, align, .. } => {
                let layout = layout(requested, align)?;
                (pool, buffer, Call::Reserve { layout, object: 0, size: 0, unit: 0, committed: 0 })
            }
            Fields::EmptyPoint { pool, buffer, .. } => (pool, buffer, Call::Empty),
            Fields::PushFrame { pool, buffer, init, .. } => (pool, buffer, Call::Push { init }),
            Fields::PopFrame { pool, buffer, init, size, .. } => (pool, buffer, Call::Pop { init, size }),
            Fields::FreeAtPoint { pool, buffer, object, size, align, .. } => {
                (pool, buffer, Call::FreeAtPoint { object, layout: layout(size, align)? })
            }
            Fields::Alloc { pool, object, size, align, .. } => {
                (pool, 0, Call::Alloc { layout: layout(size, align)?, object: Some(object) })
            }
            Fields::RefuseAlloc { pool, size, align, .. } => {
                (pool, 0, Call::Alloc { layout: layout(size, align)?, object: None })
            }
            Fields::Free { pool, object, size, align, .. } => {
                (pool, 0, Call::Free { object, layout: layout(size, align)? })
            }
            Fields::Resize { pool, object, size, align, new_size, new_align, resized, .. } => {
                let (from, to) = (layout(size, align)?, layout(new_size, new_align)?);
                (pool, 0, Call::Resize { object, from, to, resized: (resized != 0).then_some(resized) })
            }
            Fields::PacketCall {
                pool, cache, packet_ring: ring, asked, length, trips, call, error, ..
            } => {
                let call = PacketCall { name: call, ring, asked, length, trips, error };
                (pool, cache, Call::Packet(call))
            }
            _ => return Err(SECOND_ARENA),
        })
    }

    /// Compares all that a call did with the log.
    fn compare(&mut self, call: &RecordedEvent) -> Result<(), Stopped> {
        self.threads.insert(call.thread);
        let mut events = Vec::new();
        self.hook.take(&mut events);
        if self.aim.other.is_some() {
            self.count(&events);
            return Ok(());
        }
        let whose = Whose { base: self.arena.range().base().get() as u64, ..self.whose };
        let (mut logged_trips, mut trips) = (0, 0);
        for event in events {
            let replayed = RecordedEvent::of(&event).fields;
            if let Fields::Trip { requests, .. } = replayed {
                trips += requests;
                continue;
            }
            if self.is_passed_over(&replayed) {
                continue;
            }
            let seen = Seen::of(&replayed, whose);
            let logged = self.next_logged(&mut logged_trips)?;
            let is_same = logged.as_ref().is_some_and(|it| it.seen == seen && it.event.thread == call.thread);
            if !is_same {
                let replayed = seen.map(|seen| seen.to_string()).unwrap_or_default();
                return Err(self.diverged(call, logged.as_ref(), &replayed));
            }
        }
        if let Some(first) = self.ahead.pop_front() {
            return Err(self.diverged(call, Some(&first), "nothing"));
        }
        if logged_trips != trips {
            return Err(self.differs(call, &format!("{logged_trips} trips"), &format!("{trips} trips")));
        }
        Ok(())
    }

    /// The next event of the log that is no trip. Trips before it are added to `trips`.
    fn next_logged(&mut self, trips: &mut u64) -> Result<Option<Logged>, Stopped> {
        loop {
            if self.ahead.is_empty() && !self.read()? {
                return Ok(None);
            }
            let Some(logged) = self.ahead.pop_front() else { return Ok(None) };
            self.replayed += 1;
            self.account.add(&logged.event.fields);
            match logged.event.fields {
                Fields::Trip { requests, .. } => *trips = trips.wrapping_add(requests),
                _ => return Ok(Some(logged)),
            }
        }
    }

    /// On another class: counts what the call did in the log and in the replay.
    fn count(&mut self, events: &[Event]) {
        let replayed: Vec<_> = events.iter().map(|event| RecordedEvent::of(event).fields).collect();
        let kind = |fields: &Fields| fields.kind().map_or("", EventKind::name);
        let whose = self.whose;
        let refusal = |fields: &Fields| Seen::of(fields, whose).is_some_and(Seen::is_refusal);
        let was_refused = self.ahead.iter().any(|logged| refusal(&logged.event.fields));
        match (was_refused, replayed.iter().any(refusal)) {
            (false, true) => self.otherwise.refused += 1,
            (true, false) => self.otherwise.served += 1,
            _ => {}
        }
        for logged in self.ahead.drain(..) {
            self.replayed += 1;
            self.kinds.entry(kind(&logged.event.fields)).or_default()[0] += 1;
        }
        for fields in &replayed {
            self.kinds.entry(kind(fields)).or_default()[1] += 1;
        }
    }

    /// Holds the counters of each pool that is there and of the arena against the sums of the log.
    fn check_counters(&self) -> Result<(), Stopped> {
        if self.aim.other.is_some() {
            return Ok(());
        }
        self.pools.keys().try_for_each(|&pool| self.check_pool(pool))?;
        match self.account.differences(self.arena.counts()).first() {
            Some((name, log, counted)) => {
                Err(self.miscounted(&format!("{name} {log}"), &format!("{name} {counted}")))
            }
            None => Ok(()),
        }
    }

    /// Holds the counters of each buffer and each ring of a pool against the sums of the log.
    fn check_pool(&self, number: u64) -> Result<(), Stopped> {
        let Some(pool) = self.pools.get(&number).filter(|_| self.aim.other.is_none()) else { return Ok(()) };
        let mut wrong = None;
        pool.whole().look_at_rings(&mut |ring, found| {
            let expected = self.account.ring_of(number, ring);
            if expected != found {
                wrong = Some((format!("ring {ring}: {expected:?}"), format!("ring {ring}: {found:?}")));
            }
        });
        pool.whole().look(&mut |buffer, _, filled, emptied| {
            let (expected, found) = (self.account.bytes_of(buffer), Bytes::new(filled, emptied));
            if expected != found {
                wrong = Some((format!("{expected:?}"), format!("{found:?}")));
            }
        });
        wrong.map_or(Ok(()), |(expected, found)| Err(self.miscounted(&expected, &found)))
    }

    fn miscounted(&self, logged: &str, replayed: &str) -> Stopped {
        Stopped::Diverged(Box::new(Divergence {
            event: self.replayed,
            call: "counters at the end".into(),
            call_event: self.replayed,
            logged: logged.into(),
            replayed: replayed.into(),
        }))
    }

    fn diverged(&self, call: &RecordedEvent, logged: Option<&Logged>, replayed: &str) -> Stopped {
        let text = logged.map_or_else(|| "the end".into(), |logged| self.text(logged));
        let event = logged.map_or(self.replayed, |logged| logged.event.serial);
        self.divergence(event, call, text, replayed.into())
    }

    fn differs(&self, call: &RecordedEvent, logged: &str, replayed: &str) -> Stopped {
        self.divergence(call.serial, call, logged.into(), replayed.into())
    }

    fn divergence(&self, event: u64, call: &RecordedEvent, logged: String, replayed: String) -> Stopped {
        let seen = Seen::of(&call.fields, self.whose);
        let call_text = seen.map(|seen| seen.to_string()).unwrap_or_default();
        Stopped::Diverged(Box::new(Divergence {
            event,
            call: call_text,
            call_event: call.serial,
            logged,
            replayed,
        }))
    }

    fn text(&self, logged: &Logged) -> String {
        logged.seen.map_or_else(|| "trip".into(), |seen| seen.to_string())
    }

    /// What came of the replay, and what there is now.
    pub(super) fn verdict(&self, divergence: Option<Divergence>) -> Verdict {
        let is_other = self.aim.other.is_some();
        Verdict {
            events: self.fates.events,
            is_cut: self.fates.is_cut,
            replayed: self.replayed,
            passed_over: self.passed_over,
            heaps: self.fates.has_heap.then(|| self.heaps.tally()),
            calls: self.calls,
            threads: self.threads.len() as u64,
            divergence,
            kinds: is_other.then(|| self.kinds.clone()),
            otherwise: is_other.then_some(self.otherwise),
            state: self.state_now(),
        }
    }

    fn state_now(&self) -> State {
        let base = self.arena.range().base();
        let (shift, mut state) = (base.get().wrapping_sub(self.whose.base as usize), State::default());
        for (&number, pool) in &self.pools {
            let class = pool.whole().class();
            let sizes = (!heap_pool::is_of_heap(class)).then(|| pool.whole().sizes_now());
            let mut found = PoolState::new(number, class, sizes, pool.whole().packets());
            pool.whole().look(&mut |buffer, now, filled, emptied| {
                let buffer = Addr::new((buffer as usize).wrapping_add(shift));
                found.points.push(PointState::new(base, buffer, now, filled, emptied));
            });
            state.pools.push(found);
        }
        state
    }
}

fn layout(size: u64, align: u64) -> Result<Layout, Impossible> {
    let (size, align) = (usize::try_from(size).ok(), usize::try_from(align).ok());
    let layout = size.zip(align).and_then(|(size, align)| Layout::from_size_align(size, align).ok());
    layout.ok_or(Impossible("it has a layout that cannot be"))
}
