//! How many events of each class one thread had.

use core::fmt;

use tripoint_core::internal::{AtomicPtr, AtomicUsize, Once, Ordering};
use tripoint_core::{Error, Result};

use crate::words::atomics::{const_fn, zeros};
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

/// Words of the numbers of all classes: counts, bytes, excused and excused bytes, each class by class.
const WORDS: usize = 4 * ViolationClass::COUNT;

/// How many words the tallies of one thread take ([`Contract::place_tallies`](crate::Contract::place_tallies)).
pub const TALLY_WORDS: usize = 2 * WORDS;

/// The words of one thread: of all its events, and of those while it was armed.
pub(crate) type PlacedTallies = [&'static [AtomicUsize; WORDS]; 2];

/// Words that a program gives for the tallies of all threads, and the number of its process; or none yet.
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
    ///
    /// # Errors
    /// [`Error::Parameter`] if there are some already, or too few for that many threads.
    pub(crate) fn set(&self, words: &'static [AtomicUsize], threads: usize, process: u32) -> Result<()> {
        if words.len() / TALLY_WORDS < threads {
            return Err(Error::Parameter(
                "too few words for the tallies of all threads: give THREADS times TALLY_WORDS",
            ));
        }
        let mut is_set = false;
        self.words.get_or_try_init(|| {
            is_set = true;
            Ok((words, process))
        })?;
        let why = "the contract's tallies have a place already: give it one, before Init";
        if is_set { Ok(()) } else { Err(Error::Parameter(why)) }
    }

    /// The words of the thread with this index. None in a forked child, which may share the words with its
    /// parent.
    pub(crate) fn of_thread(&self, index: usize, process: u32) -> Option<PlacedTallies> {
        let &(words, owner) = self.words.get()?;
        let words = words.as_chunks::<TALLY_WORDS>().0.get(index).filter(|_| owner == process)?;
        Some([words.first_chunk()?, words.last_chunk()?])
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
pub(crate) struct Tallies {
    own: [AtomicUsize; WORDS],
    /// The words that are used instead; null for none.
    placed: AtomicPtr<[AtomicUsize; WORDS]>,
}

impl Tallies {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { own: zeros(), placed: AtomicPtr::new(core::ptr::null_mut()) }
        }
    }

    /// Keeps the numbers in these words from now on. Called before anything uses it.
    pub(crate) fn place(&self, words: &'static [AtomicUsize; WORDS]) {
        self.placed.store(core::ptr::from_ref(words).cast_mut(), Ordering::Release);
    }

    /// Keeps the numbers here again, as they are now: in a forked child, which may share the words with its
    /// parent (design/contract.md `.tallies.child`).
    pub(crate) fn take_back(&self) {
        let placed = self.placed.swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: the pointer is null, or `place` made it of a reference that is valid forever.
        let Some(placed) = (unsafe { placed.as_ref() }) else { return };
        // A signal handler may have counted here already.
        for (own, word) in self.own.iter().zip(placed) {
            own.fetch_add(word.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn numbers(&self) -> &[AtomicUsize; WORDS] {
        // SAFETY: the pointer is null, or `place` made it of a reference that is valid forever. The words
        // are atomic, so others may write them.
        unsafe { self.placed.load(Ordering::Acquire).as_ref() }.unwrap_or(&self.own)
    }

    /// Adds events of a class. Only the class's writer calls this.
    #[inline(always)]
    pub(crate) fn add(&self, class: ViolationClass, count: usize, bytes: usize, excused: bool) {
        let (words, index) = (self.numbers(), class.index());
        if excused {
            increase(&words[2 * ViolationClass::COUNT + index], count);
            increase(&words[3 * ViolationClass::COUNT + index], bytes);
        }
        increase(&words[index], count);
        increase(&words[ViolationClass::COUNT + index], bytes);
    }

    /// Forgets everything. Called before anything uses it.
    pub(crate) fn reset(&self) {
        self.numbers().iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    pub(crate) fn get(&self, class: ViolationClass) -> Tally {
        let words = self.numbers();
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
