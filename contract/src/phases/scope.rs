//! Scopes that are steady: what a thread does in one must be no event, whatever it calls
//! (design/contract.md `.scope`).

use core::fmt;
use core::marker::PhantomData;
use std::vec::Vec;

use tripoint_core::internal::{AtomicBool, AtomicUsize, Once, Ordering};
use tripoint_core::{Error, Result};

use crate::phases::policy::{Policies, Policy};
use crate::thread::current;
use crate::thread::sites::{SiteEvents, Sites};
use crate::words::class::{ViolationClass, ViolationSet};
use crate::words::record::{Record, RecordKind};

/// A function, or another scope, that is steady: from where a thread enters it to its end, nothing that the thread does
/// may allocate, free, or have a pool or arena grow, whatever it calls. Make it a `static`.
///
/// It needs no [`Contract`](crate::Contract), only [`ContractAllocator`](crate::ContractAllocator) as the program's
/// global allocator, and for growth [`PoolEvents`](crate::PoolEvents) as the arena's event hook. On a thread that is
/// registered with a contract, events count in the scope if they are judged there: not before the thread is armed, and
/// not in an amnesty. Page faults, memory calls and waits are seen by the contract alone.
///
/// ```
/// use tripoint_contract::{ContractAllocator, SteadyScope};
///
/// #[global_allocator]
/// static ALLOCATOR: ContractAllocator = ContractAllocator::system();
/// static PROCESS: SteadyScope = SteadyScope::new("process");
///
/// fn process(packets: &[u8], kept: &mut Vec<u8>) -> Option<u8> {
///     let _steady = PROCESS.enter();
///     let last = *packets.last()?; // it may return early, or panic
///     kept.push(last);
///     Some(last)
/// }
///
/// let mut kept = Vec::with_capacity(1);
/// process(&[1, 2], &mut kept);
/// assert!(PROCESS.is_steady());
/// process(&[3], &mut kept); // there is no room
/// println!("{PROCESS}"); // with the places of the first entry that had an event
/// assert_eq!(PROCESS.violations(), 1);
/// ```
///
/// Scopes nest, also in recursion: an event counts in each scope that its thread is in, and once in each. Further
/// scopes than eight around one place do not count.
pub struct SteadyScope {
    sites: Sites,
    policies: Once<Policies>,
    was_entered: AtomicBool,
    violations: AtomicUsize,
}

