//! Which ring a thread writes to. A thread claims one with its first event, or with a name before that
//! ([design/telemetry.md `.thread`](crate::design::telemetry)).

use core::cell::Cell;

use tripoint_core::internal::{AtomicU64, Ordering, compiler_fence};

use crate::clock::Clock;
use crate::file::image::Image;
use crate::format::{FileState, MAX_THREAD_NAME_BYTES, RingState, RingWord, words_of_text};
use crate::numbering::{renewed_thread_number, thread_number};
use crate::ring::record_ring::{Place, Record, RecordRing};

/// The calling thread's ring. It is initialised at compile time and has no destructor, so using it
/// neither allocates nor fails, even in a signal handler or while the thread ends.
///
/// A handler may come between any two instructions, so all else is written while `file` is zero, and `file`
/// last.
struct Current {
    /// The number of the file that the ring is in; zero for none.
    file: Cell<usize>,
    /// The word of the state of that file.
    state: Cell<Option<&'static AtomicU64>>,
    /// The word that is zero in a child that was forked since, if the file has one.
    parent: Cell<Option<&'static AtomicU64>>,
    /// The ring; none if the file had none left.
    ring: Cell<Option<RecordRing<'static>>>,
    /// The number of the thread; zero before its first event.
    thread: Cell<u32>,
    /// Whether a ring is being claimed, by what a handler has interrupted.
    is_claiming: Cell<bool>,
}

std::thread_local! {
    static CURRENT: Current = const {
        Current {
            file: Cell::new(0),
            state: Cell::new(None),
            parent: Cell::new(None),
            ring: Cell::new(None),
            thread: Cell::new(0),
            is_claiming: Cell::new(false),
        }
    };
}

/// A place for an event without texts and site in the calling thread's ring, with the thread's number, if
/// that takes no call of any function.
#[inline(always)]
pub(super) fn try_begin<const FIELDS: usize>(
    image: &Image<'static>,
    clock: &Clock,
) -> Option<(Place<'static>, u32)> {
    // The closure does no more than this, so that it is inlined.
    let (ring, thread) = CURRENT.with(|current| (current.ring_in(image), current.thread.get()));
    Some((ring?.try_begin::<FIELDS>(clock)?, thread))
}

/// Writes any event to the calling thread's ring.
pub(super) fn write<const FIELDS: usize, const TEXTS: usize>(
    image: &Image<'static>,
    clock: &Clock,
    mut record: Record<'_, FIELDS, TEXTS>,
) {
    let ring = CURRENT.with(|current| {
        if current.file.get() != image.number() {
            current.claim(image);
        }
        record.thread = current.thread.get();
        current.ring_in(image)
    });
    match ring {
        Some(ring) => ring.write(clock, &record),
        None => image.shared_ring.write_shared(clock, &record),
    }
}

impl Current {
    /// Claims a ring of this file, unless the thread has one in another that is still open.
    #[cold]
    fn claim(&self, image: &Image<'static>) {
        if self.thread.get() == 0 {
            self.thread.set(thread_number());
        }
        // A handler that interrupts this thread from here on uses the shared ring.
        if self.is_claiming.replace(true) {
            return;
        }
        compiler_fence(Ordering::SeqCst);
        if !self.has_ring_elsewhere(image) {
            self.file.set(0);
            compiler_fence(Ordering::SeqCst);
            self.thread.set(renewed_thread_number());
            let ring = image.rings().find(|ring| self.try_claim(ring));
            if ring.is_none() {
                image.leave_out_thread();
            }
            self.ring.set(ring);
            self.state.set(Some(image.state()));
            self.parent.set(image.parent());
            compiler_fence(Ordering::SeqCst);
            self.file.set(image.number());
        }
        compiler_fence(Ordering::SeqCst);
        self.is_claiming.set(false);
    }

