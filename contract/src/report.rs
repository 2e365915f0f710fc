//! The report: what happened, where, what was excused, and who was looking.

use core::fmt;

use crate::amnesty::AmnestyReason;
use crate::class::ViolationClass;
use crate::detector::DetectorSet;
use crate::json::Json;
#[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
use crate::linux::Verdict;
use crate::record::{Record, RecordKind, Site};
use crate::registry::Contract;
use crate::route::Route;
use crate::sizing::Sizing;
use crate::slot::{Slot, ThreadKind};
use crate::tally::ClassTally;

/// Turns sites into something people can read.
pub trait Resolve {
    /// Writes the one place that a site is best known by.
    ///
    /// # Errors
    /// Only those of `out`.
    fn resolve(&self, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result;

    /// Writes what is known of one code address.
    ///
    /// # Errors
    /// Only those of `out`.
    fn frame(&self, address: usize, out: &mut dyn fmt::Write) -> fmt::Result;
}

/// Code addresses as they are, for tools to resolve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw;

impl Resolve for Raw {
    fn resolve(&self, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result {
        match site.frames().first() {
            Some(address) => self.frame(*address, out),
            None => out.write_str("unknown"),
        }
    }

    fn frame(&self, address: usize, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "{address:#x}")
    }
}

/// A place to print, by a resolver.
struct At<'a>(&'a dyn Resolve, &'a Site);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.resolve(self.1, f)
    }
}

struct FrameAt<'a>(&'a dyn Resolve, usize);

impl fmt::Display for FrameAt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.frame(self.1, f)
    }
}

/// How a session went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No hot thread was ever armed, or one that is still there was not in SteadyState.
    NotArmed,
    /// Violations were found.
    Violated,
    /// None were found, but not every detector that was wanted was live.
    PassedWithFewerDetectors,
    /// There were none, by every detector that was wanted; but amnesties excused more events
    /// than were recorded.
    PassedWithRecordsLost,
    /// None were found, by every detector that was wanted.
    Passed,
}

impl Outcome {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotArmed => "not_armed",
            Self::Violated => "violated",
            Self::PassedWithFewerDetectors => "passed_with_fewer_detectors",
            Self::PassedWithRecordsLost => "passed_with_records_lost",
            Self::Passed => "passed",
        }
    }
}

/// The report on a contract: text by [`fmt::Display`], JSON by
/// [`Report::write_json`].
///
/// ```
/// use tripoint_contract::report::Outcome;
/// use tripoint_contract::{Contract, Report};
///
/// static CONTRACT: Contract = Contract::new();
/// let mut records = Vec::new();
/// CONTRACT.drain(|record| records.push(record));
/// let report = Report { records: &records, ..Report::new(&CONTRACT) };
/// assert_eq!(report.outcome(), Outcome::NotArmed);
/// let text = report.to_string();
/// # assert!(!text.is_empty());
/// ```
pub struct Report<'a, R: AmnestyReason, const THREADS: usize> {
    /// What is reported on.
    pub contract: &'a Contract<R, THREADS>,
    /// What was drained, as much of it as was kept.
    pub records: &'a [Record],
    /// The routes of the warm-up.
    pub routes: &'a [Route],
    /// The number of rehearsals.
    pub warmup_rounds: usize,
    /// Advice for the next Init.
    pub sizing: Option<Sizing<'a>>,
    /// How sites are resolved; by default they are not.
    pub symbols: &'a dyn Resolve,
}

impl<'a, R: AmnestyReason, const THREADS: usize> Report<'a, R, THREADS> {
    /// A report with nothing but what the contract knows. The other fields may be
    /// set.
    pub const fn new(contract: &'a Contract<R, THREADS>) -> Self {
        Self { contract, records: &[], routes: &[], warmup_rounds: 0, sizing: None, symbols: &Raw }
    }

