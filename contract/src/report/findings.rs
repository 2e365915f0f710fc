//! The report: what happened, where, what was excused, and which detectors were live.

use core::fmt;

use crate::phases::contract::Contract;
use crate::phases::ledger::AmnestyReason;
use crate::phases::route::Route;
use crate::report::outcome::Outcome;
#[cfg(feature = "std")]
use crate::report::places::DEFAULT_SYMBOLS;
use crate::report::resolve::{Raw, Resolve};
use crate::report::sizing::Sizing;
use crate::thread::slot::Slot;
use crate::thread::standing::ThreadKind;
use crate::words::detector_set::DetectorSet;
use crate::words::lifecycle::Phase;
use crate::words::name::Name;
use crate::words::record::Record;

/// The report on a contract: text by [`fmt::Display`], JSON by
/// [`Report::write_json`].
///
/// ```
/// use tripoint_contract::Outcome;
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
    /// The records to show: all that were drained, or those that the program kept.
    pub records: &'a [Record],
    /// The routes of the warm-up.
    pub routes: &'a [Route],
    /// How large arena and pools should be at the next Init.
    pub sizing: Option<Sizing<'a>>,
    /// How code addresses become places; by default [`Raw`] prints them for tools.
    pub symbols: &'a dyn Resolve,
}

impl<'a, R: AmnestyReason, const THREADS: usize> Report<'a, R, THREADS> {
    /// A report with all records that wait: it takes them from the contract, and appends them to
    /// `records`. Sites are resolved if the feature `symbols` is on.
    ///
    /// Use the same `records` again and the next report has those of this one too; clear it first
    /// and the next report has only what is new.
    ///
    /// ```
    /// use tripoint_contract::{Contract, Report};
    ///
    /// static CONTRACT: Contract = Contract::new();
    /// println!("{}", Report::drained(&CONTRACT, &mut Vec::new()));
    /// ```
    #[cfg(feature = "std")]
    pub fn drained(contract: &'a Contract<R, THREADS>, records: &'a mut std::vec::Vec<Record>) -> Self {
        contract.drain(|record| records.push(record));
        Self { records, symbols: DEFAULT_SYMBOLS, ..Self::new(contract) }
    }

    /// A report with nothing but what the contract knows. Set the other fields as needed.
    pub const fn new(contract: &'a Contract<R, THREADS>) -> Self {
        Self { contract, records: &[], routes: &[], sizing: None, symbols: &Raw }
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
    /// or by hand; and so was every one that was there when SteadyState began, or later. A thread
    /// that has left still counts as armed, or as not armed.
    #[must_use]
    pub fn was_armed(&self) -> bool {
        let reached = self.contract.phase() >= Phase::SteadyState;
        let ever = self.hot().any(Slot::was_armed) || self.contract.threads().any(Slot::was_formerly_armed);
        let escapes =
            |slot: &Slot| slot.left_unarmed() || (reached && slot.is_present() && !slot.was_armed());
        ever && !self.hot().any(escapes)
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

    pub(crate) fn thread_name(&self, index: usize) -> Name {
        let thread = self.contract.threads().find(|slot| slot.index() == index);
        thread.map_or(Name::new("?"), Slot::name)
    }
}

impl<R: AmnestyReason, const THREADS: usize> fmt::Debug for Report<'_, R, THREADS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report").field("outcome", &self.outcome()).finish_non_exhaustive()
    }
}
