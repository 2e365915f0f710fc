//! [`Telemetry`], to which everything is reported.

use core::fmt;
#[cfg(all(feature = "linux", target_os = "linux"))]
use std::os::fd::OwnedFd;
#[cfg(all(feature = "linux", target_os = "linux"))]
use std::vec::Vec;

use tripoint_core::internal::{AtomicU32, AtomicU64, Ordering};
use tripoint_core::{Addr, Event, EventHook};

use crate::clock::Clock;
use crate::file::image::Image;
use crate::file::plan::{Plan, Room};
use crate::file::switches::Switches;
use crate::format::{EventKind, FileState, HeaderFlags, SWITCHES_WORDS, WORD_BYTES};
use crate::recorder::buffer_numbers::BufferNumbers;
use crate::recorder::counters::{Observed, count_empty, count_fill, count_sample, kind_name};
use crate::recorder::report::{Report, TelemetryError};
#[cfg(feature = "std")]
use crate::recorder::thread;
#[cfg(feature = "std")]
use crate::ring::record_ring::Place;
use crate::ring::record_ring::Record;
use crate::sample::{Mean, Sample};

/// A record of what memory management does, which other processes read while it is written.
///
/// Give each arena a hook of its own ([`arena_hook`](Self::arena_hook)). Events of no arena, such as those
/// of the contract, are reported to this object itself, which is also a hook.
///
/// Once this is created, reporting never waits or allocates, and causes no page fault as long as the memory
/// is locked (see [`report`](Self::report)). Events may be reported in signal handlers. An event that finds its ring in use is
/// dropped and counted, and the newest records overwrite the oldest.
///
/// ```
/// use tripoint_core::internal::AtomicU64; // core::sync::atomic::AtomicU64
/// use tripoint_core::{ClientArena, ClientArenaOptions, PoolClass};
/// use tripoint_pools::{Mvff, MvffOptions};
/// use tripoint_telemetry::{Clock, Room, Telemetry};
///
/// static WORDS: [AtomicU64; 6 << 10] = [const { AtomicU64::new(0) }; 6 << 10];
///
/// let telemetry = Telemetry::in_memory(&WORDS, &Room::LEAST, Clock::NONE)?;
/// let hook = telemetry.arena_hook();
/// let mut memory = Box::new_uninit_slice(1 << 20);
/// let options = ClientArenaOptions { event_hook: Some(&hook), ..ClientArenaOptions::default() };
/// let arena = ClientArena::create(&mut memory, options)?;
/// let pool = Mvff::create(&arena, MvffOptions::default())?; // an event
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Telemetry {
    image: Image<'static>,
    switches: Switches<'static>,
    clock: Clock,
    numbers: BufferNumbers,
    arenas: AtomicU32,
    report: Report,
    /// Files without a path, which exist as long as they are open.
    #[cfg(all(feature = "linux", target_os = "linux"))]
    _files: Vec<OwnedFd>,
}

/// The word of an empty text.
#[cfg(feature = "std")]
const NO_TEXT: u64 = 0;

/// The parts of telemetry.
pub(crate) struct Parts {
    pub(crate) words: &'static [AtomicU64],
    pub(crate) switches: &'static [AtomicU64; SWITCHES_WORDS],
    pub(crate) plan: Plan,
    pub(crate) clock: Clock,
    pub(crate) parent: Option<&'static AtomicU64>,
    /// What the numbers of buffers are computed with; none if there is no random number.
    pub(crate) secret: Option<[u64; 2]>,
    /// Whether addresses are left out for good.
    pub(crate) without_addresses: bool,
    pub(crate) process: u64,
    pub(crate) report: Report,
    #[cfg(all(feature = "linux", target_os = "linux"))]
    pub(crate) files: Vec<OwnedFd>,
}

