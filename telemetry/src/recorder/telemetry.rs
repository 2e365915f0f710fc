//! [`Telemetry`], to which everything is reported.

use core::fmt;
#[cfg(tripoint_on_linux)]
use std::os::fd::OwnedFd;
#[cfg(tripoint_on_linux)]
use std::vec::Vec;

use tripoint_core::Addr;
use tripoint_core::internal::{AtomicU32, AtomicU64, Ordering};

use crate::clock::Clock;
use crate::file::image::Image;
use crate::file::plan::{Plan, Room};
use crate::file::switches::Switches;
use crate::format::{EventKind, FileState, HeaderFlags, SWITCHES_WORDS, WORD_BYTES};
use crate::recorder::buffer_numbers::BufferNumbers;
use crate::recorder::report::{Report, TelemetryError};
#[cfg(feature = "std")]
use crate::recorder::thread;
use crate::ring::record_ring::Record;
use crate::ring::thread_rings::Place;

/// A record of what memory management does, which other processes read while it is written.
///
/// Give each arena a hook of its own ([`arena_hook`](Self::arena_hook)). Events of no arena, such as those
/// of the contract, are reported to this object itself, which is also a hook.
///
/// Once this is created, reporting never waits or allocates, and causes no page fault as long as the memory is locked
/// (see [`report`](Self::report)). Events may be reported in signal handlers. An event that finds its ring in use is
/// dropped and counted, and the newest records overwrite the oldest. Violations and phases have room of their own, which
/// no frequent event overwrites ([`Room::lasting_bytes`]).
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
    /// A word with the number of the file, unless that may not be written to, or its clock is not quick.
    #[cfg(feature = "std")]
    quick: &'static AtomicU64,
    arenas: AtomicU32,
    report: Report,
    /// Files without a path exist as long as they are open. One with a path is locked as long as it is open.
    #[cfg(tripoint_on_linux)]
    files: Vec<OwnedFd>,
}

/// A word that never has the number of a file.
#[cfg(feature = "std")]
static NEVER: AtomicU64 = AtomicU64::new(0);

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
    /// A number of this telemetry and of no other; zero for none.
    pub(crate) identity: u64,
    pub(crate) report: Report,
    #[cfg(tripoint_on_linux)]
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
            identity: 0,
            report,
            #[cfg(tripoint_on_linux)]
            files: Vec::new(),
        })
    }

    /// # Errors
    /// [`TelemetryError::TooSmall`].
    pub(crate) fn new(parts: Parts) -> Result<Self, TelemetryError> {
        let Parts { words, switches, plan, clock, parent, process, identity, report, .. } = parts;
        let small = TelemetryError::TooSmall { needed: plan.words * WORD_BYTES, bytes: size_of_val(words) };
        let image = Image::make(words, parent, &plan).ok_or(small)?;
        let switches = Switches::new(switches, parts.without_addresses);
        switches.format(process, identity);
        image.open(process, identity, &clock, report.flags());
        Ok(Self {
            #[cfg(feature = "std")]
            quick: if clock.is_quick() { image.instance() } else { &NEVER },
            image,
            switches,
            clock,
            numbers: BufferNumbers::new(parts.secret),
            arenas: AtomicU32::new(0),
            report,
            #[cfg(tripoint_on_linux)]
            files: parts.files,
        })
    }

    /// Computes the numbers of buffers with a secret of the program: random numbers, from which a reader that does not
    /// know them cannot compute addresses. Telemetry in a file has random numbers of the system. Without any, buffers
    /// have no numbers while addresses are left out ([design/telemetry.md `.number`](crate::design::telemetry)).
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

    /// The data, and the switches if they have no path.
    #[cfg(tripoint_on_linux)]
    pub(crate) fn files(&self) -> &[OwnedFd] {
        &self.files
    }

    #[cfg(tripoint_on_linux)]
    pub(crate) fn report_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    /// Marks a place in the stream of events, with a name of at most 64 bytes.
    pub fn mark(&self, name: &str, value: u64) {
        if self.may_write() {
            let without_addresses = self.switches.without_addresses();
            self.write(Place::Recent, EventKind::Marker, without_addresses, [value], [name], &[]);
        }
    }

    /// Whether this process may write: a forked child may not.
    #[inline]
    pub(crate) fn may_write(&self) -> bool {
        self.image.instance().load(Ordering::Relaxed) != 0
    }

    /// The number of the next arena, from one.
    pub(super) fn number_arena(&self) -> u32 {
        self.arenas.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    pub(crate) const fn image(&self) -> &Image<'static> {
        &self.image
    }

    pub(super) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The number of the file for [`thread::write_quickly`].
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(super) fn quick_file(&self) -> u64 {
        self.quick.load(Ordering::Relaxed)
    }

    /// The number of a buffer, or zero if addresses are left out and the number would show one.
    #[inline]
    pub(super) fn number(&self, buffer: Addr) -> u64 {
        if self.numbers.are_secret() || !self.switches.without_addresses() {
            self.numbers.of(buffer)
        } else {
            0
        }
    }

    /// Writes an event to a ring of the thread, if its kind is on.
    pub(super) fn write<const FIELDS: usize, const TEXTS: usize>(
        &self,
        place: Place,
        kind: EventKind,
        without_addresses: bool,
        fields: [u64; FIELDS],
        texts: [&str; TEXTS],
        site: &[usize],
    ) {
        if !self.switches.is_on(kind) {
            return;
        }
        let site = if without_addresses { &[] } else { site };
        let record = Record { kind, without_addresses, thread: 0, fields, texts, site };
        #[cfg(feature = "std")]
        thread::write(&self.image, &self.clock, place, record);
        #[cfg(not(feature = "std"))]
        self.image.shared_rings.at(place).write_shared(&self.clock, &record);
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
