//! Whether the system is set up for a steady state (design/contract.md `.runtime`). This only
//! looks, and changes nothing.

use core::fmt;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use crate::linux::kernel::{Errno, Kernel};
use crate::linux::system_calls::LinuxKernel;
use tripoint_core::internal::Json;

/// A setting of the system or the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeItem {
    /// Transparent huge pages: `always` compacts memory at faults.
    HugePages,
    /// Overcommit: with 2 a commit can be refused, with 0 and 1 memory can run out
    /// after it.
    Overcommit,
    /// How much memory the process may lock.
    LockedMemory,
    /// NUMA balancing: takes access away from pages to see which threads use them.
    NumaBalancing,
    /// Swap: pages that were brought in may go out.
    Swap,
    /// Compaction: moves pages, also locked ones if it may, and a page that was moved faults once.
    Compaction,
    /// Whether a process may open the fault events of its threads.
    PerfEvents,
    /// Lazy binding: the first call of a function in a library runs the loader.
    LazyBinding,
    /// Tunables of glibc's allocator.
    AllocatorTunables,
}

impl RuntimeItem {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::HugePages,
        Self::Overcommit,
        Self::LockedMemory,
        Self::NumaBalancing,
        Self::Swap,
        Self::Compaction,
        Self::PerfEvents,
        Self::LazyBinding,
        Self::AllocatorTunables,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HugePages => "transparent_huge_pages",
            Self::Overcommit => "overcommit",
            Self::LockedMemory => "locked_memory",
            Self::NumaBalancing => "numa_balancing",
            Self::Swap => "swap",
            Self::Compaction => "compaction",
            Self::PerfEvents => "perf_events",
            Self::LazyBinding => "lazy_binding",
            Self::AllocatorTunables => "allocator_tunables",
        }
    }
}

/// Whether a setting is good for a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The setting is good.
    Good,
    /// The setting is not good.
    Advisory,
    /// The setting is not good, and the program requires it.
    Fatal,
}

impl Verdict {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Advisory => "advisory",
            Self::Fatal => "fatal",
        }
    }
}

/// One setting: its value, and whether it is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which setting was looked at.
    pub item: RuntimeItem,
    /// Its value as the system states it; `unknown` if the system does not.
    pub value: String,
    /// Whether it is good. A value that is unknown is not good.
    pub verdict: Verdict,
    /// What to do about a value that is not good.
    pub advice: &'static str,
}

/// Options for looking at the system's settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuntimeOptions<'a> {
    /// The settings that are fatal if they are not good; by default none.
    pub fatal: &'a [RuntimeItem],
    /// Bytes the process must be allowed to lock; by default none.
    pub locked_memory: u64,
}

/// All findings, in the order of [`RuntimeItem::ALL`].
#[derive(Clone, Debug)]
pub struct RuntimeReport {
    /// One for each item.
    pub findings: Vec<Finding>,
}

impl RuntimeReport {
    /// The worst of all verdicts. If it is fatal, the program should not go on.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Good)
    }

    /// Writes the findings as a JSON array.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        self.write_array(&mut Json::new(out))
    }

    pub(crate) fn write_array(&self, json: &mut Json<'_>) -> fmt::Result {
        json.array(&mut self.findings.iter(), |json, finding| {
            json.object(|json| {
                json.text("item", finding.item.name())?;
                json.text("value", &finding.value)?;
                json.text("verdict", finding.verdict.name())?;
                json.text("advice", finding.advice)
            })
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { item, value, verdict, advice } = self;
        write!(f, "{:<24}{:<10}{value}", item.name(), verdict.name())?;
        if *verdict == Verdict::Good { Ok(()) } else { write!(f, " ({advice})") }
    }
}

impl fmt::Display for RuntimeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.iter().try_for_each(|finding| writeln!(f, "{finding}"))
    }
}

/// Looks at every setting.
///
/// ```
/// use tripoint_contract::linux::{RuntimeItem, RuntimeOptions, Verdict, validate_runtime};
///
/// let report = validate_runtime(RuntimeOptions { fatal: &[RuntimeItem::Swap], ..Default::default() });
/// for finding in report.findings.iter().filter(|finding| finding.verdict != Verdict::Good) {
///     eprintln!("{}: {}", finding.item.name(), finding.advice);
/// }
/// ```
#[must_use]
pub fn validate_runtime(options: RuntimeOptions<'_>) -> RuntimeReport {
    validate_runtime_on(&LinuxKernel, options)
}