    fn hot(&self) -> impl Iterator<Item = &'a Slot> {
        self.contract.threads().filter(|slot| slot.kind() == ThreadKind::Hot)
    }

    /// The detectors that were live for every hot thread.
    #[must_use]
    pub fn live(&self) -> DetectorSet {
        self.hot().map(Slot::live).reduce(DetectorSet::intersection).unwrap_or(DetectorSet::empty())
    }

    /// The detectors that some hot thread wanted and did not have. Polled faults
    /// stand in for trapped ones only without a site, so both are named.
    #[must_use]
    pub fn missing(&self) -> DetectorSet {
        self.hot().fold(DetectorSet::empty(), |missing, slot| {
            missing | slot.wanted_detectors().difference(slot.live())
        })
    }

    /// The detectors that no hot thread asked for, and that are not live: the report says
    /// nothing about what they would have seen.
    #[must_use]
    pub fn not_asked_for(&self) -> DetectorSet {
        self.hot().fold(DetectorSet::all(), |others, slot| {
            others.difference(slot.wanted_detectors()).difference(slot.live())
        })
    }

    /// The number of alarms on all hot threads.
    #[must_use]
    pub fn alarms(&self) -> usize {
        self.hot().map(Slot::alarms).sum()
    }

    /// The number of events on all hot threads that were not recorded. They are still
    /// counted, and still raise alarms.
    #[must_use]
    pub fn records_lost(&self) -> usize {
        self.hot().map(Slot::records_lost).sum()
    }

    /// Whether the contract bound its hot threads. At least one was armed, by the lifecycle
    /// or by hand; and from SteadyState on, so was every one that is still there. A thread
    /// that has left still counts as armed.
    #[must_use]
    pub fn was_armed(&self) -> bool {
        let reached = self.contract.phase() >= crate::Phase::SteadyState;
        let ever = self.hot().any(Slot::was_armed) || self.contract.threads().any(Slot::was_formerly_armed);
        ever && self.hot().all(|slot| slot.was_armed() || !slot.is_present() || !reached)
    }

    /// The outcome of the session. It is the same while threads run, after they are joined,
    /// and after Teardown.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        if self.alarms() > 0 {
            Outcome::Violated
        } else if !self.was_armed() {
            Outcome::NotArmed
        } else if !self.missing().is_empty() {
            Outcome::PassedWithFewerDetectors
        } else if self.records_lost() > 0 {
            Outcome::PassedWithRecordsLost
        } else {
            Outcome::Passed
        }
    }

    fn thread_name(&self, index: usize) -> crate::Name {
        let thread = self.contract.threads().find(|slot| slot.index() == index);
        thread.map_or(crate::Name::new("?"), Slot::name)
    }

    /// Writes the report as a JSON object.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        Json::new(out).object(|json| {
            json.text("outcome", self.outcome().name())?;
            json.text("phase", self.contract.phase())?;
            json.number("armed", self.contract.is_armed())?;
            json.name("live_detectors")?;
            json.array(&mut self.live().names(), |json, name| json.value_text(name))?;
            json.name("missing_detectors")?;
            json.array(&mut self.missing().names(), |json, name| json.value_text(name))?;
            json.name("missing_memory_steps")?;
            json.array(&mut self.contract.memory_missed().names(), |json, name| json.value_text(name))?;
            #[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
            if let Some(runtime) = self.contract.runtime() {
                json.name("runtime")?;
                runtime.write_array(json)?;
            }
            json.number("was_armed", self.was_armed())?;
            json.number("alarms", self.alarms())?;
            json.number("records_lost", self.records_lost())?;
            json.name("not_asked_for")?;
            json.array(&mut self.not_asked_for().names(), |json, name| json.value_text(name))?;
            json.name("threads")?;
            json.array(&mut self.contract.threads(), write_thread)?;
            json.name("sites")?;
            json.array(&mut self.groups(), |json, group| self.write_group(json, &group))?;
            json.name("violations")?;
            let told = |record: &&Record| record.kind != RecordKind::Rehearsed;
            json.array(&mut self.records.iter().filter(told), |json, record| {
                self.write_record(json, record)
            })?;
            json.name("rehearsed")?;
            json.array(&mut self.records.iter().filter(|record| !told(record)), |json, record| {
                self.write_record(json, record)
            })?;
            self.write_amnesties(json)?;
            json.name("routes")?;
            json.array(&mut self.routes.iter(), write_route)?;
            json.number("warmup_rounds", self.warmup_rounds)?;
            match &self.sizing {
                Some(sizing) => {
                    json.name("sizing")?;
                    sizing.write_json(json)
                }
                None => Ok(()),
            }
        })
    }

    /// The JSON members that a record and a group of records share.
    fn write_what(&self, json: &mut Json<'_>, record: &Record) -> fmt::Result {
        json.text("kind", record.kind.name())?;
        json.text("class", record.class)?;
        json.text("thread", self.thread_name(record.thread))?;
        json.number("count", record.count)?;
        json.number("bytes", record.bytes)?;
        json.number("time", record.time)?;
        if record.address != 0 {
            json.text("address", format_args!("{:#x}", record.address))?;
        }
        if let Some(call) = call_of(record) {
            json.text("call", call)?;
        }
        if let Some(reason) = reason_of::<R>(record) {
            json.text("reason", reason)?;
        }
        json.text("site", At(self.symbols, &record.site))
    }

    fn write_group(&self, json: &mut Json<'_>, group: &Group) -> fmt::Result {
        json.object(|json| {
            self.write_what(json, &group.sum)?;
            json.number("records", group.records)?;
            json.number("last_time", group.last_time)
        })
    }

    fn write_record(&self, json: &mut Json<'_>, record: &Record) -> fmt::Result {
        json.object(|json| {
            self.write_what(json, record)?;
            json.name("frames")?;
            json.array(&mut record.site.frames().iter(), |json, &address| {
                json.value_text(FrameAt(self.symbols, address))
            })
        })
    }

    fn write_amnesties(&self, json: &mut Json<'_>) -> fmt::Result {
        let ledger = self.contract.amnesties();
        json.name("amnesties")?;
        json.object(|json| {
            let reasons = || R::NAMES.iter().enumerate();
            json.number("entered", ledger.entered())?;
            json.number("budget", reasons().map(|(index, _)| ledger.budget_of(index)).sum::<usize>())?;
            json.number("over_budget", ledger.over_budget())?;
            json.name("reasons")?;
            json.object(|json| {
                reasons().try_for_each(|(index, name)| json.number(name, ledger.of_reason(index)))
            })?;
            json.name("budgets")?;
            json.object(|json| {
                reasons().try_for_each(|(index, name)| json.number(name, ledger.budget_of(index)))
            })
        })
    }
}

