//! What the calling thread has done: counts of its own, which no other thread sees,
//! and the slot that it is registered with.
//!
//! All of it is initialised at compile time and has no destructor, so that using
//! it never allocates, also in a signal handler and at the end of a thread
//! (design/contract.md `.thread-local`).

use core::cell::Cell;
use core::hint::black_box;
use core::ptr::{self, NonNull};
use std::boxed::Box;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

use tripoint_core::Event;
use tripoint_core::internal::{AllocationCountdown, Defer};
#[cfg(any(feature = "interpose-malloc", tripoint_kernel))]
use tripoint_core::internal::{Ordering, compiler_fence};
use tripoint_stack::Site;

use crate::thread::observation::{Evidence, Observation};
use crate::thread::sites::Sites;
use crate::thread::slot::Slot;
use crate::words::class::{ViolationClass, ViolationSet};
use crate::words::detector_set::DetectorSet;

/// How many tables the events of one thread may be entered in at the same time.
const PLACES: usize = 8;

/// A place for a table that the thread's events are entered in, and the classes of those since then. A free place has
/// neither, also for a handler that interrupts [`Current::enter`] or [`Current::leave`].
struct Place {
    /// How often the table was entered and not left; zero if the place is free.
    depth: Cell<usize>,
    sites: Cell<Option<NonNull<Sites>>>,
    seen: Cell<ViolationSet>,
}

impl Place {
    const fn free() -> Self {
        Self { depth: Cell::new(0), sites: Cell::new(None), seen: Cell::new(ViolationSet::empty()) }
    }
}

/// The thread's own state.
struct Current {
    counts: [Cell<usize>; ViolationClass::COUNT],
    bytes: [Cell<usize>; ViolationClass::COUNT],
    /// How many bytes may be allocated before that needs more than to be counted: those before the
    /// sampler's next stop, and none while the thread is active. So one compare serves both.
    countdown: AllocationCountdown,
    /// The sampler's countdown while the thread is active; otherwise one that has ended.
    set_aside: AllocationCountdown,
    /// Whether events need more than to be counted.
    active: Cell<bool>,
    slot: Cell<Option<&'static Slot>>,
    /// Whether the next event is wanted, also if the slot only counts it.
    watching: Cell<bool>,
    /// Whether it is wanted for `watched`.
    wants_first: Cell<bool>,
    watched: Cell<Option<(ViolationClass, Site)>>,
    places: [Place; PLACES],
    /// Whether events are entered in no table: one is being entered.
    entering: Cell<bool>,
    /// The scope that is being judged.
    judged: Cell<Option<&'static str>>,
    /// Whether the trap's handler is at work.
    #[cfg(tripoint_kernel)]
    handling: Cell<bool>,
    /// Whether the wrapper has called the allocator inside it.
    #[cfg(feature = "interpose-malloc")]
    inside_allocator: Cell<bool>,
}

std::thread_local! {
    static CURRENT: Current = const {
        Current {
            counts: [const { Cell::new(0) }; ViolationClass::COUNT],
            bytes: [const { Cell::new(0) }; ViolationClass::COUNT],
            countdown: AllocationCountdown::new(),
            set_aside: AllocationCountdown::new(),
            active: Cell::new(false),
            slot: Cell::new(None),
            watching: Cell::new(false),
            wants_first: Cell::new(false),
            watched: Cell::new(None),
            places: [const { Place::free() }; PLACES],
            entering: Cell::new(false),
            judged: Cell::new(None),
            #[cfg(tripoint_kernel)]
            handling: Cell::new(false),
            #[cfg(feature = "interpose-malloc")]
            inside_allocator: Cell::new(false),
        }
    };
}

// With a destructor it would not exist as long as its thread: see `with_current`.
const _: () = assert!(!core::mem::needs_drop::<Current>());

/// Calls `work` with the calling thread's own state.
///
/// If `LocalKey::with` is called with `work` itself, the compiler does not inline it in every program, and a pair of
/// calls of the allocator then took 23 instructions more. So it returns only the address.
#[inline(always)]
fn with_current<R>(work: impl FnOnce(&Current) -> R) -> R {
    let current = CURRENT.with(ptr::from_ref);
    // SAFETY: the thread-local has no destructor, so it exists as long as this thread, and the reference does
    // not leave this call: `work` takes one of any lifetime.
    work(unsafe { &*current })
}

