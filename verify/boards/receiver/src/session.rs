//! A session: datagrams become messages in their order, and messages become records.
//!
//! Messages begin with a byte that says what they are: `R`, and the bytes of a record; or `D`, and the digest of all records before, which
//! ends the session.

use core::fmt;

use board::Board;
use firmware::Board as _;
use tripoint::packets::PacketRingCounts;
use tripoint::points::Control;
use tripoint::{AllocationPoint, Arena as _, Check as _, CheckLevel, PoolBox};

use crate::failure::{Failure, ensure};
use crate::memory::{self, Packet, Record, Records};
use crate::moldudp64::{Datagram, FIRST, Request, Session as Name};
use crate::network::Network;
use crate::window::{Arrival, Slot, Turn, Window};
use crate::{TRIPPED, interrupts};

/// The name of the session.
const NAME: Name = *b"bare metal";

/// The messages that the window reaches.
const REACH: usize = 128;

/// The messages after which nothing may grow any more.
const WARM_UP: u64 = 1_000;

/// The records that are kept.
const KEPT: usize = 64;

/// How long the receiver waits for anything, in steps of the timer (100 ns).
const PATIENCE: u32 = 100_000;

/// How often it asks for what does not come.
const ASKS_MAX: u32 = 100;

/// The receiver says how far it is after that many messages.
const TOLD_AFTER: u64 = 32;

/// Counts the trips that the point observed.
#[derive(Debug, Default)]
struct Heard(usize);

impl Control for Heard {
    fn tripped(&mut self, requests: usize) {
        self.0 += requests;
    }
}

/// What came, and where it is now.
#[derive(Debug, Default)]
pub(crate) struct Report {
    records: u64,
    datagrams: u64,
    duplicates: u64,
    beyond_window: u64,
    asked_for: u64,
    interrupts: usize,
    received: PacketRingCounts,
    sent: PacketRingCounts,
    units: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, datagrams, duplicates, beyond_window, asked_for, interrupts, .. } = self;
        writeln!(
            f,
            "records: {records}, from {datagrams} datagrams, {duplicates} of them twice, {beyond_window} beyond the window"
        )?;
        writeln!(f, "messages asked for: {asked_for}; interrupts, each heard of as a trip: {interrupts}")?;
        writeln!(f, "receive ring: {:?}", self.received)?;
        writeln!(f, "transmit ring: {:?}", self.sent)?;
        write!(f, "units: {}, all home", self.units)
    }
}

/// Receives one session.
pub(crate) fn run(board: &mut Board) -> Result<Report, Failure> {
    let point = AllocationPoint::create_with(memory::records()?, Default::default(), Heard::default())?;
    TRIPPED.get_or_try_init(|| Ok(point.tripper()))?;
    let mut network = Network::open(board)?;
    let mut slots: [Slot<Packet>; REACH] = [const { None }; REACH];
    let session = Session {
        network: &mut network,
        window: Window::new(&mut slots[..], FIRST),
        point,
        kept: [const { None }; KEPT],
        told: 0,
        asks: 0,
        digest: Digest::new(),
        expected: None,
        report: Report::default(),
    };
    let mut report = session.keep(board)?;
    drop(slots);
    (report.received, report.sent) = network.close();
    let counts = memory::packets()?.counts();
    ensure(counts.depot == counts.units, "all units are home")?;
    ensure(counts.taken == counts.given, "what was taken was given back")?;
    ensure(report.received.outstanding() == 0 && report.sent.outstanding() == 0, "no unit is with a ring")?;
    ensure(memory::packets()?.check(CheckLevel::Deep).is_ok(), "the pool of packets is sound")?;
    ensure(memory::records()?.check(CheckLevel::Deep).is_ok(), "the pool of records is sound")?;
    ensure(memory::arena()?.counts().growth_refused.get() == 0, "nothing tried to grow after the warm-up")?;
    report.units = counts.units;
    Ok(report)
}

/// A session under way.
struct Session<'a> {
    network: &'a mut Network,
    window: Window<&'a mut [Slot<Packet>]>,
    point: AllocationPoint<'static, Records, Heard>,
    /// The last records, each at its number modulo their count.
    kept: [Option<PoolBox<'static, Record, Records>>; KEPT],
    /// Up to which message the sender was told that all came.
    told: u64,
    /// How often it was asked in vain.
    asks: u32,
    digest: Digest,
    /// What the digest of all records should be, when the sender has said it.
    expected: Option<u64>,
    report: Report,
}

