//! The micro gate: a test that a piece of code is steady, which does not pass if it sees
//! nothing (design/contract.md `.gate`).

use core::fmt;
use core::hint::black_box;
use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec::Vec;

use crate::report::places::Places;
use crate::thread::current;
use crate::thread::sites::{SiteEvents, Sites};
use crate::words::class::{ViolationClass, ViolationSet};
use crate::words::detector_set::DetectorSet;
use tripoint_core::internal::Json;

/// Options for measuring a piece of code.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// Turns before the first window; by default 1,000.
    pub warm_turns: usize,
    /// Turns in a window; by default 1,000.
    pub turns: usize,
    /// Windows to try; the code passes if one of them is without an event. By default 3.
    ///
    /// An event that happens once spoils one window only; an event of each turn spoils all.
    pub windows: usize,
    /// The classes that the code is held to; by default [`ViolationSet::STEADY`].
    pub classes: ViolationSet,
}

impl Default for Steady {
    fn default() -> Self {
        Self { warm_turns: 1_000, turns: 1_000, windows: 3, classes: ViolationSet::STEADY }
    }
}

/// What a measurement found.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Whether deliberate events were seen, before the windows and after.
    pub controls_seen: bool,
    /// The detectors that took part.
    pub live: DetectorSet,
    /// The windows tried.
    pub windows: usize,
    /// Turns in a window.
    pub turns: usize,
    /// Events of the last window, by the index of their class.
    pub events: [usize; ViolationClass::COUNT],
    /// Where they were, and how many at each site, in the order in which they first occur there. Faults have no site;
    /// nor have events of further sites, if there are more than [`RING_RECORDS`](crate::RING_RECORDS).
    pub sites: Vec<SiteEvents>,
}

/// Counts of the calling thread.
#[derive(Clone, Copy)]
struct Counts([usize; ViolationClass::COUNT]);

impl Counts {
    fn take() -> Self {
        let mut counts = ViolationClass::ALL.map(|class| current::count(class).0);
        if let Some((minor, major)) = faults() {
            counts[ViolationClass::MinorFault.index()] = minor;
            counts[ViolationClass::MajorFault.index()] = major;
        }
        Self(counts)
    }

    fn since(self, start: Self, held: ViolationSet) -> [usize; ViolationClass::COUNT] {
        ViolationClass::ALL.map(|class| {
            let held = held.contains(ViolationSet::of(class));
            if held { self.0[class.index()].wrapping_sub(start.0[class.index()]) } else { 0 }
        })
    }
}

#[cfg(tripoint_kernel)]
fn faults() -> Option<(usize, usize)> {
    use crate::linux::kernel::Kernel;
    let faults = crate::linux::system_calls::LinuxKernel.thread_faults().ok()?;
    Some((usize::try_from(faults.minor).ok()?, usize::try_from(faults.major).ok()?))
}

#[cfg(not(tripoint_kernel))]
fn faults() -> Option<(usize, usize)> {
    None
}

#[cfg(tripoint_kernel)]
fn fault_deliberately() {
    use crate::linux::kernel::Kernel;
    let _ = crate::linux::system_calls::LinuxKernel.touch_fresh_page();
}

#[cfg(not(tripoint_kernel))]
fn fault_deliberately() {}

/// Causes an event for each detector, and returns the detectors that saw theirs.
fn controls() -> DetectorSet {
    let start = Counts::take();
    drop(black_box(Box::new(0_u64)));
    fault_deliberately();
    let seen = Counts::take().since(start, ViolationSet::all());
    let saw = |class: ViolationClass| seen[class.index()] > 0;
    let mut live = DetectorSet::empty();
    live.set(DetectorSet::ALLOCATOR, saw(ViolationClass::Alloc) && saw(ViolationClass::Dealloc));
    live.set(DetectorSet::FAULT_POLL, saw(ViolationClass::MinorFault));
    live
}

