//! Units packed in units: so that a thread that takes many touches few.
//!
//! A list through every unit makes the taker wait for the memory of each in
//! turn, and that memory was last written by another processor. A **magazine** is a
//! free unit with the addresses of others in its words
//! (design/pool-mfs.md `.returns.magazines`):
//!
//! ```text
//!   magazine [ next magazine | unit | unit | ... | unit ]      one cache line of words
//! ```

use core::ptr::NonNull;

use crate::blocks::{Chain, FreeBlock, List, read_link, write_link};
use crate::link::{LinkKey, Watch};
use crate::seal::SEAL_SIZE;

/// The words of a magazine: those of a cache line, or fewer in small units.
const WORDS: usize = 8;

/// A word of a magazine other than its link, encoded as links are; null after the last
/// one used.
type Slot = *mut u8;

/// How many units go into a magazine besides itself. Its seal stays as it is.
const fn slots(unit: usize) -> usize {
    let words = (unit - SEAL_SIZE) / size_of::<Slot>();
    (if words < WORDS { words } else { WORDS }) - 1
}

/// The place of a slot, which are numbered from one.
///
/// # Safety
/// - `unit` is a unit that has as many slots.
#[inline(always)]
unsafe fn slot(unit: NonNull<FreeBlock>, number: usize) -> NonNull<Slot> {
    // SAFETY: the unit has a slot of this number, so the word lies in it.
    unsafe { unit.cast::<Slot>().add(number) }
}

/// Writes a slot.
///
/// # Safety
/// - `unit` is a unit that nothing uses, and has as many slots.
#[inline(always)]
unsafe fn write(unit: NonNull<FreeBlock>, number: usize, packed: Option<NonNull<u8>>, key: LinkKey) {
    // SAFETY: the unit has a slot of this number.
    let slot = unsafe { slot(unit, number) };
    // SAFETY: a word of a unit that nothing uses; units are aligned for words.
    unsafe { write_link(slot, packed, key) };
}

/// Free units in magazines, which belong to the holder.
#[derive(Debug)]
pub(crate) struct Magazines {
    magazines: Option<Chain>,
    /// The slots left in the first magazine: it is filled from the last slot down.
    room: usize,
    count: usize,
    key: LinkKey,
}

impl Magazines {
    /// No units.
    pub(crate) const fn new(key: LinkKey) -> Self {
        Self { magazines: None, room: 0, count: 0, key }
    }

    /// The number of units.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Puts a unit of `size` bytes in.
    ///
    /// # Safety
    /// - `unit` is a unit of this size that nothing uses, and is in no list. The
    ///   size is the same each time.
    #[inline]
    pub(crate) unsafe fn push(&mut self, unit: NonNull<u8>, size: usize) {
        self.count += 1;
        match &mut self.magazines {
            Some(magazines) if self.room > 0 => {
                // SAFETY: the first magazine is free, and has `room` slots left.
                unsafe { write(magazines.first(), self.room, Some(unit), self.key) };
                self.room -= 1;
                return;
            }
            // SAFETY: nothing uses the unit, which is in no list.
            Some(magazines) => unsafe { magazines.push(unit) },
            // SAFETY: nothing uses the unit, which is in no list.
            magazines => *magazines = Some(unsafe { Chain::of(unit, self.key) }),
        }
        self.room = slots(size);
    }

    /// Takes all magazines, with the slots of the first that are not used marked.
    pub(crate) fn take(&mut self) -> Option<Chain> {
        let magazines = self.magazines.take()?;
        if self.room > 0 {
            // SAFETY: the first magazine is free, and has `room` slots left.
            unsafe { write(magazines.first(), self.room, None, self.key) };
        }
        *self = Self::new(self.key);
        Some(magazines)
    }
}

/// Takes the first magazine off a list of them and puts its units of `size` bytes, the
/// magazine too, in a list of units. Does nothing if there is none. Damage met in either
/// list is noted in that of units.
///
/// # Safety
/// - Both lists are of free units of this size; those of `magazines` came from
///   [`Magazines::take`].
#[inline]
pub(crate) unsafe fn unpack(magazines: &mut List, size: usize, units: &mut List) {
    let Some(unit) = magazines.first() else { return };
    magazines.pop();
    // SAFETY: `Magazines::take` left magazines whose slots are written, from the last one
    // down to a `None` or to the first. What is in them was in use until it was put there: with the feature `hardening`
    // its seal said so (`UnitSeals::take_back`), otherwise those who freed it promised it. So it is in no list.
    unsafe { for_each_in_magazine(unit, size, magazines.watch(), |packed| units.push(packed)) };
    // SAFETY: just taken out of its list.
    unsafe { units.push(unit.cast()) };
    units.note(magazines.ensure_sound());
}

/// [Unpacks](unpack) all magazines of a list, of which there are at most `most`, unless damage is met.
///
/// # Safety
/// As [`unpack`].
pub(crate) unsafe fn unpack_all(mut magazines: List, size: usize, most: usize, units: &mut List) {
    for _ in 0..most {
        if magazines.first().is_none() || units.ensure_sound().is_err() {
            break;
        }
        // SAFETY: both lists are of free units of this size, and the magazines are whole.
        unsafe { unpack(&mut magazines, size, units) };
    }
    magazines.end();
    units.note(magazines.ensure_sound());
}

/// Shows the units in a magazine, which is not among them, up to a slot that was written
/// over, which is noted.
///
/// # Safety
/// - `unit` is a magazine from [`Magazines::take`] that is not unpacked.
pub(crate) unsafe fn for_each_in_magazine(
    unit: NonNull<FreeBlock>,
    size: usize,
    watch: Watch<'_>,
    mut visit: impl FnMut(NonNull<u8>),
) {
    for number in (1..=slots(size)).rev() {
        // SAFETY: the number of a slot.
        let slot = unsafe { slot(unit, number) };
        // SAFETY: a slot of the magazine, written because those above it are used.
        let packed = unsafe { read_link(slot, align_of::<FreeBlock>(), watch.key) };
        let Some(packed) = watch.noted(packed) else { return };
        visit(packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_magazine_is_a_cache_line_or_a_small_unit() {
        let word = size_of::<usize>();
        for (words, expected) in [(1, 0), (2, 1), (5, 4), (8, 7), (9, 7), (512, 7)] {
            assert_eq!(slots(words * word + SEAL_SIZE), expected, "in {words} words");
        }
    }
}
