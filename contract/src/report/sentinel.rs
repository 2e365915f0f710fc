//! The sentinel: a cold thread's look at the whole process from time to time
//! (design/contract.md `.sentinel`).

use core::fmt;
use std::vec::Vec;

use tripoint_core::{Arena, aver};

use crate::linux::kernel::{Faults, Kernel};
use crate::linux::system_calls::LinuxKernel;
use crate::phases::contract::Contract;
use crate::phases::ledger::AmnestyReason;
use crate::thread::everywhere;
use crate::thread::slot::Slot;
use crate::thread::standing::ThreadKind;
use crate::words::class::ViolationClass;
use crate::words::lifecycle::Phase;
use crate::words::name::Name;

/// The numbers of an arena that a steady state keeps still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaReading {
    /// Bytes newly committed since the arena was made.
    pub growth: u64,
    /// Number of requests refused because the arena was frozen.
    pub growth_refused: u64,
    /// Bytes committed.
    pub committed: usize,
}

/// The numbers of the process; `None` for those that the system does not provide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessReading {
    /// When it was read, in ns of the caller's clock.
    pub time: u64,
    /// Page faults of all threads.
    pub faults: Option<Faults>,
    /// Memory behind the process's pages, in bytes.
    pub resident: Option<usize>,
    /// What C's allocator has in use, in bytes.
    pub heap_in_use: Option<usize>,
}

/// Something that the sentinel finds wrong. A warning is no violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    /// An arena grew, or was asked to, since the last look.
    ArenaGrew {
        /// The place of the arena in the sentinel's list.
        arena: usize,
        /// What it read.
        reading: ArenaReading,
    },
    /// Resident memory has passed its bound.
    ResidentGrew {
        /// Bytes at the first look, or at the last such warning.
        from: usize,
        /// Bytes now.
        to: usize,
    },
    /// C's allocator has more in use than its bound, which is the sign of a leak.
    HeapGrew {
        /// Bytes at the first look, or at the last such warning.
        from: usize,
        /// Bytes now.
        to: usize,
    },
    /// The threads of the process, hot and cold, faulted more than
    /// [`FAULT_SLACK`] times since the last look, or waited for a device.
    Faulted(Faults),
    /// The trap signal went to the contract's handler at the last look, and goes to another
    /// now. From the next poll on faults and memory calls have no site.
    TrapsDisplaced,
    /// Threads that are not registered collected heaps in SteadyState, as far as an event hook of the contract observes
    /// their arenas: each collection stops the hot threads that use the heap.
    Collected {
        /// Collections since the last look.
        collections: usize,
    },
    /// A cold thread did more than its budget allows for the time.
    OverBudget {
        /// The name of the cold thread.
        thread: Name,
        /// The class that it did too much of; `None` for all together that have no limit of their own.
        class: Option<ViolationClass>,
        /// Events of these since the period began, or since the last such warning.
        events: usize,
        /// Bytes of these.
        bytes: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArenaGrew { arena, reading } => write!(
                f,
                "arena {arena} grew: {} bytes in all, {} requests refused",
                reading.growth, reading.growth_refused
            ),
            Self::ResidentGrew { from, to } => write!(f, "resident memory grew from {from} to {to} bytes"),
            Self::HeapGrew { from, to } => write!(f, "C's heap grew from {from} to {to} bytes in use"),
            Self::Faulted(Faults { minor, major }) => {
                write!(f, "the process faulted: {minor} minor and {major} major faults since the last look")
            }
            Self::TrapsDisplaced => f.write_str(
                "another handler has taken SIGTRAP: install such handlers before the first hot thread registers",
            ),
            Self::Collected { collections } => write!(
                f,
                "threads that are not registered collected heaps {collections} times: register them as cold, with a \
                 budget for that, or collect before SteadyState"
            ),
            Self::OverBudget { thread, class, events, bytes } => {
                write!(f, "cold thread {thread} is over its budget")?;
                class.map_or(Ok(()), |class| write!(f, " of class {class}"))?;
                write!(f, ": {events} events, {bytes} bytes")
            }
        }
    }
}

/// Events and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    events: usize,
    bytes: usize,
}

