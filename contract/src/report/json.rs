//! A report as JSON.

use core::fmt;

use crate::phases::ledger::AmnestyReason;
use crate::phases::route::Route;
use crate::report::findings::Report;
use crate::report::group::{Group, call_of, reason_of};
use crate::report::resolve::{At, CallersOf, FrameAt};
use crate::thread::heap_tally::HeapTally;
use crate::thread::slot::Slot;
use crate::thread::standing::ThreadKind;
use crate::thread::tally::Tally;
use crate::words::class::ViolationClass;
use crate::words::record::{Record, RecordKind};
use tripoint_core::internal::Json;

impl<R: AmnestyReason, const THREADS: usize> Report<'_, R, THREADS> {
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
            #[cfg(tripoint_kernel)]
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
            json.number("warmup_rounds", self.contract.warmup_rounds())?;
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
        if let Some(step) = record.step {
            // What is allowed any time has no number.
            if step.allowed_ns() != u64::MAX {
                json.number("allowed_ns", step.allowed_ns())?;
            }
            json.number("taken_ns", step.taken_ns())?;
        }
        if let Some(reason) = reason_of::<R>(record) {
            json.text("reason", reason)?;
        }
        json.text("site", At(self.symbols, &record.site))
    }

    fn write_group(&self, json: &mut Json<'_>, group: &Group) -> fmt::Result {
        json.object(|json| {
            self.write_what(json, &group.sum)?;
            json.text("callers", CallersOf(self.symbols, &group.sum.site))?;
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
            // A reason may have a budget of `usize::MAX`: without a limit.
            let budgets = reasons().map(|(index, _)| ledger.budget_of(index));
            json.number("budget", budgets.fold(0, usize::saturating_add))?;
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
        json.name("heaps")?;
        json.object(|json| {
            write_heap_tally(json, &slot.heap_tally())?;
            json.name("armed")?;
            json.object(|json| write_heap_tally(json, &slot.armed_heap_tally()))
        })?;
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

fn write_heap_tally(json: &mut Json<'_>, tally: &HeapTally) -> fmt::Result {
    tally.numbers().into_iter().try_for_each(|(name, number)| json.number(name, number))
}

fn write_tally(json: &mut Json<'_>, tally: Tally) -> fmt::Result {
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
