//! Numbers that a thread keeps in its slot, or in words of a hook that other processes read.

use tripoint_core::internal::{AtomicPtr, AtomicUsize, Ordering};

use crate::words::atomics::{const_fn, zeros};

/// Words of the slot, or those that are used instead.
#[derive(Debug)]
pub(crate) struct Placed<const WORDS: usize> {
    own: [AtomicUsize; WORDS],
    /// The words that are used instead; null for none.
    elsewhere: AtomicPtr<[AtomicUsize; WORDS]>,
}

impl<const WORDS: usize> Placed<WORDS> {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { own: zeros(), elsewhere: AtomicPtr::new(core::ptr::null_mut()) }
        }
    }

    /// Keeps the numbers in these words from now on. Called before anything uses it.
    pub(crate) fn place(&self, words: &'static [AtomicUsize; WORDS]) {
        self.elsewhere.store(core::ptr::from_ref(words).cast_mut(), Ordering::Release);
    }

    /// Keeps the numbers here again, as they are now: in a forked child, which may share the words with its
    /// parent (design/contract.md `.tallies.child`). `merge` gets the index of a word, the word that is used from now
    /// on, and the number so far.
    pub(crate) fn take_back(&self, merge: impl Fn(usize, &AtomicUsize, usize)) {
        let elsewhere = self.elsewhere.swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: the pointer is null, or `place` made it of a reference that is valid forever.
        let Some(elsewhere) = (unsafe { elsewhere.as_ref() }) else { return };
        // A signal handler may have counted here already.
        for (index, (own, word)) in self.own.iter().zip(elsewhere).enumerate() {
            merge(index, own, word.load(Ordering::Relaxed));
        }
    }

    /// The words that are in use.
    #[inline(always)]
    pub(crate) fn in_use(&self) -> &[AtomicUsize; WORDS] {
        // SAFETY: the pointer is null, or `place` made it of a reference that is valid forever. The words
        // are atomic, so others may write them.
        unsafe { self.elsewhere.load(Ordering::Acquire).as_ref() }.unwrap_or(&self.own)
    }

    /// Forgets everything. Called before anything uses it.
    pub(crate) fn reset(&self) {
        self.in_use().iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
}