impl Telemetry {
    /// Telemetry in memory that the program provides, for targets without an operating system, and for a debugger.
    ///
    /// The memory has at least [`Room::bytes`] bytes, and nothing else writes to it. Without the feature `std` all
    /// threads share one ring.
    ///
    /// # Errors
    /// [`TelemetryError::TooSmall`] if the memory has fewer bytes than that, and [`TelemetryError::TooLarge`]
    /// if the room is more than the format allows.
    pub fn in_memory(
        memory: &'static [AtomicU64],
        room: &Room,
        clock: Clock,
    ) -> Result<Self, TelemetryError> {
        let (needed, plan) = room.bytes().zip(Plan::new(room)).ok_or(TelemetryError::TooLarge)?;
        let bytes = size_of_val(memory);
        let (switches, words) = memory
            .split_first_chunk()
            .filter(|(_, words)| words.len() >= plan.words)
            .ok_or(TelemetryError::TooSmall { needed, bytes })?;
        let report = Report::new(HeaderFlags::PREFAULTED, needed);
        Self::new(Parts {
            words,
            switches,
            plan,
            clock,
            parent: None,
            secret: None,
            without_addresses: false,
            process: 0,
            report,
            #[cfg(all(feature = "linux", target_os = "linux"))]
            files: Vec::new(),
        })
    }

    /// # Errors
    /// [`TelemetryError::TooSmall`].
    pub(crate) fn new(parts: Parts) -> Result<Self, TelemetryError> {
        let Parts { words, switches, plan, clock, parent, process, report, .. } = parts;
        let small = TelemetryError::TooSmall { needed: plan.words * WORD_BYTES, bytes: size_of_val(words) };
        let image = Image::make(words, parent, &plan).ok_or(small)?;
        let switches = Switches::new(switches, parts.without_addresses);
        switches.format(process);
        image.open(process, &clock, report.flags());
        Ok(Self {
            image,
            switches,
            clock,
            numbers: BufferNumbers::new(parts.secret),
            arenas: AtomicU32::new(0),
            report,
            #[cfg(all(feature = "linux", target_os = "linux"))]
            _files: parts.files,
        })
    }

    /// Computes the numbers of buffers with a secret of the program: random numbers, from which a reader that does not know them
    /// cannot compute addresses. Telemetry in a file has random numbers of the system. Without any, buffers have
    /// no numbers while addresses are left out ([design/telemetry.md `.number`](crate::design::telemetry)).
    ///
    /// Call it before the first event: later, a buffer would have two numbers.
    #[must_use]
    pub fn with_secret(mut self, secret: [u64; 2]) -> Self {
        self.numbers = BufferNumbers::new(Some(secret));
        self
    }