impl Session<'_> {
    fn keep(mut self, board: &mut Board) -> Result<Report, Failure> {
        self.tell()?;
        while self.expected.is_none() {
            let mut is_idle = true;
            while let Some(packet) = self.network.receive()? {
                is_idle = false;
                self.arrive(packet)?;
                self.network.refill()?;
            }
            if is_idle {
                let before = interrupts();
                board.arm_timer(PATIENCE);
                board.sleep_unless(|| self.network.has_received());
                if interrupts() == before && !self.network.has_received() {
                    self.ask()?;
                }
                self.network.refill()?;
            } else if self.window.expected() >= self.told + TOLD_AFTER {
                self.tell()?;
            }
        }
        let (expected, found) = (self.expected.unwrap_or(0), self.digest.0);
        if expected != found {
            return Err(Failure::Digest { expected, found });
        }
        self.tell()?;
        self.finish()
    }

    /// Looks at what does not tell of itself.
    fn finish(mut self) -> Result<Report, Failure> {
        // Interrupts may still come: they are counted in front of a reserve that observes them.
        let (before, object) = (interrupts(), self.point.boxed(Record { number: 0, digest: 0 })?);
        drop(object);
        ensure(self.point.control().0 >= before, "every interrupt's trip is heard of")?;
        ensure(self.point.control().0 <= interrupts(), "no trip is heard of twice")?;
        let records = self.report.records;
        for (index, record) in self.kept.iter().flatten().enumerate() {
            ensure(
                record.number < records && record.number % KEPT as u64 == index as u64,
                "records are kept",
            )?;
            ensure(record.digest == Digest::of_number(record.number), "records keep what was written")?;
        }
        self.report.interrupts = before;
        Ok(self.report)
    }

    fn arrive(&mut self, packet: Packet) -> Result<(), Failure> {
        self.report.datagrams += 1;
        ensure(self.network.refuses(&packet), "a unit that is the program's is not completed again")?;
        let Ok(datagram) = Datagram::parse(&packet) else {
            return Err(Failure::Unmet("the sender sends datagrams"));
        };
        let span = datagram.span();
        let has_messages = !span.is_empty();
        match self.window.arrive(span, packet) {
            Arrival::Kept => {}
            Arrival::Duplicate(packet) => {
                // One without messages says which message is next.
                self.report.duplicates += u64::from(has_messages);
                self.network.release(packet);
            }
            Arrival::Beyond(packet) => {
                self.report.beyond_window += 1;
                self.network.release(packet);
            }
        }
        while let Some(Turn { item, skip }) = self.window.next() {
            self.asks = 0;
            let outcome = self.deliver(&item, skip);
            self.network.release(item);
            outcome?;
        }
        Ok(())
    }

    /// Makes records of a datagram whose turn it is.
    fn deliver(&mut self, frame: &[u8], skip: u64) -> Result<(), Failure> {
        let Ok(datagram) = Datagram::parse(frame) else { return Ok(()) };
        for message in datagram.messages().skip(skip as usize) {
            match message.split_first() {
                Some((b'R', bytes)) => self.record(bytes)?,
                Some((b'D', bytes)) => {
                    let digest = bytes.try_into().map_err(|_| Failure::Unmet("a digest has eight bytes"))?;
                    self.expected = Some(u64::from_be_bytes(digest));
                }
                _ => return Err(Failure::Unmet("messages are of a known kind")),
            }
        }
        Ok(())
    }

    fn record(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let number = self.report.records;
        self.report.records += 1;
        self.digest.add(bytes);
        if number == WARM_UP {
            memory::arena()?.freeze();
        }
        let record = Record { number, digest: Digest::of_number(number) };
        let slot = &mut self.kept[(number % KEPT as u64) as usize];
        // First the old one, so that the pool has its memory for the new one.
        *slot = None;
        *slot = Some(self.point.boxed(record)?);
        Ok(())
    }

    /// Says how far the receiver is: a request for nothing.
    fn tell(&mut self) -> Result<(), Failure> {
        self.told = self.window.expected();
        let request = Request { session: NAME, sequence: self.told, count: 0 };
        self.network.send(&request.bytes())
    }

    /// Nothing comes: asks for all that is missing.
    fn ask(&mut self) -> Result<(), Failure> {
        self.asks += 1;
        if self.asks > ASKS_MAX {
            let expected = self.window.expected();
            return Err(Failure::Gap(self.window.gaps().next().unwrap_or(expected..expected + 1)));
        }
        self.tell()?;
        for gap in self.window.gaps() {
            let count = gap.end - gap.start;
            self.report.asked_for += count;
            // The window reaches fewer messages than a request can name.
            let request = Request { session: NAME, sequence: gap.start, count: count as u16 };
            self.network.send(&request.bytes())?;
        }
        Ok(())
    }
}

/// The digest FNV-1a of the bytes of all records.
struct Digest(u64);

impl Digest {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn of_number(number: u64) -> u64 {
        let mut digest = Self::new();
        digest.add(&number.to_be_bytes());
        digest.0
    }
}