    /// Whether the thread has a ring in another file, which is still open, and which is not of a parent that has
    /// forked this process. A file in the same memory as `image` is gone.
    fn has_ring_elsewhere(&self, image: &Image<'static>) -> bool {
        let is_other = |state: &AtomicU64| !core::ptr::eq(state, image.state());
        let is_open = |state: &AtomicU64| state.load(Ordering::Acquire) != FileState::Closed as u64;
        let is_ours = self.parent.get().is_none_or(|parent| parent.load(Ordering::Relaxed) != 0);
        let has_ring = self.file.get() != 0 && is_ours;
        has_ring && self.state.get().is_some_and(|state| is_other(state) && is_open(state))
    }

    /// Claims a ring that is free, or whose thread has ended without returning it.
    fn try_claim(&self, ring: &RecordRing<'_>) -> bool {
        let (state, owner) = (ring.words().word(RingWord::State), ring.words().word(RingWord::Thread));
        let number = u64::from(self.thread.get());
        let [free, claimed] = [RingState::Free, RingState::Claimed].map(|state| state as u64);
        let is_free = state.compare_exchange(free, claimed, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if is_free {
            owner.store(number, Ordering::Relaxed);
        } else {
            // It is zero from a claim until the thread's number is stored.
            let other = owner.load(Ordering::Relaxed);
            if other == 0
                || !has_ended(other)
                || owner.compare_exchange(other, number, Ordering::Acquire, Ordering::Relaxed).is_err()
            {
                return false;
            }
            // Its thread may have ended in the middle of a record.
            ring.words().leave();
        }
        ring.words().word(RingWord::Claims).fetch_add(1, Ordering::Relaxed);
        set_own_name(ring);
        true
    }

    /// The thread's ring in this file.
    #[inline(always)]
    fn ring_in(&self, image: &Image<'static>) -> Option<RecordRing<'static>> {
        if self.file.get() != image.number() {
            return None;
        }
        compiler_fence(Ordering::SeqCst);
        self.ring.get()
    }

    fn return_ring(&self, ring: &RecordRing<'_>) {
        self.file.set(0);
        // A handler that comes from here on may claim another ring.
        compiler_fence(Ordering::SeqCst);
        ring.words().word(RingWord::Thread).store(0, Ordering::Relaxed);
        ring.words().word(RingWord::State).store(RingState::Free as u64, Ordering::Release);
    }
}

fn set_name(ring: &RecordRing<'_>, name: &str) {
    // A name has no word with its length.
    let words = words_of_text(name, MAX_THREAD_NAME_BYTES).skip(1).chain(core::iter::repeat(0));
    for (place, word) in ring.words().name().iter().zip(words) {
        place.store(word, Ordering::Relaxed);
    }
}

/// Has the calling thread claim a ring of this file, and gives it a name.
pub(super) fn attach(image: &Image<'static>, name: &str) {
    CURRENT.with(|current| {
        if current.file.get() != image.number() {
            current.claim(image);
        }
        if let Some(ring) = current.ring_in(image) {
            set_name(&ring, name);
        }
    });
}

/// Returns the calling thread's ring in this file.
pub(super) fn detach(image: &Image<'static>) {
    CURRENT.with(|current| {
        if let Some(ring) = current.ring_in(image) {
            current.return_ring(&ring);
        }
    });
}

/// Whether the calling thread has a ring of its own in this file.
pub(super) fn has_own_ring(image: &Image<'static>) -> bool {
    CURRENT.with(|current| current.ring_in(image).is_some())
}

/// Gives a ring the name that the system has for the calling thread; no name without the feature `linux`.
fn set_own_name(ring: &RecordRing<'_>) {
    #[cfg(all(feature = "linux", target_os = "linux"))]
    set_name(ring, crate::native::thread::name(&mut [0; crate::native::thread::NAME_SIZE]));
    #[cfg(not(all(feature = "linux", target_os = "linux")))]
    set_name(ring, "");
}

/// Whether the thread with this number has certainly ended.
fn has_ended(number: u64) -> bool {
    #[cfg(all(feature = "linux", target_os = "linux"))]
    return u32::try_from(number).is_ok_and(crate::native::thread::has_ended);
    #[cfg(not(all(feature = "linux", target_os = "linux")))]
    {
        let _ = number;
        false
    }
}