/// Looks at every setting of another kernel.
#[must_use]
pub fn validate_runtime_on<K: Kernel>(kernel: &K, options: RuntimeOptions<'_>) -> RuntimeReport {
    let finding = |item| {
        let (value, good, advice) = look(kernel, item, &options);
        let verdict = match (good, options.fatal.contains(&item)) {
            (true, _) => Verdict::Good,
            (false, false) => Verdict::Advisory,
            (false, true) => Verdict::Fatal,
        };
        let value = value.unwrap_or_else(|| "unknown".to_string());
        Finding { item, value, verdict, advice }
    };
    RuntimeReport { findings: RuntimeItem::ALL.into_iter().map(finding).collect() }
}

type Look = (Option<String>, bool, &'static str);

fn look<K: Kernel>(kernel: &K, item: RuntimeItem, options: &RuntimeOptions<'_>) -> Look {
    match item {
        RuntimeItem::HugePages => huge_pages(kernel),
        RuntimeItem::Overcommit => setting(
            text(kernel, "/proc/sys/vm/overcommit_memory"),
            |value| value == "2",
            "set vm.overcommit_memory to 2, so that a lack of memory shows at commit",
        ),
        RuntimeItem::LockedMemory => locked_memory(kernel, options.locked_memory),
        RuntimeItem::NumaBalancing => setting(
            present(kernel, "/proc/sys/kernel/numa_balancing"),
            |value| value.starts_with('0'),
            "set kernel.numa_balancing to 0: it makes pages fault to see which threads use them",
        ),
        RuntimeItem::Swap => swap(kernel),
        RuntimeItem::Compaction => setting(
            present(kernel, "/proc/sys/vm/compact_unevictable_allowed"),
            |value| value.starts_with('0'),
            "lock the arena's memory, and set vm.compact_unevictable_allowed to 0: pages that compaction moves fault",
        ),
        RuntimeItem::PerfEvents => setting(
            perf_events(kernel),
            |value| value == OPENED,
            "allow perf_event_open (kernel.perf_event_paranoid at most 2, and no sandbox), or faults have no site",
        ),
        RuntimeItem::LazyBinding => setting(
            binding(kernel),
            |value| value != "lazy",
            "link with -z now, or set LD_BIND_NOW, so that no first call runs the loader",
        ),
        RuntimeItem::AllocatorTunables => allocator_tunables(kernel),
    }
}

fn setting(value: Option<String>, is_good: impl Fn(&str) -> bool, advice: &'static str) -> Look {
    let good = value.as_deref().is_some_and(is_good);
    (value, good, advice)
}

/// A file's text, without space around it.
fn text<K: Kernel>(kernel: &K, path: &str) -> Option<String> {
    let bytes = kernel.read(path).ok()?;
    Some(core::str::from_utf8(&bytes).ok()?.trim().to_string())
}

/// The value that a report shows if the kernel opened an event.
const OPENED: &str = "opened";

/// Tries to open one, because a sandbox may refuse what the setting allows.
fn perf_events<K: Kernel>(kernel: &K) -> Option<String> {
    let Err(Errno(number)) = kernel.try_fault_event() else { return Some(OPENED.to_string()) };
    let level = text(kernel, "/proc/sys/kernel/perf_event_paranoid");
    Some(format!("refused with code {number}, paranoid {}", level.as_deref().unwrap_or("unknown")))
}

/// A kernel that does not do what the file is about (NUMA, compaction) has no such file.
fn present<K: Kernel>(kernel: &K, path: &str) -> Option<String> {
    match kernel.read(path) {
        Err(Errno(libc::ENOENT)) => Some("0 (absent)".to_string()),
        _ => text(kernel, path),
    }
}

fn huge_pages<K: Kernel>(kernel: &K) -> Look {
    let modes = text(kernel, "/sys/kernel/mm/transparent_hugepage/enabled");
    let chosen = modes.and_then(|modes| {
        let (_, chosen) = modes.split_once('[')?;
        Some(chosen.split_once(']')?.0.to_string())
    });
    let advice = "set transparent_hugepage to madvise or never: always compacts memory at page faults";
    setting(chosen, |mode| mode != "always", advice)
}

fn locked_memory<K: Kernel>(kernel: &K, needed: u64) -> Look {
    let limits = text(kernel, "/proc/self/limits");
    let limit = limits.and_then(|limits| {
        let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
        line.split_whitespace().next().map(ToString::to_string)
    });
    let enough =
        |limit: &str| limit == "unlimited" || limit.parse::<u64>().is_ok_and(|limit| limit >= needed);
    setting(limit, enough, "raise the limit of locked memory (ulimit -l) to what the arena locks")
}

fn swap<K: Kernel>(kernel: &K) -> Look {
    let areas = text(kernel, "/proc/swaps").map(|swaps| swaps.lines().skip(1).count());
    let swappiness = text(kernel, "/proc/sys/vm/swappiness");
    let value =
        areas.zip(swappiness).map(|(areas, swappiness)| format!("{areas} areas, swappiness {swappiness}"));
    setting(value, |value| value.starts_with("0 areas"), "turn swap off, or lock the arena's memory")
}

fn binding<K: Kernel>(kernel: &K) -> Option<String> {
    if kernel.variable("LD_BIND_NOW").is_some_and(|value| !value.is_empty()) {
        return Some("now (LD_BIND_NOW)".to_string());
    }
    Some(if kernel.binds_now() { "now" } else { "lazy" }.to_string())
}

/// A tunable of glibc's allocator: its names, and the value it needs.
struct Tunable {
    name: &'static str,
    variable: &'static str,
    is_good: fn(u64) -> bool,
}

/// Bytes of free memory at the end of the heap that are kept in any case.
const TRIM_THRESHOLD: u64 = 1 << 30;

/// The tunables that keep glibc from mapping and trimming at run time.
const TUNABLES: [Tunable; 2] = [
    Tunable { name: "glibc.malloc.mmap_max", variable: "MALLOC_MMAP_MAX_", is_good: |value| value == 0 },
    Tunable {
        name: "glibc.malloc.trim_threshold",
        variable: "MALLOC_TRIM_THRESHOLD_",
        is_good: |value| value >= TRIM_THRESHOLD,
    },
];

/// The settings of glibc's allocator in the environment. Those that the program itself makes
/// (`mallopt`) cannot be seen.
fn allocator_tunables<K: Kernel>(kernel: &K) -> Look {
    let advice = "set GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776, so that \
                  glibc neither maps nor trims as it goes";
    let tunables = kernel.variable("GLIBC_TUNABLES").unwrap_or_default();
    let of = |tunable: &Tunable| {
        let mut set = tunables
            .split(':')
            .filter_map(|set| set.split_once('='))
            .filter(|(name, _)| *name == tunable.name);
        // The last setting of a name counts.
        set.next_back().map(|(_, value)| value.to_string()).or_else(|| kernel.variable(tunable.variable))
    };
    let values = TUNABLES.each_ref().map(of);
    let is_good = |(tunable, value): (&Tunable, &Option<String>)| {
        value.as_deref().and_then(number).is_some_and(tunable.is_good)
    };
    let good = TUNABLES.iter().zip(&values).all(is_good);
    let name =
        |(tunable, value): (&Tunable, &Option<String>)| Some(format!("{}={}", tunable.name, value.as_ref()?));
    let set = TUNABLES.iter().zip(&values).filter_map(name).collect::<Vec<_>>().join(" ");
    (Some(if set.is_empty() { "default".to_string() } else { set }), good, advice)
}

/// A number as glibc parses it: decimal, hexadecimal, or negative for a very large one.
fn number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    text.parse().ok().or_else(|| Some(text.parse::<i64>().ok()?.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_glibc_does() {
        assert_eq!([number("0"), number("0x10"), number("-1")], [Some(0), Some(16), Some(u64::MAX)]);
        assert_eq!([number(""), number("many"), number("1k")], [None; 3]);
    }
}
