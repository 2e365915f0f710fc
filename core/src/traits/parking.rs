//! How a thread waits for a word to change.

use core::fmt;
use core::hint::spin_loop;
use core::time::Duration;

use crate::primitive::{AtomicU32, Ordering};

/// A way to wait for a word to change, on which a collector waits for mutators and they for it.
///
/// A thread that waits looks at the word again after each wait, and one that changes it calls
/// [`Parking::wake`] after that. So an implementation may return from a wait at any time; all it has
/// to see to is that a wait ends some time after a wake.
///
/// ```compile_fail,E0200
/// # use core::{sync::atomic::AtomicU32, time::Duration};
/// # use tripoint_core::Parking;
/// #[derive(Debug)]
/// struct Impatient;
///
/// // Threads that wait go on, and the heap is not stopped any more.
/// impl Parking for Impatient {
///     fn wait(&self, word: &AtomicU32, value: u32, _patience: Duration) -> Duration {
///         word.store(value + 1, core::sync::atomic::Ordering::Relaxed);
///         Duration::ZERO
///     }
///
///     fn wake(&self, _word: &AtomicU32) {}
/// }
/// ```
///
/// # Safety
/// - Neither function changes the word: that says whether a heap is stopped.
/// - Neither unwinds: a thread would go on without what it waits for.
pub unsafe trait Parking: fmt::Debug + Sync {
    /// Waits while `word` holds `value`, for at most about `patience`. Returns how long it waited, by
    /// which the caller shortens its patience. It may return early.
    ///
    /// A wait never begins for a word that has changed already: the look at the word and the
    /// beginning of the wait are one step, as far as [`Parking::wake`] is concerned.
    fn wait(&self, word: &AtomicU32, value: u32, patience: Duration) -> Duration;

    /// Ends the waits of all threads for this word, which has been changed.
    fn wake(&self, word: &AtomicU32);
}

/// Waits by spinning: for machines without an operating system, and for stops that are short.
///
/// It has no clock. Each look at the word counts as [`Spinning::ROUND`], whatever it took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spinning;

impl Spinning {
    /// What one look at the word counts as: a processor of a few GHz takes about that long for one.
    pub const ROUND: Duration = Duration::from_nanos(100);

    /// The hints to the processor between two looks.
    const HINTS: usize = 8;
}

// SAFETY: the word is only loaded, and nothing here unwinds.
unsafe impl Parking for Spinning {
    fn wait(&self, word: &AtomicU32, value: u32, _patience: Duration) -> Duration {
        if word.load(Ordering::Relaxed) == value {
            (0..Self::HINTS).for_each(|_| spin_loop());
        }
        Self::ROUND
    }

    fn wake(&self, _word: &AtomicU32) {}
}

#[cfg(all(test, not(any(tripoint_loom, tripoint_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_round_of_spinning_is_counted_whether_the_word_changed_or_not() {
        let word = AtomicU32::new(7);
        assert_eq!(Spinning.wait(&word, 7, Duration::MAX), Spinning::ROUND);
        assert_eq!(Spinning.wait(&word, 8, Duration::MAX), Spinning::ROUND);
        Spinning.wake(&word);
    }
}
