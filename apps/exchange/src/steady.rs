//! What the hot thread costs from the end of the warm-up on (design/exchange.md `.run.steady`).

use tripoint::contract::{ViolationClass, current};
use tripoint::{Arena, ArenaVm};

/// Readings of this thread, and of the arena. All of them grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// Bytes that the arena newly committed, or refused to.
    pub arena_growth: u64,
    /// How often an allocation point had its buffer filled by its pool.
    pub fills: u64,
    /// Calls of the global allocator, frees included.
    pub allocator_calls: u64,
    /// Calls of the kernel for memory, as the contract counts them.
    pub memory_calls: u64,
    /// Page faults, by the kernel's own count; `None` if it does not say.
    pub minor_faults: Option<u64>,
    pub major_faults: Option<u64>,
    /// How often the kernel gave this thread's processor to other work; `None` if it does not say.
    pub interruptions: Option<u64>,
}

impl Readings {
    /// Takes them.
    pub fn take(arena: &ArenaVm) -> Self {
        let count = |class| current::count(class).0 as u64;
        let calls = [ViolationClass::Alloc, ViolationClass::Realloc, ViolationClass::Dealloc];
        let usage = usage_of_this_thread();
        Self {
            arena_growth: arena.counts().growth.get() + arena.counts().growth_refused.get(),
            fills: arena.counts().fills.get(),
            allocator_calls: calls.into_iter().map(count).sum(),
            memory_calls: count(ViolationClass::MemoryCall),
            minor_faults: usage.map(|usage| usage.minor_faults),
            major_faults: usage.map(|usage| usage.major_faults),
            interruptions: usage.map(|usage| usage.interruptions),
        }
    }

    /// What came since earlier ones.
    pub fn since(&self, earlier: &Self) -> Self {
        let more =
            |now: Option<u64>, earlier: Option<u64>| now.zip(earlier).map(|(now, earlier)| now - earlier);
        Self {
            arena_growth: self.arena_growth - earlier.arena_growth,
            fills: self.fills - earlier.fills,
            allocator_calls: self.allocator_calls - earlier.allocator_calls,
            memory_calls: self.memory_calls - earlier.memory_calls,
            minor_faults: more(self.minor_faults, earlier.minor_faults),
            major_faults: more(self.major_faults, earlier.major_faults),
            interruptions: more(self.interruptions, earlier.interruptions),
        }
    }

    /// Whether nothing was asked of the arena, the global allocator and the kernel. Other work that took the processor is no
    /// fault of the thread.
    pub fn are_zero(&self) -> bool {
        let faults = self.minor_faults.unwrap_or(0) + self.major_faults.unwrap_or(0);
        self.arena_growth + self.allocator_calls + self.memory_calls + faults == 0
    }
}

/// What the kernel has counted of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Page faults without and with a device.
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Involuntary context switches.
    pub interruptions: u64,
}

/// What the kernel has counted of this thread so far.
#[cfg(target_os = "linux")]
pub fn usage_of_this_thread() -> Option<Usage> {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is valid for the kernel to write a `rusage` to.
    let status = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if status != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so the kernel wrote all of it.
    let usage = unsafe { usage.assume_init() };
    Some(Usage {
        minor_faults: usage.ru_minflt.try_into().ok()?,
        major_faults: usage.ru_majflt.try_into().ok()?,
        interruptions: usage.ru_nivcsw.try_into().ok()?,
    })
}

/// What the kernel has counted of this thread so far; `None`: it does not say.
#[cfg(not(target_os = "linux"))]
pub const fn usage_of_this_thread() -> Option<Usage> {
    None
}

/// The processes that wanted a processor, on average over the last minute.
pub fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// The bytes of memory that the process has, and had at most.
pub fn resident() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn sees_a_deliberate_first_touch() {
        // More than any allocator keeps ready, so the pages are fresh.
        let mut fresh = vec![0_u8; 64 << 20];
        let before = usage_of_this_thread().unwrap().minor_faults;
        core::hint::black_box(&mut fresh).iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        assert!(usage_of_this_thread().unwrap().minor_faults > before);
    }
}