impl Sum {
    fn since(self, before: Self) -> Self {
        Self { events: self.events.wrapping_sub(before.events), bytes: self.bytes.wrapping_sub(before.bytes) }
    }

    fn and(self, more: Self) -> Self {
        Self { events: self.events.wrapping_add(more.events), bytes: self.bytes.wrapping_add(more.bytes) }
    }
}

/// What the sentinel remembers of a cold thread.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    /// Of the classes without a limit of their own.
    rest: Sum,
    /// Of each of the others.
    classes: [Sum; ViolationClass::COUNT],
    /// The number of the thread among those that have had the slot.
    tenancy: usize,
    /// When the period began, and what was spent then.
    since: Option<u64>,
}

/// Looks at the process each time it is polled: at arenas, faults, resident memory, C's heap,
/// and what cold threads spend. It costs hot threads nothing but a poll of their own faults.
pub struct Sentinel<'a, R: AmnestyReason, const THREADS: usize, K: Kernel = LinuxKernel> {
    kernel: K,
    contract: &'a Contract<R, THREADS>,
    arenas: &'a [&'a dyn Arena],
    arena_readings: Vec<ArenaReading>,
    resident: Bound,
    heap: Bound,
    faults: Option<Faults>,
    had_traps: bool,
    /// The collections of threads that are not registered, and whether the phase was SteadyState.
    collections: usize,
    was_steady: bool,
    spent: [Spent; THREADS],
    last: ProcessReading,
}

/// How much memory may grow, in percent.
const GROWTH_SLACK: usize = 2;

/// Bytes that C's heap may grow in any case: a look itself takes some.
const HEAP_SLACK: usize = 64 << 10;

/// Minor faults that the process may take from one look to the next: 1 MiB of pages of
/// 4 KiB. Cold threads may fault, and hot ones are watched themselves. More faults than
/// this disturb hot threads, because each takes the lock of the address space.
pub const FAULT_SLACK: u64 = 256;

/// A number of bytes that should not grow.
#[derive(Clone, Copy, Debug, Default)]
struct Bound {
    /// Growth is measured from here: the first look, or the last warning.
    from: Option<usize>,
}

impl Bound {
    /// Returns what it grew from, if it grew too much. Each growth is reported once.
    fn passed(&mut self, to: usize, least: usize) -> Option<usize> {
        let from = *self.from.get_or_insert(to);
        let passed = to > from.saturating_add((from / 100 * GROWTH_SLACK).max(least));
        if passed {
            self.from = Some(to);
        }
        passed.then_some(from)
    }
}