/// Records that share kind, class, thread, call, reason and place.
struct Group {
    /// The first record, with the events and bytes of all.
    sum: Record,
    records: usize,
    last_time: u64,
}

impl Group {
    const fn new(first: Record) -> Self {
        Self { sum: first, records: 1, last_time: first.time }
    }

    #[cfg(feature = "std")]
    fn add(&mut self, record: &Record) {
        self.sum.count = self.sum.count.wrapping_add(record.count);
        self.sum.bytes = self.sum.bytes.wrapping_add(record.bytes);
        self.last_time = record.time;
        self.records += 1;
    }
}

impl<'a, R: AmnestyReason, const THREADS: usize> Report<'a, R, THREADS> {
    /// The records grouped by place, in the order in which the places first occur.
    #[cfg(feature = "std")]
    fn groups(&self) -> impl Iterator<Item = Group> + use<R, THREADS> {
        use std::string::String;
        use std::vec::Vec;

        let (mut groups, mut keys) = (Vec::<Group>::new(), Vec::new());
        for record in self.records {
            let mut place = String::new();
            // Writing to a string does not fail.
            let _ = self.symbols.resolve(&record.site, &mut place);
            let call = if record.class == ViolationClass::MemoryCall { record.call } else { 0 };
            let reason = reason_of::<R>(record);
            let key = (record.kind as usize, record.class, record.thread, call, reason, place);
            match keys.iter().position(|known| *known == key) {
                Some(index) => groups[index].add(record),
                None => {
                    groups.push(Group::new(*record));
                    keys.push(key);
                }
            }
        }
        groups.into_iter()
    }

    /// Each record is a group: without an allocator they cannot be sorted.
    #[cfg(not(feature = "std"))]
    fn groups(&self) -> impl Iterator<Item = Group> + use<'a, R, THREADS> {
        self.records.iter().copied().map(Group::new)
    }
}

/// The memory call of a record.
fn call_of(record: &Record) -> Option<CallName> {
    (record.class == ViolationClass::MemoryCall && record.call != 0).then_some(CallName(record.call))
}

/// The reason of the amnesty that a record is of.
fn reason_of<R: AmnestyReason>(record: &Record) -> Option<&'static str> {
    let has_reason = record.kind == RecordKind::Excused || record.class == ViolationClass::AmnestyOverrun;
    has_reason.then(|| R::NAMES.get(record.reason).copied().unwrap_or("?"))
}

/// A time as a decimal of seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NS: u64 = 1_000_000_000;
        write!(f, "{}.{:09} s", self.0 / NS, self.0 % NS)
    }
}

/// The name of a memory call, or its number.
struct CallName(usize);

impl fmt::Display for CallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
        if let Some(name) = crate::linux::memory_call_name(self.0) {
            return f.write_str(name);
        }
        write!(f, "{}", self.0)
    }
}

fn write_thread(json: &mut Json<'_>, slot: &Slot) -> fmt::Result {
    json.object(|json| {
        json.text("name", slot.name().as_str())?;
        json.text("kind", if slot.kind() == ThreadKind::Hot { "hot" } else { "cold" })?;
        json.number("was_armed", slot.was_armed())?;
        json.number("alarms", slot.alarms())?;
        json.number("amnesties", slot.amnesties())?;
        json.number("records_lost", slot.records_lost())?;
        json.number("overlapped", slot.overlapped())?;
        json.name("live_detectors")?;
        json.array(&mut slot.live().names(), |json, name| json.value_text(name))?;
        json.name("events")?;
        json.object(|json| {
            ViolationClass::ALL.into_iter().try_for_each(|class| {
                let armed = slot.armed_tally(class);
                json.name(class.name())?;
                json.object(|json| {
                    write_tally(json, slot.tally(class))?;
                    json.name("armed")?;
                    json.object(|json| write_tally(json, armed))
                })
            })
        })
    })
}

