//! An entry of the table of sampled objects, in words that a late reader may read without harm.

use tripoint_core::internal::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
use tripoint_core::{Addr, PoolId};
use tripoint_stack::Site;

use crate::sample::{Mean, Sample};
use crate::sampled_object::{ObjectKind, SampledObject};

const IN_MODEL: bool = cfg!(any(tripoint_loom, tripoint_shuttle));

/// The frames of a site that are kept. Models have none.
const KEPT_FRAMES: usize = if IN_MODEL { 0 } else { Site::FRAMES };

/// Writes a word. A model tries each value that a word has had, so there a word that would not change is not
/// written.
macro_rules! write_word {
    ($word:expr, $value:expr) => {
        let (word, value) = (&$word, $value);
        if !IN_MODEL || word.load(Ordering::Relaxed) != value {
            word.store(value, Ordering::Relaxed);
        }
    };
}

/// A `&'static str` in two words, or none.
#[derive(Debug)]
struct Text {
    start: AtomicPtr<u8>,
    size: AtomicUsize,
}

/// The words of a [`Text`] as they were read, perhaps of two texts.
#[derive(Clone, Copy)]
struct RawText(*const u8, usize);

impl Text {
    words! {
        /// No text.
        fn new() -> Self {
            Self { start: AtomicPtr::new(core::ptr::null_mut()), size: AtomicUsize::new(0) }
        }
    }

    fn keep(&self, text: Option<&'static str>) {
        let start = text.map_or(core::ptr::null(), str::as_ptr);
        write_word!(self.start, start.cast_mut());
        write_word!(self.size, text.map_or(0, str::len));
    }

    fn words(&self) -> RawText {
        RawText(self.start.load(Ordering::Relaxed), self.size.load(Ordering::Relaxed))
    }
}

impl RawText {
    /// # Safety
    /// - Both words are of one call of [`Text::keep`], or of none.
    unsafe fn text(self) -> Option<&'static str> {
        let Self(start, size) = self;
        if start.is_null() {
            return None;
        }
        // SAFETY: the caller says that both words are of one text. It was a `&'static str`, so these
        // bytes are valid for reads forever, are never written to, and are UTF-8.
        Some(unsafe { core::str::from_utf8_unchecked(core::slice::from_raw_parts(start, size)) })
    }
}

/// Everything that is kept of one sampled object, except its address.
///
/// One thread writes at a time: the one that has taken the entry in the table. Any thread reads.
#[derive(Debug)]
pub struct LiveEntry {
    /// Twice the number of objects that were written here, less one while the last of them is being
    /// written. So it is different for each object.
    state: AtomicUsize,
    size: AtomicUsize,
    offset: AtomicUsize,
    mean: AtomicU32,
    kind: AtomicU32,
    thread: AtomicU32,
    /// Zero for none.
    pool: AtomicU32,
    class: Text,
    type_name: Text,
    site: [AtomicUsize; KEPT_FRAMES],
}

impl LiveEntry {
    words! {
        /// An entry that no object was written to.
        pub(super) fn new() -> Self {
            Self {
                state: AtomicUsize::new(0),
                size: AtomicUsize::new(0),
                offset: AtomicUsize::new(0),
                mean: AtomicU32::new(0),
                kind: AtomicU32::new(0),
                thread: AtomicU32::new(0),
                pool: AtomicU32::new(0),
                class: Text::new(),
                type_name: Text::new(),
                site: words![AtomicUsize::new(0); KEPT_FRAMES],
            }
        }
    }

    /// Writes to the first and the last word, and so to every page.
    pub(super) fn prefault(&self) {
        self.state.fetch_add(0, Ordering::Relaxed);
        self.site.last().map(|frame| frame.fetch_add(0, Ordering::Relaxed));
    }

    /// The word that says which object the entry has.
    pub fn state(&self) -> &AtomicUsize {
        &self.state
    }

    /// Writes everything that is known of an object. Only one thread at a time may call this.
    pub(super) fn write(&self, sampled: &SampledObject) {
        let state = self.announce();
        self.put(sampled);
        self.publish(state);
    }

    /// First step of a write: from here on readers know that the words change. Returns the state for the last step.
    pub fn announce(&self) -> usize {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state.wrapping_add(1), Ordering::Relaxed);
        // Pairs with the fence of `read`: a thread that reads a word written after this finds a new state.
        fence(Ordering::Release);
        state.wrapping_add(2)
    }

    /// Second step: writes the words.
    pub fn put(&self, sampled: &SampledObject) {
        let bytes = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
        write_word!(self.size, bytes(sampled.sample.size()));
        write_word!(self.offset, bytes(sampled.sample.offset()));
        write_word!(self.mean, sampled.sample.mean().bytes());
        write_word!(self.kind, sampled.kind as u32);
        write_word!(self.thread, sampled.thread);
        write_word!(self.pool, sampled.pool.map_or(0, PoolId::get));
        self.class.keep(sampled.class);
        self.type_name.keep(sampled.type_name);
        for (to, &frame) in self.site.iter().zip(sampled.site.words()) {
            to.store(frame, Ordering::Relaxed);
        }
    }

    /// Third step: shows the words to readers.
    pub fn publish(&self, state: usize) {
        self.state.store(state, Ordering::Release);
    }

    /// The object at the address `object`, if it was not replaced meanwhile. `is_still_there` says whether the
    /// entry still belongs to this address.
    pub(super) fn read(&self, object: Addr, is_still_there: impl FnOnce() -> bool) -> Option<SampledObject> {
        let state = self.state.load(Ordering::Acquire);
        if !state.is_multiple_of(2) {
            return None;
        }
        let size = self.size.load(Ordering::Relaxed);
        let offset = self.offset.load(Ordering::Relaxed);
        let [mean, kind, thread, pool] =
            [&self.mean, &self.kind, &self.thread, &self.pool].map(|word| word.load(Ordering::Relaxed));
        let (class, type_name) = (self.class.words(), self.type_name.words());
        let site = Site::new(self.site.iter().map(|frame| frame.load(Ordering::Relaxed)));
        // In this order: if the entry belongs to the address again, after another object had it, the state is new.
        let is_still_there = is_still_there();
        fence(Ordering::Acquire);
        if !is_still_there || self.state.load(Ordering::Relaxed) != state {
            return None;
        }
        Some(SampledObject {
            object,
            sample: Sample::new(size as u64, offset as u64, Mean::new(mean)?)?,
            kind: ObjectKind::from_word(kind)?,
            thread,
            pool: PoolId::new(pool),
            // SAFETY: both words of the text are of one call of `write`: if one were of a later call,
            // the state would have been different.
            class: unsafe { class.text() },
            // SAFETY: both words of the text are of one call of `write`: if one were of a later call,
            // the state would have been different.
            type_name: unsafe { type_name.text() },
            site,
        })
    }
}
