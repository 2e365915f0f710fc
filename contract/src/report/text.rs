//! A report as text.

use core::fmt;

#[cfg(tripoint_kernel)]
use crate::linux::runtime::{Finding, Verdict};
use crate::phases::ledger::AmnestyReason;
use crate::report::findings::Report;
use crate::report::group::{Group, call_of, reason_of};
use crate::report::resolve::WithCallers;
use crate::thread::heap_tally::HeapTally;
use crate::thread::slot::Slot;
use crate::thread::standing::ThreadKind;
use crate::words::class::ViolationClass;
use crate::words::detector_set::DetectorSet;
use crate::words::record::{Record, RecordKind, StepOf};

/// A time as a decimal of seconds.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NS: u64 = 1_000_000_000;
        write!(f, "{}.{:09} s", self.0 / NS, self.0 % NS)
    }
}

/// What to do about a setting that is not good.
#[cfg(tripoint_kernel)]
struct Advice<'a>(&'a Finding);

#[cfg(tripoint_kernel)]
impl fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { item, value, verdict, advice } = self.0;
        let begin = if *verdict == Verdict::Fatal { "required" } else { "advice" };
        write!(f, "{begin}: {advice} ({} is {value})", item.name())
    }
}

/// A number of things, by the name of one.
struct Count(usize, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", self.0, self.1)
    }
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
        #[cfg(tripoint_kernel)]
        if let Some(runtime) = self.contract.runtime() {
            for finding in runtime.findings.iter().filter(|finding| finding.verdict != Verdict::Good) {
                write!(f, "\n{}", Advice(finding))?;
            }
        }
        writeln!(f, "\nrecords lost: {}", self.records_lost())?;
        match self.contract.warmup_rounds() {
            0 => writeln!(f, "rehearsals: none")?,
            rehearsals => writeln!(f, "rehearsals: {rehearsals}")?,
        }
        self.contract.threads().try_for_each(|slot| write_thread_text(f, slot))?;
        let mut groups = self.groups().filter(|group| !self.is_told_by_violations(&group.sum));
        groups.try_for_each(|group| self.write_group_text(f, &group))?;
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
    /// Whether a record is an alarm, and all events of the alarms of its class and thread are
    /// violations in this report: each event is printed once.
    fn is_told_by_violations(&self, record: &Record) -> bool {
        let of = |kind: RecordKind| {
            let same = |other: &&Record| {
                (other.kind, other.class, other.thread) == (kind, record.class, record.thread)
            };
            self.records.iter().filter(same).fold(0_usize, |sum, other| sum.wrapping_add(other.count))
        };
        record.kind == RecordKind::Alarm && of(RecordKind::Violation) >= of(RecordKind::Alarm)
    }

    fn write_group_text(&self, f: &mut fmt::Formatter<'_>, group: &Group) -> fmt::Result {
        let sum = &group.sum;
        write!(f, "{}: {}", sum.kind.name(), sum.class)?;
        call_of(sum).map_or(Ok(()), |call| write!(f, " {call}"))?;
        let bytes = Count(sum.bytes, "byte");
        write!(f, " x{} on {}, {bytes}", sum.count, self.thread_name(sum.thread))?;
        if sum.address != 0 {
            write!(f, " at {:#x}", sum.address)?;
        }
        write!(f, "{}", StepOf(sum))?;
        reason_of::<R>(sum).map_or(Ok(()), |reason| write!(f, ", for {reason}"))?;
        write!(f, ", at {}", Seconds(sum.time))?;
        if group.records > 1 {
            write!(f, " and {} more until {}", Count(group.records - 1, "time"), Seconds(group.last_time))?;
        }
        writeln!(f, ", {}", WithCallers(self.symbols, &sum.site))
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
        "thread {} ({armed}): {}, {} lost",
        slot.name(),
        Count(slot.alarms(), "alarm"),
        Count(slot.records_lost(), "record")
    )?;
    for class in ViolationClass::ALL {
        let (all, armed) = (slot.tally(class), slot.armed_tally(class));
        if all.count > 0 {
            writeln!(
                f,
                "  {class}: {} while armed, {}, {} of them excused; {} since it registered, {}",
                Count(armed.count, "event"),
                Count(armed.bytes, "byte"),
                armed.excused,
                Count(all.count, "event"),
                Count(all.bytes, "byte")
            )?;
        }
    }
    write_heaps(f, "since it registered", &slot.heap_tally())?;
    write_heaps(f, "while armed", &slot.armed_heap_tally())?;
    match slot.overlapped() {
        0 => Ok(()),
        count => writeln!(
            f,
            "  overlapped: {} of the detectors' own, or within another's record; no violations",
            Count(count, "event")
        ),
    }
}

/// What the thread had to do with heaps, if it had.
fn write_heaps(f: &mut fmt::Formatter<'_>, when: &str, tally: &HeapTally) -> fmt::Result {
    if *tally == HeapTally::default() {
        return Ok(());
    }
    write!(f, "  heaps {when}:")?;
    let mut separator = "";
    tally.numbers().into_iter().filter(|(_, number)| *number > 0).try_for_each(|(name, number)| {
        write!(f, "{separator} {name} {number}")?;
        separator = ",";
        Ok(())
    })?;
    writeln!(f)
}