/// Counts an event of the calling thread, and charges it to the thread's slot.
///
/// Call this in a detector of your own. It costs two additions and a branch while the thread
/// is not registered.
#[inline]
pub fn observe(observation: Observation) {
    with_current(|current| {
        current.count(&observation);
        if current.active.get() && !current.is_only_counted(&observation) {
            match observation {
                Observation { class, count, bytes, address, call, step: None } => {
                    charge(class, count, bytes, address, call);
                }
                observation => charge_step(&observation),
            }
        }
    });
}

/// Counts an event of a heap in the slot of the calling thread, if it is registered.
pub(crate) fn count_heap_event(event: &Event) {
    if let Some(slot) = slot() {
        slot.count_heap_event(event, elapsed);
    }
}

/// Nanoseconds since the first call, by a clock that never goes back.
fn elapsed() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let since = BEGIN.get_or_init(Instant::now).elapsed();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// As [`observe`], for an allocation of `size` bytes. Returns whether the thread's sampler has a stop in
/// them.
#[inline(always)]
pub(crate) fn observe_allocation(class: ViolationClass, size: usize) -> bool {
    with_current(|current| {
        current.count(&Observation::new(class, size));
        !current.countdown.pass(size) && current.allocate_slowly(class, size)
    })
}

impl Current {
    #[inline(always)]
    fn count(&self, observation: &Observation) {
        let index = observation.class.index();
        self.counts[index].set(self.counts[index].get().wrapping_add(observation.count));
        self.bytes[index].set(self.bytes[index].get().wrapping_add(observation.bytes));
    }

    /// Counts an event whose site is not wanted. Returns false if it is. Most events of a warm-up
    /// cost no more than this.
    #[inline(always)]
    fn is_only_counted(&self, observation: &Observation) -> bool {
        !self.watching.get() && self.slot.get().is_some_and(|slot| slot.count_only(observation))
    }

    /// Charges an allocation if the thread is active. Returns whether the sampler has a stop in it.
    #[cold]
    #[inline(never)]
    fn allocate_slowly(&self, class: ViolationClass, size: usize) -> bool {
        if !self.active.get() {
            return true;
        }
        let observation = Observation::new(class, size);
        if !self.is_only_counted(&observation) {
            let anchor = 0_u8;
            charge_above(observation, ptr::from_ref(black_box(&anchor)).addr());
        }
        !self.set_aside.pass(size)
    }

    /// The places that have a table.
    fn tables(&self) -> impl Iterator<Item = (&Place, &Sites)> {
        self.places.iter().filter_map(|place| {
            let sites = place.sites.get()?;
            // SAFETY: `enter` was called with the pointer, whose caller vouched that it points to a table that exists
            // until it has left its place; it leaves it on this thread, which is here. Tables are only read, and
            // written by atomics.
            Some((place, unsafe { sites.as_ref() }))
        })
    }

    /// Enters the thread's events in a table from here on. Returns its place, which is to be left as often; `None` if all
    /// are taken.
    ///
    /// # Safety
    /// The table must exist until its place is left for the last time. It is left on this thread.
    unsafe fn enter(&self, sites: NonNull<Sites>) -> Option<usize> {
        if let Some(index) = self.places.iter().position(|place| place.sites.get() == Some(sites)) {
            let depth = &self.places[index].depth;
            depth.set(depth.get() + 1);
            return Some(index);
        }
        let index = self.places.iter().position(|place| place.depth.get() == 0)?;
        self.places[index].depth.set(1);
        self.places[index].sites.set(Some(sites));
        self.follow_watches();
        Some(index)
    }

    /// Leaves a place. If that was the last time, returns the classes of what was entered.
    fn leave(&self, place: &Place) -> ViolationSet {
        if place.depth.get() > 1 {
            place.depth.set(place.depth.get() - 1);
            return ViolationSet::empty();
        }
        place.sites.set(None);
        let seen = place.seen.replace(ViolationSet::empty());
        place.depth.set(0);
        self.follow_watches();
        seen
    }

    /// Notes who wants the next events.
    fn follow_watches(&self) {
        let (mut watching, mut has_tables) = (self.wants_first.get(), false);
        for (_, sites) in self.tables() {
            has_tables = true;
            watching |= !sites.is_forgiving();
        }
        self.watching.set(watching);
        self.set_active(watching || has_tables || self.slot.get().is_some());
    }