/// Runs `turn` until it has settled, then in windows until one is without events.
///
/// Everything is counted per thread, so that tests may run at the same time.
/// Fills and growth are counted for arenas whose event hook is [`PoolEvents`](crate::PoolEvents).
pub fn measure(steady: Steady, mut turn: impl FnMut()) -> Measured {
    let before = controls();
    let sites = Box::new(Sites::new(steady.classes));
    (0..steady.warm_turns).for_each(|_| turn());
    let mut measured = Measured {
        controls_seen: false,
        live: before,
        windows: 0,
        turns: steady.turns,
        events: [0; ViolationClass::COUNT],
        sites: Vec::new(),
    };
    for window in 1..=steady.windows.max(1) {
        measured.windows = window;
        sites.reset();
        let (start, end) = current::while_entered(&sites, || {
            let start = Counts::take();
            (0..steady.turns).for_each(|_| turn());
            (start, Counts::take())
        });
        measured.events = end.since(start, steady.classes);
        measured.sites = sites.list().collect();
        if measured.events == [0; ViolationClass::COUNT] {
            break;
        }
    }
    measured.controls_seen = before.contains(DetectorSet::ALLOCATOR) && controls() == before;
    measured
}

impl Measured {
    /// Whether the code is steady.
    ///
    /// # Errors
    /// Why it is not, or why the measurement proves nothing.
    pub fn verdict(&self) -> Result<(), &'static str> {
        match (self.controls_seen, self.events.iter().all(|&count| count == 0)) {
            (false, _) => {
                Err("a deliberate allocation was not seen: is ContractAllocator the global allocator?")
            }
            (true, false) => Err("the code is not steady"),
            (true, true) => Ok(()),
        }
    }

    /// Writes the measurement as a JSON object.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        Json::new(out).object(|json| {
            json.number("steady", self.verdict().is_ok())?;
            json.number("controls_seen", self.controls_seen)?;
            json.name("live_detectors")?;
            json.array(&mut self.live.names(), |json, name| json.value_text(name))?;
            json.number("windows", self.windows)?;
            json.number("turns", self.turns)?;
            json.name("events")?;
            json.object(|json| {
                ViolationClass::ALL
                    .into_iter()
                    .filter(|class| self.events[class.index()] > 0)
                    .try_for_each(|class| json.number(class.name(), self.events[class.index()]))
            })?;
            self.places().write_json(json)
        })
    }

    fn places(&self) -> Places {
        Places::new(&self.events, &self.sites)
    }

    /// The events of the last window in words: a line for each place.
    #[must_use]
    pub fn by_place(&self) -> String {
        let events = self.events.iter().fold(0_usize, |sum, count| sum.saturating_add(*count));
        format!("{events} events in {} turns{}", self.turns, self.places())
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_json(f)
    }
}

/// Asserts that a piece of code, once warm, does nothing that the contract
/// forbids: no call of the global allocator, no growth, no page fault; no fill either, if
/// [`Steady::classes`](crate::gate::Steady::classes) has [`ViolationSet::FILL`](crate::ViolationSet::FILL).
/// Prints what it measured as one line of JSON; if it fails, its message has a line for each place that an event came
/// from.
///
/// The test binary needs [`ContractAllocator`](crate::ContractAllocator) as its
/// global allocator. The assertion also fails if a deliberate allocation is not seen, before or
/// after: so it does not pass if it sees nothing.
///
/// ```
/// use tripoint_contract::{ContractAllocator, assert_steady, gate::Steady};
///
/// #[global_allocator]
/// static ALLOCATOR: ContractAllocator = ContractAllocator::system();
///
/// let mut sum = 0_u64;
/// assert_steady!(|| sum = std::hint::black_box(sum + 1));
///
/// let mut kept = Vec::with_capacity(10);
/// assert_steady!(Steady { turns: 10_000, ..Steady::default() }, || {
///     kept.clear();
///     kept.push(sum);
/// });
/// ```
///
/// # Panics
/// If the code is not steady, or if the measurement proves nothing.
#[macro_export]
macro_rules! assert_steady {
    ($turn:expr $(,)?) => {
        $crate::assert_steady!($crate::gate::Steady::default(), $turn)
    };
    ($steady:expr, $turn:expr $(,)?) => {{
        let measured = $crate::gate::measure($steady, $turn);
        ::std::println!("{measured}");
        if let Err(why) = measured.verdict() {
            ::std::panic!("{why}: {}", measured.by_place());
        }
    }};
}
