//! Records of a report that belong together.

use core::fmt;

#[cfg(feature = "std")]
use tripoint_core::StepTime;

use crate::phases::ledger::AmnestyReason;
use crate::report::findings::Report;
#[cfg(feature = "std")]
use crate::report::resolve::WithCallers;
use crate::words::class::ViolationClass;
use crate::words::record::{Record, RecordKind};

/// The step that took longer.
#[cfg(feature = "std")]
fn longer(one: Option<StepTime>, other: Option<StepTime>) -> Option<StepTime> {
    [one, other].into_iter().flatten().max_by_key(|step| step.taken)
}

/// Records that share kind, class, thread, call, reason, place and callers.
pub(crate) struct Group {
    /// The first record, with the events and bytes of all, and the longest step.
    pub(crate) sum: Record,
    pub(crate) records: usize,
    pub(crate) last_time: u64,
}

impl Group {
    const fn new(first: Record) -> Self {
        Self { sum: first, records: 1, last_time: first.time }
    }

    #[cfg(feature = "std")]
    fn add(&mut self, record: &Record) {
        self.sum.count = self.sum.count.wrapping_add(record.count);
        self.sum.bytes = self.sum.bytes.wrapping_add(record.bytes);
        self.sum.step = longer(self.sum.step, record.step);
        self.last_time = record.time;
        self.records += 1;
    }
}

impl<'a, R: AmnestyReason, const THREADS: usize> Report<'a, R, THREADS> {
    /// The records grouped by place, in the order in which the places first occur.
    #[cfg(feature = "std")]
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group> + use<R, THREADS> {
        use std::string::ToString;
        use std::vec::Vec;

        let (mut groups, mut keys) = (Vec::<Group>::new(), Vec::new());
        for record in self.records {
            let place = WithCallers(self.symbols, &record.site).to_string();
            let call = if record.class.is_of_calls() { record.call } else { 0 };
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
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group> + use<'a, R, THREADS> {
        self.records.iter().copied().map(Group::new)
    }
}

/// The system call of a record.
pub(crate) fn call_of(record: &Record) -> Option<CallName> {
    (record.class.is_of_calls() && record.call != 0).then_some(CallName(record.call))
}

/// The reason of the amnesty that a record is of.
pub(crate) fn reason_of<R: AmnestyReason>(record: &Record) -> Option<&'static str> {
    let has_reason = record.kind == RecordKind::Excused || record.class == ViolationClass::AmnestyOverrun;
    has_reason.then(|| R::NAMES.get(record.reason).copied().unwrap_or("?"))
}

/// The name of a system call, or its number.
pub(crate) struct CallName(usize);

impl fmt::Display for CallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(tripoint_kernel)]
        if let Some(name) = crate::linux::calls::call_name(self.0) {
            return f.write_str(name);
        }
        write!(f, "{}", self.0)
    }
}
