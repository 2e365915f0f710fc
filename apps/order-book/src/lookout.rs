//! The look at the whole process, now and then, while the hot thread is armed
//! (design/order-book.md `.contract.sentinel`).

use tripoint::Arena;
use tripoint::contract::Contract;

#[cfg(target_os = "linux")]
use tripoint::contract::{Sentinel, Warning};

use crate::coordinator::Reason;

/// The sentinel of Linux, with what it warned of. Elsewhere there is none, and hot
/// threads are only asked to poll.
pub struct Lookout<'a> {
    #[cfg(target_os = "linux")]
    sentinel: Sentinel<'a, Reason, 1>,
    #[cfg(not(target_os = "linux"))]
    contract: &'a Contract<Reason, 1>,
    /// The last warning of each kind.
    warnings: [Option<String>; KINDS],
}

/// Kinds of warnings.
const KINDS: usize = 7;

#[cfg(target_os = "linux")]
const fn kind(warning: &Warning) -> usize {
    match warning {
        Warning::ArenaGrew { .. } => 0,
        Warning::ResidentGrew { .. } => 1,
        Warning::OverBudget { .. } => 2,
        Warning::HeapGrew { .. } => 3,
        Warning::Faulted(_) => 4,
        Warning::TrapsDisplaced => 5,
        Warning::Collected { .. } => 6,
    }
}

impl<'a> Lookout<'a> {
    #[cfg(target_os = "linux")]
    pub fn new(contract: &'a Contract<Reason, 1>, arenas: &'a [&'a dyn Arena]) -> Self {
        Self { sentinel: Sentinel::new(contract, arenas), warnings: Default::default() }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn new(contract: &'a Contract<Reason, 1>, _arenas: &'a [&'a dyn Arena]) -> Self {
        Self { contract, warnings: Default::default() }
    }

    /// Looks, and has the hot thread poll. `now` is ns.
    #[cfg(target_os = "linux")]
    pub fn look(&mut self, now: u64) {
        let warnings = &mut self.warnings;
        self.sentinel.poll(now, |warning| warnings[kind(&warning)] = Some(warning.to_string()));
    }

    /// Has the hot thread poll.
    #[cfg(not(target_os = "linux"))]
    pub fn look(&mut self, _now: u64) {
        self.contract.request_poll();
    }

    pub fn warnings(self) -> Vec<String> {
        self.warnings.into_iter().flatten().collect()
    }
}
