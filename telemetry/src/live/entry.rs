//! An entry of the table of sampled objects, in words that a late reader may read without harm.

use tripoint_core::internal::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
use tripoint_core::{Addr, PoolId};
use tripoint_stack::Site;

use crate::sample::{Mean, Sample};
use crate::sampled_object::{ObjectKind, SampledObject};

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
    const fn new() -> Self {
        Self { start: AtomicPtr::new(core::ptr::null_mut()), size: AtomicUsize::new(0) }
    }

    fn keep(&self, text: Option<&'static str>) {
        let start = text.map_or(core::ptr::null(), str::as_ptr);
        self.start.store(start.cast_mut(), Ordering::Relaxed);
        self.size.store(text.map_or(0, str::len), Ordering::Relaxed);
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
pub(super) struct Entry {
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
    site: [AtomicUsize; Site::FRAMES],
}

impl Entry {
    pub(super) const fn new() -> Self {
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
            site: [const { AtomicUsize::new(0) }; Site::FRAMES],
        }
    }

    /// Writes to the first and the last word, and so to every page.
    pub(super) fn prefault(&self) {
        self.state.fetch_add(0, Ordering::Relaxed);
        self.site[Site::FRAMES - 1].fetch_add(0, Ordering::Relaxed);
    }

    /// Writes everything that is known of an object. Only one thread at a time may call this.
    pub(super) fn write(&self, sampled: &SampledObject) {
        let state = self.state.load(Ordering::Relaxed).wrapping_add(1);
        self.state.store(state, Ordering::Relaxed);
        // Pairs with the fence of `read`: a thread that reads a word written below finds a new state.
        fence(Ordering::Release);
        let bytes = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
        self.size.store(bytes(sampled.sample.size()), Ordering::Relaxed);
        self.offset.store(bytes(sampled.sample.offset()), Ordering::Relaxed);
        self.mean.store(sampled.sample.mean().bytes(), Ordering::Relaxed);
        self.kind.store(sampled.kind as u32, Ordering::Relaxed);
        self.thread.store(sampled.thread, Ordering::Relaxed);
        self.pool.store(sampled.pool.map_or(0, PoolId::get), Ordering::Relaxed);
        self.class.keep(sampled.class);
        self.type_name.keep(sampled.type_name);
        for (to, &frame) in self.site.iter().zip(sampled.site.words()) {
            to.store(frame, Ordering::Relaxed);
        }
        self.state.store(state.wrapping_add(1), Ordering::Release);
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
        fence(Ordering::Acquire);
        if self.state.load(Ordering::Relaxed) != state || !is_still_there() {
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