impl<'a, R: AmnestyReason, const THREADS: usize> Sentinel<'a, R, THREADS> {
    /// A sentinel that has not looked yet.
    pub fn new(contract: &'a Contract<R, THREADS>, arenas: &'a [&'a dyn Arena]) -> Self {
        Self::new_on(LinuxKernel, contract, arenas)
    }
}

impl<'a, R: AmnestyReason, const THREADS: usize, K: Kernel> Sentinel<'a, R, THREADS, K> {
    /// As [`Sentinel::new`], on another kernel.
    pub fn new_on(kernel: K, contract: &'a Contract<R, THREADS>, arenas: &'a [&'a dyn Arena]) -> Self {
        Self {
            kernel,
            contract,
            arenas,
            arena_readings: arenas.iter().map(|arena| read_arena(*arena)).collect(),
            resident: Bound::default(),
            heap: Bound::default(),
            faults: None,
            had_traps: false,
            collections: everywhere::collections(),
            was_steady: contract.phase() == Phase::SteadyState,
            spent: [Spent::default(); THREADS],
            last: ProcessReading::default(),
        }
    }

    /// Looks, and reports what is wrong. Growth is reported once, and again after as much
    /// growth again. `now` is ns of any clock that only grows.
    pub fn poll(&mut self, now: u64, mut warn: impl FnMut(Warning)) {
        self.contract.request_poll();
        self.last = ProcessReading {
            time: now,
            faults: self.kernel.process_faults().ok(),
            resident: self.read_resident(),
            heap_in_use: self.kernel.heap_in_use(),
        };
        self.look_at_arenas(&mut warn);
        self.look_at_process(&mut warn);
        self.look_at_traps(&mut warn);
        self.look_at_collections(&mut warn);
        let cold = self.contract.threads().filter(|slot| slot.kind() == ThreadKind::Cold);
        for slot in cold {
            let (index, spent) = (slot.index(), self.spent.get_mut(slot.index()));
            aver!(spent.is_some(), "thread {index} of {THREADS}");
            if let Some(spent) = spent {
                look_at_budget(slot, spent, now, &mut warn);
            }
        }
    }

    /// What the last look read.
    #[must_use]
    pub const fn last(&self) -> &ProcessReading {
        &self.last
    }

    fn look_at_arenas(&mut self, warn: &mut impl FnMut(Warning)) {
        for (index, (arena, before)) in self.arenas.iter().zip(&mut self.arena_readings).enumerate() {
            let reading = read_arena(*arena);
            let grew = reading.growth != before.growth || reading.growth_refused != before.growth_refused;
            if grew {
                warn(Warning::ArenaGrew { arena: index, reading });
            }
            *before = reading;
        }
    }

    fn look_at_process(&mut self, warn: &mut impl FnMut(Warning)) {
        let ProcessReading { faults, resident, heap_in_use, .. } = self.last;
        let resident = resident.and_then(|to| Some((self.resident.passed(to, 0)?, to)));
        if let Some((from, to)) = resident {
            warn(Warning::ResidentGrew { from, to });
        }
        let heap = heap_in_use.and_then(|to| Some((self.heap.passed(to, HEAP_SLACK)?, to)));
        if let Some((from, to)) = heap {
            warn(Warning::HeapGrew { from, to });
        }
        let Some(now) = faults else { return };
        let before = self.faults.replace(now).unwrap_or(now);
        let since = Faults {
            minor: now.minor.saturating_sub(before.minor),
            major: now.major.saturating_sub(before.major),
        };
        if since.minor > FAULT_SLACK || since.major > 0 {
            warn(Warning::Faulted(since));
        }
    }

    fn look_at_traps(&mut self, warn: &mut impl FnMut(Warning)) {
        let has_traps = self.kernel.has_traps();
        if self.had_traps && !has_traps {
            warn(Warning::TrapsDisplaced);
        }
        self.had_traps = has_traps;
    }

    fn look_at_collections(&mut self, warn: &mut impl FnMut(Warning)) {
        let (collections, is_steady) =
            (everywhere::collections(), self.contract.phase() == Phase::SteadyState);
        let new = collections.wrapping_sub(self.collections);
        // Those since the last look may have been in Warmup, if that was.
        if is_steady && self.was_steady && new > 0 {
            warn(Warning::Collected { collections: new });
        }
        (self.collections, self.was_steady) = (collections, is_steady);
    }

    /// The second number of `statm` is resident pages.
    fn read_resident(&self) -> Option<usize> {
        let statm = self.kernel.read("/proc/self/statm").ok()?;
        let pages: usize = core::str::from_utf8(&statm).ok()?.split_whitespace().nth(1)?.parse().ok()?;
        pages.checked_mul(self.kernel.page_size())
    }
}

impl<R: AmnestyReason, const THREADS: usize, K: Kernel> fmt::Debug for Sentinel<'_, R, THREADS, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sentinel").field("last", &self.last).finish_non_exhaustive()
    }
}

fn read_arena(arena: &dyn Arena) -> ArenaReading {
    let counts = arena.counts();
    ArenaReading {
        growth: counts.growth.get(),
        growth_refused: counts.growth_refused.get(),
        committed: arena.sizes().committed,
    }
}