fn write_tally(json: &mut Json<'_>, tally: ClassTally) -> fmt::Result {
    json.number("count", tally.count)?;
    json.number("bytes", tally.bytes)?;
    json.number("excused", tally.excused)
}

fn write_route(json: &mut Json<'_>, route: &Route) -> fmt::Result {
    json.object(|json| {
        json.text("name", route.name())?;
        json.number("passes", route.passes())?;
        json.number("minimum", route.minimum())
    })
}

fn write_names(f: &mut fmt::Formatter<'_>, detectors: DetectorSet) -> fmt::Result {
    let mut separator = "";
    for name in detectors.names() {
        write!(f, "{separator}{name}")?;
        separator = " ";
    }
    if detectors.is_empty() { f.write_str("none") } else { Ok(()) }
}

impl<R: AmnestyReason, const THREADS: usize> fmt::Display for Report<'_, R, THREADS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "contract: {} in {}", self.outcome().name(), self.contract.phase())?;
        f.write_str("live detectors: ")?;
        write_names(f, self.live())?;
        f.write_str("\nmissing detectors: ")?;
        write_names(f, self.missing())?;
        f.write_str("\nnot asked for: ")?;
        write_names(f, self.not_asked_for())?;
        for step in self.contract.memory_missed().names() {
            write!(f, "\nmemory step not done: {step}")?;
        }
        #[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
        if let Some(runtime) = self.contract.runtime() {
            for finding in runtime.findings.iter().filter(|finding| finding.verdict != Verdict::Good) {
                write!(f, "\nsetting {finding}")?;
            }
        }
        writeln!(f, "\nrecords lost: {}", self.records_lost())?;
        writeln!(f, "warm-up rounds: {}", self.warmup_rounds)?;
        self.contract.threads().try_for_each(|slot| write_thread_text(f, slot))?;
        self.groups().try_for_each(|group| self.write_group_text(f, &group))?;
        let ledger = self.contract.amnesties();
        let over = ledger.over_budget();
        writeln!(f, "amnesties: {}, {over} of them over the budget of their reason", ledger.entered())?;
        for (index, name) in R::NAMES.iter().enumerate() {
            writeln!(f, "  {name}: {} of {}", ledger.of_reason(index), ledger.budget_of(index))?;
        }
        for route in self.routes {
            writeln!(f, "route {}: {} of {}", route.name(), route.passes(), route.minimum())?;
        }
        self.sizing.map_or(Ok(()), |sizing| write!(f, "an Init that would have sufficed:\n{sizing}"))
    }
}

impl<R: AmnestyReason, const THREADS: usize> Report<'_, R, THREADS> {
    fn write_group_text(&self, f: &mut fmt::Formatter<'_>, group: &Group) -> fmt::Result {
        let sum = &group.sum;
        write!(f, "{}: {}", sum.kind.name(), sum.class)?;
        call_of(sum).map_or(Ok(()), |call| write!(f, " {call}"))?;
        write!(f, " x{} on {}, {} bytes", sum.count, self.thread_name(sum.thread), sum.bytes)?;
        if sum.address != 0 {
            write!(f, " at {:#x}", sum.address)?;
        }
        reason_of::<R>(sum).map_or(Ok(()), |reason| write!(f, ", for {reason}"))?;
        write!(f, ", at {}", Seconds(sum.time))?;
        if group.records > 1 {
            write!(f, " and {} times more until {}", group.records - 1, Seconds(group.last_time))?;
        }
        writeln!(f, ", {}", At(self.symbols, &sum.site))
    }
}

fn write_thread_text(f: &mut fmt::Formatter<'_>, slot: &Slot) -> fmt::Result {
    let armed = match (slot.kind(), slot.was_armed()) {
        (ThreadKind::Cold, _) => "cold",
        (ThreadKind::Hot, true) => "armed",
        (ThreadKind::Hot, false) => "never armed",
    };
    writeln!(
        f,
        "thread {} ({armed}): {} alarms, {} records lost",
        slot.name(),
        slot.alarms(),
        slot.records_lost()
    )?;
    for class in ViolationClass::ALL {
        let (all, armed) = (slot.tally(class), slot.armed_tally(class));
        if all.count > 0 {
            writeln!(
                f,
                "  {class}: {} events while armed, {} bytes, {} of them excused; {} events since it registered, {} bytes",
                armed.count, armed.bytes, armed.excused, all.count, all.bytes
            )?;
        }
    }
    match slot.overlapped() {
        0 => Ok(()),
        count => writeln!(
            f,
            "  overlapped: {count} events of the detectors' own, or within another's record; no violations"
        ),
    }
}

impl<R: AmnestyReason, const THREADS: usize> fmt::Debug for Report<'_, R, THREADS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report").field("outcome", &self.outcome()).finish_non_exhaustive()
    }
}
