//! How many events of each class one thread had.

use core::fmt;

use tripoint_core::internal::{AtomicUsize, Once, Ordering};

use crate::thread::described;
use crate::thread::placed::Placed;
use crate::words::atomics::const_fn;
use crate::words::class::ViolationClass;

/// The numbers of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of events.
    pub count: usize,
    /// Bytes concerned.
    pub bytes: usize,
    /// Number of events that an amnesty excused; part of `count`.
    pub excused: usize,
    /// Bytes that an amnesty excused; part of `bytes`.
    pub excused_bytes: usize,
}

impl Tally {
    /// Number of events that nothing excuses.
    #[must_use]
    pub const fn unexcused(self) -> usize {
        self.count.wrapping_sub(self.excused)
    }

    /// Bytes that nothing excuses.
    #[must_use]
    pub const fn unexcused_bytes(self) -> usize {
        self.bytes.wrapping_sub(self.excused_bytes)
    }
}

/// How many numbers of a class are kept: counts, bytes, excused and excused bytes, of all events and of those while the
/// thread was armed.
pub(crate) const NUMBERS: usize = 8;

/// Words of the numbers of all classes: counts, bytes, excused and excused bytes, each class by class.
pub(crate) const WORDS: usize = NUMBERS / 2 * ViolationClass::COUNT;

/// How many words a contract keeps of one thread: who it is, then its tallies.
pub(crate) const THREAD_WORDS: usize = described::WORDS + 2 * WORDS;

/// The words of one thread: who it is, all of its events, and those while it was armed.
pub(crate) type PlacedThread = (&'static [AtomicUsize; described::WORDS], [&'static [AtomicUsize; WORDS]; 2]);

/// Words of a hook for the tallies of all threads, and the number of the process; or none.
pub(crate) struct TallyPlace {
    words: Once<(&'static [AtomicUsize], u32)>,
}

impl TallyPlace {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { words: Once::new() }
        }
    }

    /// Sets the words.
    pub(crate) fn set(&self, words: &'static [AtomicUsize], process: u32) {
        let _: tripoint_core::Result<_> = self.words.get_or_try_init(|| Ok((words, process)));
    }

    /// The words of the thread with this index. None in a forked child, which may share the words with its
    /// parent.
    pub(crate) fn of_thread(&self, index: usize, process: u32) -> Option<PlacedThread> {
        let &(words, owner) = self.words.get()?;
        let words = words.as_chunks::<THREAD_WORDS>().0.get(index).filter(|_| owner == process)?;
        let (described, tallies) = words.split_first_chunk()?;
        Some((described, [tallies.first_chunk()?, tallies.last_chunk()?]))
    }
}

impl fmt::Debug for TallyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TallyPlace").field("words", &self.words.get().map(|(words, _)| words.len())).finish()
    }
}

/// The numbers of all classes. Each class has one writer at a time, so adding is
/// a load and a store; any thread may read.
#[derive(Debug)]
pub(crate) struct Tallies(Placed<WORDS>);

impl Tallies {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self(Placed::new())
        }
    }

    /// Keeps the numbers in these words from now on. Called before anything uses it.
    pub(crate) fn place(&self, words: &'static [AtomicUsize; WORDS]) {
        self.0.place(words);
    }

    /// Keeps the numbers here again, as they are now.
    pub(crate) fn take_back(&self) {
        self.0.take_back(|_, own, word| {
            own.fetch_add(word, Ordering::Relaxed);
        });
    }

    /// Adds events of a class. Only the class's writer calls this.
    #[inline(always)]
    pub(crate) fn add(&self, class: ViolationClass, count: usize, bytes: usize, excused: bool) {
        let (words, index) = (self.0.in_use(), class.index());
        if excused {
            increase(&words[2 * ViolationClass::COUNT + index], count);
            increase(&words[3 * ViolationClass::COUNT + index], bytes);
        }
        increase(&words[index], count);
        increase(&words[ViolationClass::COUNT + index], bytes);
    }

    /// Forgets everything. Called before anything uses it.
    pub(crate) fn reset(&self) {
        self.0.reset();
    }

    pub(crate) fn get(&self, class: ViolationClass) -> Tally {
        let words = self.0.in_use();
        let [count, bytes, excused, excused_bytes] = [0, 1, 2, 3]
            .map(|kind: usize| words[kind * ViolationClass::COUNT + class.index()].load(Ordering::Relaxed));
        Tally { count, bytes, excused, excused_bytes }
    }
}

/// Adds to a word that no other thread writes.
#[inline(always)]
pub(crate) fn increase(word: &AtomicUsize, amount: usize) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}