/// Warns as soon as a period's budget is spent. A new period begins when the old one is over, and for what was warned of
/// at once.
fn look_at_budget(slot: &Slot, spent: &mut Spent, now: u64, warn: &mut impl FnMut(Warning)) {
    let (budget, tenancy) = (slot.budget(), slot.attendance.tenancy());
    if spent.tenancy != tenancy {
        *spent = Spent { tenancy, ..Spent::default() };
    }
    let is_over = now.saturating_sub(*spent.since.get_or_insert(now)) >= budget.period;
    let mut warn_of = |class, Sum { events, bytes }| {
        warn(Warning::OverBudget { thread: slot.name(), class, events, bytes });
    };
    let mut rest = Sum::default();
    for (class, before) in ViolationClass::ALL.into_iter().zip(&mut spent.classes) {
        let tally = slot.tally(class);
        let sum = Sum { events: tally.count, bytes: tally.bytes };
        let Some(most) = budget.of(class) else {
            rest = rest.and(sum);
            continue;
        };
        let new = sum.since(*before);
        if new.events > most {
            warn_of(Some(class), new);
        }
        if new.events > most || is_over {
            *before = sum;
        }
    }
    let new = rest.since(spent.rest);
    let is_too_much = new.events > budget.events || new.bytes > budget.bytes;
    if is_too_much {
        warn_of(None, new);
    }
    if is_too_much || is_over {
        (spent.rest, spent.since) = (rest, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::failing::{Calls, Failing};
    use crate::phases::ledger::NoReason;

    static CONTRACT: Contract<NoReason, 1> = Contract::new();

    /// A kernel that reports this text as the pages of the process.
    fn with_pages(statm: &'static [(&'static str, &'static str)]) -> Failing<LinuxKernel> {
        Failing::new(LinuxKernel, Calls::empty()).with_files(statm)
    }

    fn warnings<K: Kernel>(sentinel: &mut Sentinel<'_, NoReason, 1, K>, kernel: K) -> Vec<Warning> {
        sentinel.kernel = kernel;
        let mut warnings = Vec::new();
        sentinel.poll(0, |warning| warnings.push(warning));
        // Other tests of this process start and end meanwhile.
        warnings.retain(|warning| !matches!(warning, Warning::Faulted(_) | Warning::HeapGrew { .. }));
        warnings
    }

    /// A bound of its own, which only this test moves.
    #[test]
    fn a_bound_allows_what_is_small_and_tells_once() {
        let mut bound = Bound::default();
        let mut passed = |to| bound.passed(to, 100);
        assert_eq!(
            [passed(1_000), passed(1_100), passed(1_101), passed(1_101)],
            [None, None, Some(1_000), None]
        );
        assert_eq!([passed(500), passed(1_201), passed(1_202)], [None, None, Some(1_101)]);
        let mut large = Bound::default();
        assert_eq!([large.passed(1 << 20, 1), large.passed((1 << 20) + (1 << 14), 1)], [None, None]);
        assert_eq!(large.passed((1 << 20) + (1 << 15), 1), Some(1 << 20));
    }

    /// Two percent above the first look are allowed, a page more is not; it is reported once.
    #[test]
    fn growing_resident_memory_is_warned_of() {
        const FIRST: &[(&str, &str)] = &[("/proc/self/statm", "9000 1000 1 1 0 1 0\n")];
        const ALLOWED: &[(&str, &str)] = &[("/proc/self/statm", "9000 1020 1 1 0 1 0\n")];
        const TOO_MUCH: &[(&str, &str)] = &[("/proc/self/statm", "9000 1021 1 1 0 1 0\n")];
        const TWICE: &[(&str, &str)] = &[("/proc/self/statm", "9000 1042 1 1 0 1 0\n")];
        let mut sentinel = Sentinel::new_on(with_pages(FIRST), &CONTRACT, &[]);
        let page = LinuxKernel.page_size();
        let grew = [Warning::ResidentGrew { from: 1_000 * page, to: 1_021 * page }];
        let again = [Warning::ResidentGrew { from: 1_021 * page, to: 1_042 * page }];
        assert_eq!(warnings(&mut sentinel, with_pages(FIRST)), []);
        assert_eq!(warnings(&mut sentinel, with_pages(ALLOWED)), []);
        assert_eq!(warnings(&mut sentinel, with_pages(TOO_MUCH)), grew);
        assert_eq!(warnings(&mut sentinel, with_pages(TOO_MUCH)), [], "told once");
        assert_eq!(warnings(&mut sentinel, with_pages(ALLOWED)), []);
        assert_eq!(warnings(&mut sentinel, with_pages(TWICE)), again);
        let text = std::format!("{}", grew[0]);
        assert!(text.contains("resident memory grew from"), "{text}");
    }
}
