//! Which rings a thread writes to. A thread claims them with its first event, or with a name before that
//! ([design/telemetry.md `.thread`](crate::design::telemetry)).

use core::cell::Cell;
use core::ptr;

use tripoint_core::internal::{AtomicU64, Ordering, compiler_fence};

use crate::clock::Clock;
use crate::file::image::Image;
use crate::format::{EventKind, FileState, MAX_THREAD_NAME_BYTES, RingWord, words_of_text};
use crate::numbering::{renewed_thread_number, thread_number};
use crate::ring::own_ring::OwnRing;
use crate::ring::record_ring::{Record, RecordRing};
use crate::ring::thread_rings::{Place, ThreadRings};

/// The calling thread's rings. It is initialised at compile time and has no destructor, so using it
/// neither allocates nor fails, even in a signal handler or while the thread ends.
///
/// A handler may come between any two instructions, so all else is written while `file` is zero, then `file`,
/// and then the gate of the rings is opened.
struct Current {
    /// The rings that the thread has, if it has any.
    own: OwnRing,
    /// The number of the file that the thread has claimed rings in; zero for none.
    file: Cell<u64>,
    /// Whether there were rings left.
    has_ring: Cell<bool>,
    /// The word of the state of that file.
    state: Cell<Option<&'static AtomicU64>>,
    /// The word with the number of that file, unless this process was forked since, or the memory was used again.
    instance: Cell<Option<&'static AtomicU64>>,
    /// The number of the thread; zero before its first event.
    thread: Cell<u32>,
    /// Whether rings are being claimed, by what a handler has interrupted.
    is_claiming: Cell<bool>,
}

std::thread_local! {
    static CURRENT: Current = const {
        Current {
            own: OwnRing::none(),
            file: Cell::new(0),
            has_ring: Cell::new(false),
            state: Cell::new(None),
            instance: Cell::new(None),
            thread: Cell::new(0),
            is_claiming: Cell::new(false),
        }
    };
}

/// Writes an event with addresses and empty texts to the calling thread's ring, if that takes no call of any function:
/// [`OwnRing::write_quickly`]. `file` returns zero in a forked child, and if the clock is not quick.
#[inline(always)]
pub(super) fn write_quickly<const FIELDS: usize>(
    file: impl FnOnce() -> u64,
    kind: EventKind,
    empty_texts: usize,
    fields: impl FnOnce() -> [u64; FIELDS],
) -> bool {
    // A closure with all of it would not be inlined.
    let current = CURRENT.with(ptr::from_ref);
    // SAFETY: the thread-local has no destructor, so it exists as long as this thread, and the reference does not leave
    // this function.
    let current = unsafe { &*current };
    current.own.write_quickly(file(), kind, empty_texts, fields)
}

/// Writes any event to a ring of the calling thread.
pub(super) fn write<const FIELDS: usize, const TEXTS: usize>(
    image: &Image<'static>,
    clock: &Clock,
    place: Place,
    mut record: Record<'_, FIELDS, TEXTS>,
) {
    CURRENT.with(|current| {
        if current.file.get() != image.number() {
            current.claim(image, clock);
        }
        record.thread = current.thread.get();
        if current.has_ring_in(image) {
            current.own.write(image.number(), clock, place, &record);
        } else {
            image.shared_rings.at(place).write_shared(clock, &record);
        }
    });
}

impl Current {
    /// Claims rings of this file, unless the thread has some in another that is still open.
    #[cold]
    fn claim(&self, image: &Image<'static>, clock: &Clock) {
        if self.thread.get() == 0 {
            self.thread.set(thread_number());
        }
        // A clock of the program may unwind.
        let time = clock.ticks();
        // A handler that interrupts this thread from here on uses the shared ring.
        if self.is_claiming.replace(true) {
            return;
        }
        compiler_fence(Ordering::SeqCst);
        if !self.has_ring_elsewhere() {
            self.own.close();
            self.file.set(0);
            compiler_fence(Ordering::SeqCst);
            self.thread.set(renewed_thread_number());
            let rings = image.rings().find(|rings| self.try_claim(rings, clock, time));
            self.has_ring.set(rings.is_some());
            self.state.set(Some(image.state()));
            self.instance.set(Some(image.instance()));
            match rings {
                Some(rings) => self.own.set(rings, self.thread.get()),
                None => image.leave_out_thread(),
            }
            compiler_fence(Ordering::SeqCst);
            self.file.set(image.number());
            if self.has_ring.get() {
                self.own.open(image.number());
            }
        }
        compiler_fence(Ordering::SeqCst);
        self.is_claiming.set(false);
    }

    /// Whether the thread has a ring in another file, which is still open, and which is not of a parent that has
    /// forked this process, nor in memory that was used again.
    fn has_ring_elsewhere(&self) -> bool {
        let file = self.file.get();
        let is_ours = |instance: &AtomicU64| instance.load(Ordering::Relaxed) == file;
        let is_open = |state: &AtomicU64| state.load(Ordering::Acquire) != FileState::Closed as u64;
        file != 0 && self.instance.get().is_some_and(is_ours) && self.state.get().is_some_and(is_open)
    }

    /// Claims rings that are free, or whose thread has ended without returning them. Who has the first has both.
    fn try_claim(&self, rings: &ThreadRings<'_>, clock: &Clock, time: u64) -> bool {
        let ThreadRings { recent, lasting } = rings;
        if !recent.words().claim(self.thread.get(), has_ended) {
            return false;
        }
        [recent, lasting].into_iter().for_each(|ring| ring.repair(clock, time, self.thread.get()));
        recent.words().word(RingWord::Claims).fetch_add(1, Ordering::Relaxed);
        set_own_name(recent);
        true
    }

    /// Whether the thread has a ring of its own in this file.
    fn has_ring_in(&self, image: &Image<'static>) -> bool {
        let is_in = self.file.get() == image.number();
        compiler_fence(Ordering::SeqCst);
        is_in && self.has_ring.get()
    }

    fn return_ring(&self) {
        self.own.close();
        let rings = self.own.rings();
        self.file.set(0);
        // A handler that comes from here on may claim other rings.
        compiler_fence(Ordering::SeqCst);
        rings.recent.words().give_back();
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
pub(super) fn attach(image: &Image<'static>, clock: &Clock, name: &str) {
    CURRENT.with(|current| {
        if current.file.get() != image.number() {
            current.claim(image, clock);
        }
        if current.has_ring_in(image) {
            set_name(&current.own.rings().recent, name);
        }
    });
}

/// Returns the calling thread's ring in this file.
pub(super) fn detach(image: &Image<'static>) {
    CURRENT.with(|current| {
        if current.has_ring_in(image) {
            current.return_ring();
        }
    });
}

/// Whether the calling thread has a ring of its own in this file.
pub(super) fn has_own_ring(image: &Image<'static>) -> bool {
    CURRENT.with(|current| current.has_ring_in(image))
}

/// Gives a ring the name that the system has for the calling thread; no name without the feature `linux`.
fn set_own_name(ring: &RecordRing<'_>) {
    #[cfg(tripoint_on_linux)]
    set_name(ring, crate::native::thread::name(&mut [0; crate::native::thread::NAME_SIZE]));
    #[cfg(not(tripoint_on_linux))]
    set_name(ring, "");
}

/// Whether the thread with this number has certainly ended.
fn has_ended(number: u32) -> bool {
    #[cfg(tripoint_on_linux)]
    return crate::native::thread::has_ended(number);
    #[cfg(not(tripoint_on_linux))]
    {
        let _ = number;
        false
    }
}
