//! What the calling thread has done: counts of its own, which no other thread sees,
//! and the slot that it is registered with.
//!
//! All of it is initialised at compile time and has no destructor, so that using
//! it never allocates, also in a signal handler and at the end of a thread
//! (design/contract.md `.thread-local`).

use core::cell::Cell;
use core::hint::black_box;
use std::boxed::Box;
use std::time::SystemTime;

#[cfg(any(feature = "interpose-malloc", all(feature = "linux", target_os = "linux", not(miri))))]
use tripoint_core::internal::{Ordering, compiler_fence};
use tripoint_stack::Site;

use crate::thread::observation::{Evidence, Observation};
use crate::thread::slot::Slot;
use crate::words::class::ViolationClass;
use crate::words::detector_set::DetectorSet;

/// The thread's own state.
struct Current {
    counts: [Cell<usize>; ViolationClass::COUNT],
    bytes: [Cell<usize>; ViolationClass::COUNT],
    /// Whether events need more than to be counted.
    active: Cell<bool>,
    slot: Cell<Option<&'static Slot>>,
    /// Whether the site of the next event is wanted.
    watching: Cell<bool>,
    watched: Cell<Option<(ViolationClass, Site)>>,
    /// Whether the trap's handler is at work.
    #[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
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
            active: Cell::new(false),
            slot: Cell::new(None),
            watching: Cell::new(false),
            watched: Cell::new(None),
            #[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
            handling: Cell::new(false),
            #[cfg(feature = "interpose-malloc")]
            inside_allocator: Cell::new(false),
        }
    };
}

/// Counts an event of the calling thread, and charges it to the thread's slot.
///
/// Call this in a detector of your own. It costs two additions and a branch while the thread
/// is not registered.
#[inline]
pub fn observe(observation: Observation) {
    CURRENT.with(|current| {
        let index = observation.class.index();
        current.counts[index].set(current.counts[index].get().wrapping_add(observation.count));
        current.bytes[index].set(current.bytes[index].get().wrapping_add(observation.bytes));
        if current.active.get() && !is_only_counted(current, &observation) {
            charge(observation);
        }
    });
}

/// Counts an event whose site is not wanted. Returns false if it is. Most events of a warm-up
/// cost no more than this.
#[inline(always)]
fn is_only_counted(current: &Current, observation: &Observation) -> bool {
    !current.watching.get() && current.slot.get().is_some_and(|slot| slot.count_only(observation))
}

/// As [`observe`], for an event that interrupted the thread at `instruction`.
#[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
pub(crate) fn observe_interrupted(observation: Observation, instruction: usize) {
    CURRENT.with(|current| {
        let index = observation.class.index();
        current.counts[index].set(current.counts[index].get().wrapping_add(observation.count));
        if let Some(slot) = current.slot.get() {
            slot.observe(observation, || Evidence { site: Site::interrupted(instruction), time: time() });
        }
    });
}

/// Notes that the trap's handler is at work, and returns whether it was already. This is the
/// first thing that the handler does, so that no other memory is read before.
#[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
#[inline(always)]
pub(crate) fn begin_handling() -> bool {
    let within_itself = CURRENT.with(|current| current.handling.replace(true));
    compiler_fence(Ordering::SeqCst);
    within_itself
}

/// Notes whether the trap's handler is still at work, because it interrupted itself. This is
/// the last thing that it does.
#[cfg(all(feature = "linux", target_os = "linux", not(miri)))]
#[inline(always)]
pub(crate) fn end_handling(within_itself: bool) {
    compiler_fence(Ordering::SeqCst);
    CURRENT.with(|current| current.handling.set(within_itself));
}

#[cold]
#[inline(never)]
fn charge(observation: Observation) {
    let anchor = 0_u8;
    let above = core::ptr::from_ref(black_box(&anchor)).addr();
    CURRENT.with(|current| {
        if let Some(slot) = current.slot.get() {
            slot.observe(observation, || Evidence { site: Site::above(above), time: time() });
        }
        if current.watching.get() {
            keep_watched(current, observation.class, above);
        }
    });
}

#[cold]
#[inline(never)]
fn keep_watched(current: &Current, class: ViolationClass, above: usize) {
    // Stops first, so that the walk does not watch itself.
    current.watching.set(false);
    current.watched.set(Some((class, Site::above(above))));
}

/// The number of events of a class, and their bytes, that the calling thread has
/// caused since it began, registered or not.
#[must_use]
pub fn count(class: ViolationClass) -> (usize, usize) {
    CURRENT.with(|current| (current.counts[class.index()].get(), current.bytes[class.index()].get()))
}

/// The slot of the calling thread, if it is registered.
#[must_use]
pub fn slot() -> Option<&'static Slot> {
    CURRENT.with(|current| current.slot.get())
}

/// Starts to watch for the site of the calling thread's next event, or stops.
pub fn watch(on: bool) {
    CURRENT.with(|current| {
        current.watching.set(on);
        current.watched.set(None);
        current.active.set(on || current.slot.get().is_some());
    });
}

/// The class and site of the first event since [`watch`] was turned on.
#[must_use]
pub fn watched() -> Option<(ViolationClass, Site)> {
    CURRENT.with(|current| current.watched.get())
}

/// Runs `call`, a call of an allocator, so that the `malloc` below it is not taken for
/// foreign.
#[inline(always)]
pub(crate) fn inside_allocator<T>(call: impl FnOnce() -> T) -> T {
    #[cfg(feature = "interpose-malloc")]
    {
        CURRENT.with(|current| {
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
    CURRENT.with(|current| current.inside_allocator.get())
}

pub(crate) fn attach(slot: &'static Slot, wanted: DetectorSet) -> DetectorSet {
    // Walks once, so that the walker has what it loads lazily.
    let _ = Site::here();
    CURRENT.with(|current| {
        current.slot.set(Some(slot));
        current.active.set(true);
    });
    if wanted.contains(DetectorSet::ALLOCATOR) && allocator_is_live() {
        DetectorSet::ALLOCATOR
    } else {
        DetectorSet::empty()
    }
}

pub(crate) fn detach(from: &'static Slot) {
    CURRENT.with(|current| {
        if current.slot.get().is_some_and(|slot| core::ptr::eq(slot, from)) {
            current.slot.set(None);
            current.active.set(current.watching.get());
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