    fn set_active(&self, on: bool) {
        if self.active.replace(on) != on {
            // An active thread's countdown has ended, also if a handler has allocated in between.
            if on {
                self.set_aside.take_over(&self.countdown);
            } else {
                self.countdown.take_over(&self.set_aside);
            }
        }
    }
}

/// Calls `work` with the countdown of the calling thread to its sampler's next stop.
pub(crate) fn with_countdown<R>(work: impl FnOnce(&AllocationCountdown) -> R) -> R {
    with_current(|current| work(if current.active.get() { &current.set_aside } else { &current.countdown }))
}

/// As [`observe`], for an event that interrupted the thread at `instruction`.
#[cfg(tripoint_kernel)]
pub(crate) fn observe_interrupted(observation: Observation, instruction: usize) {
    with_current(|current| {
        let index = observation.class.index();
        current.counts[index].set(current.counts[index].get().wrapping_add(observation.count));
        if let Some(slot) = current.slot.get() {
            slot.observe(observation, || Evidence { site: Site::interrupted(instruction), time: time() });
        }
    });
}

/// Notes that the trap's handler is at work, and returns whether it was already. This is the
/// first thing that the handler does, so that no other memory is read before.
#[cfg(tripoint_kernel)]
#[inline(always)]
pub(crate) fn begin_handling() -> bool {
    let within_itself = with_current(|current| current.handling.replace(true));
    compiler_fence(Ordering::SeqCst);
    within_itself
}

/// Notes whether the trap's handler is still at work, because it interrupted itself. This is
/// the last thing that it does.
#[cfg(tripoint_kernel)]
#[inline(always)]
pub(crate) fn end_handling(within_itself: bool) {
    compiler_fence(Ordering::SeqCst);
    with_current(|current| current.handling.set(within_itself));
}

/// Charges the observation made of these, which are passed in registers: the fast path would write
/// down an observation.
#[cold]
#[inline(never)]
fn charge(class: ViolationClass, count: usize, bytes: usize, address: usize, call: usize) {
    let anchor = 0_u8;
    let observation = Observation { class, count, bytes, address, call, step: None };
    charge_above(observation, ptr::from_ref(black_box(&anchor)).addr());
}

/// Charges a step of a collection, which no fast path does.
#[cold]
#[inline(never)]
fn charge_step(observation: &Observation) {
    let anchor = 0_u8;
    charge_above(*observation, ptr::from_ref(black_box(&anchor)).addr());
}

/// Charges an event that happened above this address of the stack.
fn charge_above(observation: Observation, above: usize) {
    with_current(|current| {
        if let Some(slot) = current.slot.get() {
            slot.observe(observation, || Evidence { site: Site::above(above), time: time() });
        }
        if current.wants_first.get() {
            keep_watched(current, observation.class, above);
        }
        enter_in_tables(current, &observation, above);
    });
}

#[cold]
#[inline(never)]
fn keep_watched(current: &Current, class: ViolationClass, above: usize) {
    // Stops first, so that the walk does not watch itself.
    current.wants_first.set(false);
    current.follow_watches();
    current.watched.set(Some((class, Site::above(above))));
}

#[cold]
#[inline(never)]
fn enter_in_tables(current: &Current, observation: &Observation, above: usize) {
    // What the walk does is entered nowhere.
    if current.tables().next().is_none() || current.entering.replace(true) {
        return;
    }
    let is_forgiven = current.slot.get().is_some_and(|slot| !slot.is_judged());
    let mut walked = None;
    for (place, sites) in current.tables() {
        if sites.takes(observation.class, is_forgiven) {
            place.seen.set(place.seen.get() | ViolationSet::of(observation.class));
            sites.enter(observation, || *walked.get_or_insert_with(|| Site::above(above)));
        }
    }
    current.entering.set(false);
}

/// Calls `work`, and enters what the calling thread does meanwhile in a table.
pub(crate) fn while_entered<R>(sites: &Sites, work: impl FnOnce() -> R) -> R {
    // SAFETY: the table is borrowed until this function has ended. Before that its place is left, on this thread, also
    // if `work` unwinds.
    let place = with_current(|current| unsafe { current.enter(NonNull::from(sites)) });
    let _leaves = Defer::new(|| {
        if let Some(place) = place {
            let _ = leave(place);
        }
    });
    work()
}

/// Enters what the calling thread does in a table from here on, until its place is left as often. Returns the place;
/// `None` if all are taken.
pub(crate) fn enter(sites: &'static Sites) -> Option<usize> {
    // SAFETY: the table exists as long as the program.
    with_current(|current| unsafe { current.enter(NonNull::from(sites)) })
}

