//! What a run has to say of the contract.

use core::fmt;

use serde::Serialize;
use serde_json::Value;
use tripoint::contract::{AmnestyReason, Report as Contract};

use crate::summary::line;

/// How the contract was kept: parts of the contract's own report, as it has them.
#[derive(Debug, Default, Serialize)]
pub struct ContractReport {
    /// Names of the detectors that were live for the hot thread.
    live_detectors: Vec<String>,
    /// Alarms of the hot thread, counted where they are raised.
    alarms: usize,
    /// The alarms that were kept: one for each turn and class.
    violations: Vec<Value>,
    /// Records that had no room to wait in. Their events are counted.
    records_lost: usize,
    amnesties: Value,
    routes: Value,
    /// Rehearsals until one was clean.
    warmup_rounds: usize,
    /// Whether the hot thread was ever bound.
    armed: bool,
    /// Steps that failed when the memory was prepared.
    missing_memory_steps: Value,
    /// What Init found of the system's settings.
    runtime: Value,
    /// What could not be locked, and what the sentinel warned of. Only in the summary,
    /// because it is no violation.
    #[serde(skip)]
    warnings: Vec<String>,
}

impl ContractReport {
    /// The parts of `contract`, whose records are the alarms.
    pub fn new<R: AmnestyReason, const THREADS: usize>(
        contract: &Contract<'_, R, THREADS>,
        warnings: Vec<String>,
    ) -> Self {
        let mut text = String::new();
        // Writing to a string does not fail, and what is written is JSON.
        let _ = contract.write_json(&mut text);
        let mut parts: Value = serde_json::from_str(&text).unwrap_or_default();
        let mut take = |name| parts.get_mut(name).map(Value::take).unwrap_or_default();
        Self {
            live_detectors: contract.live().names().map(str::to_owned).collect(),
            alarms: contract.alarms(),
            records_lost: contract.records_lost(),
            violations: take("violations").as_array_mut().map(core::mem::take).unwrap_or_default(),
            amnesties: take("amnesties"),
            routes: take("routes"),
            warmup_rounds: contract.contract.warmup_rounds(),
            armed: contract.was_armed(),
            missing_memory_steps: take("missing_memory_steps"),
            runtime: take("runtime"),
            warnings,
        }
    }
}

/// The part of the summary.
impl fmt::Display for ContractReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.armed { "armed" } else { "not armed" };
        match self.warmup_rounds {
            0 => writeln!(f, "{:<24}{state}; there was no rehearsal", "contract")?,
            1 => writeln!(f, "{:<24}{state} after 1 rehearsal", "contract")?,
            rounds => writeln!(f, "{:<24}{state} after {rounds} rehearsals", "contract")?,
        }
        writeln!(f, "{:<24}{}", "  live detectors", self.live_detectors.join(" "))?;
        writeln!(f, "{:<24}{}", "  alarms", self.alarms)?;
        for alarm in &self.violations {
            let part = |name: &str| alarm[name].as_str().unwrap_or("?");
            writeln!(f, "{:<24}{} x{} in {}", "", part("class"), alarm["count"], part("site"))?;
        }
        if self.records_lost > 0 {
            writeln!(f, "{:<24}{}, though their events are counted", "  records lost", self.records_lost)?;
        }
        for finding in self.runtime.as_array().into_iter().flatten() {
            if finding["verdict"] != "good" {
                let part = |name: &str| finding[name].as_str().unwrap_or("?");
                line(f, "  setting", format_args!("{}: {}", part("item"), part("advice")))?;
            }
        }
        self.warnings.iter().try_for_each(|warning| line(f, "  warning", format_args!("{warning}")))
    }
}
