//! The report: what happened, where, what was excused, and who was looking.

use core::fmt;

use crate::amnesty::AmnestyReason;
use crate::class::ViolationClass;
use crate::detector::DetectorSet;
use crate::json::Json;
#[cfg(all(feature = "linux", target_os = "linux"))]
use crate::linux::Verdict;
use crate::record::{Record, RecordKind, Site};
use crate::registry::Contract;
use crate::route::Route;
use crate::sizing::Sizing;
use crate::slot::{Slot, ThreadKind};

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
    /// No hot thread was ever armed, or one that is there was not in SteadyState.
    NotArmed,
    /// Violations were found.
    Violated,
    /// None were found, but not every detector that was wanted was live.
    PassedWithFewerDetectors,
    /// None were found, by every detector that was wanted; but amnesties excused more
    /// events than there is a record of.
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

    /// The number of alarms on all hot threads.
    #[must_use]
    pub fn alarms(&self) -> usize {
        self.hot().map(Slot::alarms).sum()
    }

    /// The number of events on all hot threads of which no record was kept. They are
    /// counted, and alarms are raised for them all the same.
    #[must_use]
    pub fn records_lost(&self) -> usize {
        self.hot().map(Slot::records_lost).sum()
    }

    /// Whether the contract bound its hot threads: one was armed, be it by hand, and in
    /// SteadyState and after it every one that is still there. Threads that are gone keep
    /// having been armed.
    #[must_use]
    pub fn was_armed(&self) -> bool {
        let reached = self.contract.phase() >= crate::Phase::SteadyState;
        self.hot().any(Slot::was_armed)
            && self.hot().all(|slot| slot.was_armed() || !slot.is_present() || !reached)
    }

    /// How the session went: the same while threads run, after they are joined and after
    /// Teardown.
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
            #[cfg(all(feature = "linux", target_os = "linux"))]
            if let Some(runtime) = self.contract.runtime() {
                json.name("runtime")?;
                runtime.write_array(json)?;
            }
            json.number("was_armed", self.was_armed())?;
            json.number("alarms", self.alarms())?;
            json.number("records_lost", self.records_lost())?;
            json.name("threads")?;
            json.array(&mut self.contract.threads(), write_thread)?;
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

    fn write_record(&self, json: &mut Json<'_>, record: &Record) -> fmt::Result {
        json.object(|json| {
            json.text("kind", record.kind.name())?;
            json.text("class", record.class)?;
            json.text("thread", self.thread_name(record.thread))?;
            json.number("count", record.count)?;
            json.number("bytes", record.bytes)?;
            json.number("time", record.time)?;
            if record.address != 0 {
                json.text("address", format_args!("{:#x}", record.address))?;
            }
            if record.class == ViolationClass::MemoryCall && record.kind != RecordKind::Alarm {
                json.text("call", CallName(record.call))?;
            }
            if record.kind == RecordKind::Excused {
                json.text("reason", R::NAMES.get(record.reason).unwrap_or(&"?"))?;
            }
            json.text("site", At(self.symbols, &record.site))?;
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
            json.number("entered", ledger.entered())?;
            json.number("budget", ledger.budget())?;
            json.name("reasons")?;
            json.object(|json| {
                R::NAMES
                    .iter()
                    .enumerate()
                    .try_for_each(|(index, name)| json.number(name, ledger.of_reason(index)))
            })
        })
    }
}

/// The name of a memory call, or its number.
struct CallName(usize);

impl fmt::Display for CallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(all(feature = "linux", target_os = "linux"))]
        if let Some(name) = crate::linux::memory_call_name(self.0) {
            return f.write_str(name);
        }
        write!(f, "{}", self.0)
    }
}

fn write_thread(json: &mut Json<'_>, slot: &Slot) -> fmt::Result {
    json.object(|json| {
        json.text("name", slot.name())?;
        json.text("kind", if slot.kind() == ThreadKind::Hot { "hot" } else { "cold" })?;
        json.number("alarms", slot.alarms())?;
        json.number("amnesties", slot.amnesties())?;
        json.number("records_lost", slot.records_lost())?;
        json.number("overlapped", slot.overlapped())?;
        json.name("live_detectors")?;
        json.array(&mut slot.live().names(), |json, name| json.value_text(name))?;
        json.name("events")?;
        json.object(|json| {
            ViolationClass::ALL.into_iter().try_for_each(|class| {
                let tally = slot.tally(class);
                json.name(class.name())?;
                json.object(|json| {
                    json.number("count", tally.count)?;
                    json.number("bytes", tally.bytes)?;
                    json.number("excused", tally.excused)
                })
            })
        })
    })
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
        for step in self.contract.memory_missed().names() {
            write!(f, "\nmemory step not done: {step}")?;
        }
        #[cfg(all(feature = "linux", target_os = "linux"))]
        if let Some(runtime) = self.contract.runtime() {
            for finding in runtime.findings.iter().filter(|finding| finding.verdict != Verdict::Good) {
                write!(f, "\nsetting {finding}")?;
            }
        }
        writeln!(f, "\nrecords lost: {}", self.records_lost())?;
        writeln!(f, "warm-up rounds: {}", self.warmup_rounds)?;
        for slot in self.contract.threads() {
            writeln!(f, "thread {}: {} alarms", slot.name(), slot.alarms())?;
            for class in ViolationClass::ALL {
                let tally = slot.tally(class);
                if tally.count > 0 {
                    writeln!(
                        f,
                        "  {class}: {} events, {} bytes, {} excused, since it registered",
                        tally.count, tally.bytes, tally.excused
                    )?;
                }
            }
        }
        for record in self.records {
            let (kind, site) = (record.kind.name(), At(self.symbols, &record.site));
            let thread = self.thread_name(record.thread);
            writeln!(
                f,
                "{kind}: {} x{} on {thread}, {} bytes, {site}",
                record.class, record.count, record.bytes
            )?;
        }
        let ledger = self.contract.amnesties();
        writeln!(f, "amnesties: {} of {}", ledger.entered(), ledger.budget())?;
        for (index, name) in R::NAMES.iter().enumerate() {
            writeln!(f, "  {name}: {}", ledger.of_reason(index))?;
        }
        for route in self.routes {
            writeln!(f, "route {}: {} of {}", route.name(), route.passes(), route.minimum())?;
        }
        self.sizing.map_or(Ok(()), |sizing| write!(f, "an Init that would have sufficed:\n{sizing}"))
    }
}

impl<R: AmnestyReason, const THREADS: usize> fmt::Debug for Report<'_, R, THREADS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report").field("outcome", &self.outcome()).finish_non_exhaustive()
    }
}