impl SteadyScope {
    /// A scope that is held to [`ViolationSet::STEADY`].
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self::with_classes(name, ViolationSet::STEADY)
    }

    /// A scope that is held to these classes.
    #[must_use]
    pub const fn with_classes(name: &'static str, classes: ViolationSet) -> Self {
        Self {
            sites: Sites::of_scope(name, classes),
            policies: Once::new(),
            was_entered: AtomicBool::new(false),
            violations: AtomicUsize::new(0),
        }
    }

    /// Sets what violations do; by default [`Policy::AlarmOnce`] for all classes. A scope is judged when it ends, as a
    /// turn of a hot thread is at its check. FailFast then gets the events of the class so far, with the first site;
    /// [`Record::thread`] is zero if the thread is not registered.
    ///
    /// ```
    /// use tripoint_contract::{Policies, Policy, SteadyScope};
    ///
    /// static PROCESS: SteadyScope = SteadyScope::new("process");
    ///
    /// // At the start of the program: as the environment says.
    /// PROCESS.set_policies(Policies::all(Policy::AlarmOnce).from_environment()?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parameter`] if they were set before.
    pub fn set_policies(&self, policies: Policies) -> Result<()> {
        let mut is_set = false;
        self.policies.get_or_try_init(|| {
            is_set = true;
            Ok(policies)
        })?;
        if is_set {
            Ok(())
        } else {
            Err(Error::Parameter(
                "the scope has its policies already: set them once, where the program starts",
            ))
        }
    }

    /// Enters the scope on the calling thread. It ends when the entry is dropped.
    #[inline]
    pub fn enter(&'static self) -> SteadyEntry {
        if !self.was_entered() {
            self.prepare();
        }
        SteadyEntry { scope: self, place: current::enter(&self.sites), not_send: PhantomData }
    }

    /// Brings in what an event needs, so that it is no page fault.
    #[cold]
    fn prepare(&self) {
        self.sites.prefault();
        current::prepare_walks();
        self.was_entered.store(true, Ordering::Relaxed);
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.sites.name()
    }

    /// Whether the scope was entered. One that never was proves nothing.
    #[inline]
    #[must_use]
    pub fn was_entered(&self) -> bool {
        self.was_entered.load(Ordering::Relaxed)
    }

    /// How many entries have ended in which there was an event. Those of a scope within itself count with the outermost.
    #[must_use]
    pub fn violations(&self) -> usize {
        self.violations.load(Ordering::Relaxed)
    }

    /// Whether there was no event in the scope so far.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.events() == [0; ViolationClass::COUNT]
    }

    /// The number of events, by the index of their class.
    #[must_use]
    pub fn events(&self) -> [usize; ViolationClass::COUNT] {
        self.sites.counts()
    }

    /// Where the events were, and how many at each site. The others happened after the alarm of
    /// [`Policy::AlarmOnce`], or at further sites than [`RING_RECORDS`](crate::RING_RECORDS).
    #[must_use]
    pub fn sites(&self) -> Vec<SiteEvents> {
        self.sites.list().collect()
    }

    /// Judges what happened since the scope was entered, on the thread that was in it.
    #[cold]
    #[inline(never)]
    fn judge(&self, seen: ViolationSet) {
        self.violations.fetch_add(1, Ordering::Relaxed);
        let policies = self.policies.get().copied().unwrap_or(Policies::all(Policy::AlarmOnce));
        for class in seen.classes() {
            match policies.of(class) {
                Policy::FailFast => (policies.fail_fast)(&self.alarm(class)),
                Policy::Quarantine => {}
                Policy::AlarmOnce => self.sites.mute(ViolationSet::of(class)),
            }
        }
    }

    fn alarm(&self, class: ViolationClass) -> Record {
        Record {
            kind: RecordKind::Alarm,
            class,
            thread: current::slot().map_or(0, |slot| slot.index()),
            serial: 0,
            count: self.events()[class.index()],
            bytes: self.sites.bytes(class),
            address: 0,
            call: 0,
            step: None,
            time: current::time(),
            reason: 0,
            site: self.sites.first(class),
        }
    }
}

impl fmt::Debug for SteadyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteadyScope")
            .field("name", &self.name())
            .field("was_entered", &self.was_entered())
            .field("violations", &self.violations())
            .finish_non_exhaustive()
    }
}

/// The calling thread is in a [`SteadyScope`] until this is dropped.
///
/// It belongs to the thread that entered:
/// ```compile_fail,E0277
/// use tripoint_contract::SteadyScope;
///
/// static PROCESS: SteadyScope = SteadyScope::new("process");
/// let entry = PROCESS.enter();
/// std::thread::spawn(move || drop(entry));
/// ```
#[must_use = "a scope ends when its entry is dropped: bind it to a name such as `_steady`"]
pub struct SteadyEntry {
    scope: &'static SteadyScope,
    /// Where the scope's events are entered from; `None` if too many scopes are around this one.
    place: Option<usize>,
    not_send: PhantomData<*mut ()>,
}

impl Drop for SteadyEntry {
    #[inline]
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let seen = current::leave(place);
        if !seen.is_empty() {
            current::while_judging(self.scope.name(), || self.scope.judge(seen));
        }
    }
}

impl fmt::Debug for SteadyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SteadyEntry").field("scope", &self.scope.name()).finish_non_exhaustive()
    }
}