    /// The switches, which other processes may also change if the telemetry has a file.
    #[must_use]
    pub const fn switches(&self) -> &Switches<'static> {
        &self.switches
    }

    /// How this telemetry is kept, and what the system refused.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// Marks a place in the stream of events, with a name of at most 64 bytes.
    pub fn mark(&self, name: &str, value: u64) {
        if self.may_write() {
            self.write(EventKind::Marker, [value], [name], &[]);
        }
    }

    /// Whether this process may write: a forked child may not.
    #[inline]
    pub(crate) fn may_write(&self) -> bool {
        self.image.parent().is_none_or(|parent| parent.load(Ordering::Relaxed) != 0)
    }

    /// The number of the next arena, from one.
    pub(super) fn number_arena(&self) -> u32 {
        self.arenas.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    pub(crate) const fn image(&self) -> &Image<'static> {
        &self.image
    }

    /// The number of a buffer, or zero if addresses are left out and the number would show one.
    #[inline]
    fn number(&self, buffer: Addr) -> u64 {
        if self.numbers.are_secret() || !self.switches.without_addresses() {
            self.numbers.of(buffer)
        } else {
            0
        }
    }

    /// Observes an event of an arena; zero for none.
    #[inline(always)]
    pub(crate) fn observe(&self, arena: u32, event: &Event, site: &[usize]) {
        if self.may_write() {
            self.record(u64::from(arena), event, site);
        }
    }

    /// Counts and writes an event. Frequent events are written quickly if they have no site.
    #[inline(always)]
    fn record(&self, arena: u64, event: &Event, site: &[usize]) {
        match event {
            Event::Fill { .. } => self.record_fill(arena, event, site),
            Event::Empty { .. } => self.record_empty(arena, event, site),
            #[cfg(feature = "std")]
            Event::Commit { .. } if site.is_empty() => self.commit_quickly(arena, event),
            #[cfg(feature = "std")]
            Event::Alloc { type_name: None, .. } if site.is_empty() => self.alloc_quickly(arena, event),
            #[cfg(feature = "std")]
            Event::Free { .. } if site.is_empty() => self.free_quickly(arena, event),
            _ => self.record_any(arena, event, site),
        }
    }

    /// Begins to write an event without texts and site, if that takes no call of any function.
    #[cfg(feature = "std")]
    #[inline(always)]
    fn try_begin<const FIELDS: usize>(&self) -> Option<(Place<'static>, u32)> {
        thread::try_begin::<FIELDS>(&self.image, &self.clock)
    }

    #[cfg(feature = "std")]
    #[inline(never)]
    fn commit_quickly(&self, arena: u64, event: &Event) {
        // By reference: its fields are read when they are written.
        let Event::Commit { pool, buffer, object, size } = event else { return };
        if !self.switches.is_on(EventKind::Commit) {
            return;
        }
        let Some((place, thread)) = self.try_begin::<5>() else { return self.record_any(arena, event, &[]) };
        let (without, object) = self.object(*object);
        let fields = [arena, u64::from(pool.get()), self.number(*buffer), object, *size as u64];
        place.write(&self.clock, EventKind::Commit, without, thread, fields);
    }

    #[cfg(feature = "std")]
    #[inline(never)]
    fn alloc_quickly(&self, arena: u64, event: &Event) {
        // By reference: its fields are read when they are written.
        let Event::Alloc { pool, object, size, align, .. } = event else { return };
        if !self.switches.is_on(EventKind::Alloc) {
            return;
        }
        let Some((place, thread)) = self.try_begin::<6>() else { return self.record_any(arena, event, &[]) };
        let (without, object) = self.object(*object);
        let fields = [arena, u64::from(pool.get()), object, *size as u64, *align as u64, NO_TEXT];
        place.write(&self.clock, EventKind::Alloc, without, thread, fields);
    }

    #[cfg(feature = "std")]
    #[inline(never)]
    fn free_quickly(&self, arena: u64, event: &Event) {
        // By reference: its fields are read when they are written.
        let Event::Free { pool, object, size, align } = event else { return };
        if !self.switches.is_on(EventKind::Free) {
            return;
        }
        let Some((place, thread)) = self.try_begin::<5>() else { return self.record_any(arena, event, &[]) };
        let (without, object) = self.object(*object);
        let fields = [arena, u64::from(pool.get()), object, *size as u64, *align as u64];
        place.write(&self.clock, EventKind::Free, without, thread, fields);
    }

    /// Whether addresses are left out, and an object's address or zero.
    #[cfg(feature = "std")]
    #[inline(always)]
    fn object(&self, object: Addr) -> (bool, u64) {
        let without = self.switches.without_addresses();
        (without, if without { 0 } else { object.get() as u64 })
    }

    /// The address, or zero if addresses are left out.
    #[inline]
    fn address(&self, address: usize) -> u64 {
        if self.switches.without_addresses() { 0 } else { address as u64 }
    }

    fn count(&self, arena: u64, event: &Event, buffer: u64) {
        let without_addresses = self.switches.without_addresses();
        Observed { event, arena, buffer, without_addresses }.count(&self.image, || self.clock.ticks());
    }

    #[inline(never)]
    fn record_fill(&self, arena: u64, event: &Event, site: &[usize]) {
        let Event::Fill { pool, buffer, base, size } = *event else { return };
        let (pool, buffer) = (u64::from(pool.get()), self.number(buffer));
        count_fill(&self.image, arena, pool, buffer, size as u64);
        self.write_place(EventKind::Fill, [arena, pool, buffer, base.get() as u64, size as u64], site);
    }

    #[inline(never)]
    fn record_empty(&self, arena: u64, event: &Event, site: &[usize]) {
        let Event::Empty { pool, buffer, base, size } = *event else { return };
        let (pool, buffer) = (u64::from(pool.get()), self.number(buffer));
        count_empty(&self.image, arena, pool, buffer, size as u64);
        self.write_place(EventKind::Empty, [arena, pool, buffer, base.get() as u64, size as u64], site);
    }

    /// Writes a fill or an emptying, quickly if it has no site.
    #[inline(always)]
    fn write_place(&self, kind: EventKind, fields: [u64; 5], site: &[usize]) {
        let [arena, pool, buffer, base, size] = fields;
        if !self.switches.is_on(kind) {
            return;
        }
        let without_addresses = self.switches.without_addresses();
        let fields = [arena, pool, buffer, if without_addresses { 0 } else { base }, size];
        #[cfg(feature = "std")]
        if site.is_empty()
            && let Some((place, thread)) = self.try_begin::<5>()
        {
            return place.write(&self.clock, kind, without_addresses, thread, fields);
        }
        self.write(kind, fields, [], site);
    }

    /// Counts and writes any event, except fills and emptyings.
    #[inline(never)]
    fn record_any(&self, arena: u64, event: &Event, site: &[usize]) {
        match *event {
            Event::Reserve { pool, buffer, object, size, unit, type_name } => {
                let (pool, buffer) = (u64::from(pool.get()), self.number(buffer));
                let fields = [arena, pool, buffer, self.address(object.get()), size as u64, unit as u64];
                self.write(EventKind::Reserve, fields, [type_name.unwrap_or("")], site);
            }
            Event::Commit { pool, buffer, object, size } => {
                let (pool, buffer) = (u64::from(pool.get()), self.number(buffer));
                let fields = [arena, pool, buffer, self.address(object.get()), size as u64];
                self.write(EventKind::Commit, fields, [], site);
            }
            Event::Alloc { pool, object, size, align, type_name } => {
                let (pool, object) = (u64::from(pool.get()), self.address(object.get()));
                let fields = [arena, pool, object, size as u64, align as u64];
                self.write(EventKind::Alloc, fields, [type_name.unwrap_or("")], site);
            }
            Event::Free { pool, object, size, align } => {
                let (pool, object) = (u64::from(pool.get()), self.address(object.get()));
                self.write(EventKind::Free, [arena, pool, object, size as u64, align as u64], [], site);
            }
            Event::Sample { .. } => self.record_sample(arena, event, site),
            Event::CreatePoint { .. }
            | Event::DestroyPoint { .. }
            | Event::Trip { .. }
            | Event::Flip { .. }
            | Event::CommitFailed { .. }
            | Event::PushFrame { .. }
            | Event::PopFrame { .. }
            | Event::Abandon { .. } => self.record_at_point(arena, event, site),
            _ => self.record_rare(arena, event, site),
        }
    }

    /// A sample: it is added to the sums of its pool, whether its event is written or not.
    #[cold]
    fn record_sample(&self, arena: u64, event: &Event, site: &[usize]) {
        let Event::Sample { kind, pool, class, object, size, offset, mean, type_name } = *event else {
            return;
        };
        let pool = pool.map_or(0, |pool| u64::from(pool.get()));
        let (size, offset) = (size as u64, offset as u64);
        if let Some(sample) = Mean::new(mean).and_then(|mean| Sample::new(size, offset, mean)) {
            count_sample(&self.image, arena, pool, class.unwrap_or(""), &sample);
        }
        let fields = [arena, pool, self.address(object.get()), size, offset, u64::from(mean)];
        let texts = [kind, class.unwrap_or(""), type_name.unwrap_or("")];
        self.write(EventKind::Sample, fields, texts, site);
    }

    /// Events of points that are rare.
    #[cold]
    fn record_at_point(&self, arena: u64, event: &Event, site: &[usize]) {
        match *event {
            Event::CreatePoint { pool, buffer, kind } => {
                let buffer = self.number(buffer);
                self.count(arena, event, buffer);
                let fields = [arena, u64::from(pool.get()), buffer];
                self.write(EventKind::CreatePoint, fields, [kind_name(kind)], site);
            }
            Event::DestroyPoint { pool, buffer } => {
                let buffer = self.number(buffer);
                self.count(arena, event, buffer);
                self.write(EventKind::DestroyPoint, [arena, u64::from(pool.get()), buffer], [], site);
            }
            Event::Trip { pool, buffer, requests } => {
                let buffer = self.number(buffer);
                self.count(arena, event, buffer);
                self.write(
                    EventKind::Trip,
                    [arena, u64::from(pool.get()), buffer, requests as u64],
                    [],
                    site,
                );
            }
            Event::Flip { pool, buffer, objects } => {
                let buffer = self.number(buffer);
                self.count(arena, event, buffer);
                let (base, size) = (self.address(objects.base().get()), objects.size() as u64);
                self.write(EventKind::Flip, [arena, u64::from(pool.get()), buffer, base, size], [], site);
            }
            Event::CommitFailed { pool, buffer, object, size } => {
                let buffer = self.number(buffer);
                self.count(arena, event, buffer);
                let fields = [arena, u64::from(pool.get()), buffer, self.address(object.get()), size as u64];
                self.write(EventKind::CommitFailed, fields, [], site);
            }
            Event::PushFrame { pool, buffer, init } => {
                let buffer = self.number(buffer);
                self.count(arena, event, buffer);
                let fields = [arena, u64::from(pool.get()), buffer, self.address(init.get())];
                self.write(EventKind::PushFrame, fields, [], site);
            }
            Event::PopFrame { pool, buffer, init, size } => {
                let buffer = self.number(buffer);
                self.count(arena, event, buffer);
                let fields = [arena, u64::from(pool.get()), buffer, self.address(init.get()), size as u64];
                self.write(EventKind::PopFrame, fields, [], site);
            }
            Event::Abandon { pool, buffer, object } => {
                let fields = [arena, u64::from(pool.get()), self.number(buffer), self.address(object.get())];
                self.write(EventKind::Abandon, fields, [], site);
            }
            _ => {}
        }
    }

    /// Events of arenas and pools, and of the contract.
    #[cold]
    fn record_rare(&self, arena: u64, event: &Event, site: &[usize]) {
        self.count(arena, event, 0);
        let address = |address| self.address(address);
        match *event {
            Event::CreateArena { range } => {
                let fields = [arena, address(range.base().get()), range.size() as u64];
                self.write(EventKind::CreateArena, fields, [], site);
            }
            Event::DestroyArena { range } => {
                let fields = [arena, address(range.base().get()), range.size() as u64];
                self.write(EventKind::DestroyArena, fields, [], site);
            }
            Event::CreatePool { pool, class } => {
                self.write(EventKind::CreatePool, [arena, u64::from(pool.get())], [class], site);
            }
            Event::DestroyPool { pool, class } => {
                self.write(EventKind::DestroyPool, [arena, u64::from(pool.get())], [class], site);
            }
            Event::Extend { pool, base, size } => {
                let fields = [arena, u64::from(pool.get()), address(base.get()), size as u64];
                self.write(EventKind::Extend, fields, [], site);
            }
            Event::Retract { pool, base, size } => {
                let fields = [arena, u64::from(pool.get()), address(base.get()), size as u64];
                self.write(EventKind::Retract, fields, [], site);
            }
            Event::Grow { size } => self.write(EventKind::Grow, [arena, size as u64], [], site),
            Event::Shrink { size } => self.write(EventKind::Shrink, [arena, size as u64], [], site),
            Event::GrowthRefused { size } => {
                self.write(EventKind::GrowthRefused, [arena, size as u64], [], site);
            }
            Event::Phase { from, to } => self.write(EventKind::Phase, [], [from, to], site),
            Event::Violation { kind, class, thread, count, bytes, address: at, call } => {
                let fields = [thread as u64, count as u64, bytes as u64, address(at), call as u64];
                self.write(EventKind::Violation, fields, [kind, class], site);
            }
            Event::BeginAmnesty { thread, reason } => {
                self.write(EventKind::BeginAmnesty, [thread as u64], [reason], site);
            }
            Event::EndAmnesty { thread, reason } => {
                self.write(EventKind::EndAmnesty, [thread as u64], [reason], site);
            }
            _ => {}
        }
    }

    /// Writes an event to the thread's ring, if its kind is on.
    pub(crate) fn write<const FIELDS: usize, const TEXTS: usize>(
        &self,
        kind: EventKind,
        fields: [u64; FIELDS],
        texts: [&str; TEXTS],
        site: &[usize],
    ) {
        if !self.switches.is_on(kind) {
            return;
        }
        let without_addresses = self.switches.without_addresses();
        let site = if without_addresses { &[] } else { site };
        let record = Record { kind, without_addresses, thread: 0, fields, texts, site };
        #[cfg(feature = "std")]
        thread::write(&self.image, &self.clock, record);
        #[cfg(not(feature = "std"))]
        self.image.shared_ring.write_shared(&self.clock, &record);
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

/// Readers can see that nothing changes any more, and may continue to read.
impl Drop for Telemetry {
    fn drop(&mut self) {
        if self.may_write() {
            self.image.close();
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.image.state().load(Ordering::Relaxed) == FileState::Open as u64;
        f.debug_struct("Telemetry").field("open", &open).field("clock", &self.clock).finish_non_exhaustive()
    }
}