/// The name of the scope that is being judged on the calling thread, or else of one that it is in.
pub(crate) fn scope() -> Option<&'static str> {
    with_current(|current| {
        let entered =
            || current.tables().map(|(_, sites)| sites.name()).filter(|name| !name.is_empty()).last();
        current.judged.get().or_else(entered)
    })
}

/// Calls `work`, which judges the scope of this name. What the calling thread does meanwhile is entered in no table.
pub(crate) fn while_judging<R>(scope: &'static str, work: impl FnOnce() -> R) -> R {
    let outer = with_current(|current| (current.entering.replace(true), current.judged.replace(Some(scope))));
    let _ends = Defer::new(|| {
        with_current(|current| {
            current.entering.set(outer.0);
            current.judged.set(outer.1);
        });
    });
    work()
}

/// Leaves a table's place. If that was the last time, returns the classes of what was entered.
pub(crate) fn leave(place: usize) -> ViolationSet {
    with_current(|current| {
        current.places.get(place).map_or(ViolationSet::empty(), |place| current.leave(place))
    })
}

/// The number of events of a class, and their bytes, that the calling thread has
/// caused since it began, registered or not.
#[must_use]
pub fn count(class: ViolationClass) -> (usize, usize) {
    with_current(|current| (current.counts[class.index()].get(), current.bytes[class.index()].get()))
}

/// The slot of the calling thread, if it is registered.
#[must_use]
pub fn slot() -> Option<&'static Slot> {
    with_current(|current| current.slot.get())
}

/// Starts to watch for the site of the calling thread's next event, or stops.
pub fn watch(on: bool) {
    with_current(|current| {
        current.wants_first.set(on);
        current.watched.set(None);
        current.follow_watches();
    });
}

/// The class and site of the first event since [`watch`] was turned on.
#[must_use]
pub fn watched() -> Option<(ViolationClass, Site)> {
    with_current(|current| current.watched.get())
}

/// Runs `call`, a call of an allocator, so that the `malloc` below it is not taken for
/// foreign.
#[inline(always)]
pub(crate) fn inside_allocator<T>(call: impl FnOnce() -> T) -> T {
    #[cfg(feature = "interpose-malloc")]
    {
        with_current(|current| {
            let outer = current.inside_allocator.replace(true);
            // The compiler knows `malloc`, and that C's version reads none of our memory:
            // without fences it removes the store above.
            compiler_fence(Ordering::SeqCst);
            let result = call();
            compiler_fence(Ordering::SeqCst);
            current.inside_allocator.set(outer);
            result
        })
    }
    #[cfg(not(feature = "interpose-malloc"))]
    {
        call()
    }
}

/// Whether the thread is inside an allocator's own call.
#[cfg(feature = "interpose-malloc")]
pub(crate) fn is_inside_allocator() -> bool {
    with_current(|current| current.inside_allocator.get())
}

/// Walks once, so that the walker has what it loads lazily.
pub(crate) fn prepare_walks() {
    let _ = Site::here();
}

pub(crate) fn attach(slot: &'static Slot, wanted: DetectorSet) -> DetectorSet {
    prepare_walks();
    with_current(|current| {
        current.slot.set(Some(slot));
        current.follow_watches();
    });
    if wanted.contains(DetectorSet::ALLOCATOR) && allocator_is_live() {
        DetectorSet::ALLOCATOR
    } else {
        DetectorSet::empty()
    }
}

pub(crate) fn detach(from: &'static Slot) {
    with_current(|current| {
        if current.slot.get().is_some_and(|slot| ptr::eq(slot, from)) {
            current.slot.set(None);
            current.follow_watches();
        }
    });
}

/// Allocates deliberately, and returns whether that was seen.
pub(crate) fn allocator_is_live() -> bool {
    let before = (count(ViolationClass::Alloc).0, count(ViolationClass::Dealloc).0);
    drop(black_box(Box::new(0_u64)));
    let after = (count(ViolationClass::Alloc).0, count(ViolationClass::Dealloc).0);
    before.0 != after.0 && before.1 != after.1
}

/// Nanoseconds since the Unix epoch; zero before it, and under Miri, which refuses the time of
/// day to programs that are isolated.
pub(crate) fn time() -> u64 {
    if cfg!(miri) {
        return 0;
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
