//! Changing an atomic word by a rule, in one step.
//!
//! The standard library's `fetch_update` is deprecated from Rust 1.99 on, and what replaces it is newer than the oldest
//! compiler that is promised.

#[cfg(target_has_atomic = "64")]
use crate::primitive::AtomicU64;
use crate::primitive::{AtomicU32, AtomicUsize, Ordering};

/// An atomic word that can be changed by a rule.
pub trait Update<Word> {
    /// Stores what `rule` makes of the word's value, and returns the value before. If another thread changes the word
    /// in between, `rule` is asked again. It orders no other memory.
    ///
    /// # Errors
    /// The word's value, if `rule` returns `None` for it. Then the word is as it was.
    fn update_by(&self, rule: impl FnMut(Word) -> Option<Word>) -> Result<Word, Word>;
}

macro_rules! update {
    ($atomic:ty, $word:ty) => {
        impl Update<$word> for $atomic {
            #[inline]
            fn update_by(&self, mut rule: impl FnMut($word) -> Option<$word>) -> Result<$word, $word> {
                let mut value = self.load(Ordering::Relaxed);
                loop {
                    let next = rule(value).ok_or(value)?;
                    match self.compare_exchange_weak(value, next, Ordering::Relaxed, Ordering::Relaxed) {
                        Ok(_) => return Ok(value),
                        Err(changed) => value = changed,
                    }
                }
            }
        }
    };
}

update!(AtomicUsize, usize);
update!(AtomicU32, u32);
#[cfg(target_has_atomic = "64")]
update!(AtomicU64, u64);

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_rule_changes_the_word_or_leaves_it() {
        let word = AtomicU32::new(1);
        let down = |value: u32| value.checked_sub(1);
        assert_eq!((word.update_by(down), word.load(Ordering::Relaxed)), (Ok(1), 0));
        assert_eq!((word.update_by(down), word.load(Ordering::Relaxed)), (Err(0), 0));
    }

    #[test]
    fn a_rule_is_asked_again_if_the_word_changes_meanwhile() {
        let word = AtomicUsize::new(5);
        let mut seen = [0; 2];
        let mut turn = 0;
        let before = word.update_by(|value| {
            seen[turn.min(1)] = value;
            if turn == 0 {
                word.store(7, Ordering::Relaxed);
            }
            turn += 1;
            Some(value + 1)
        });
        assert_eq!((before, seen, word.load(Ordering::Relaxed)), (Ok(7), [5, 7], 8));
    }
}
