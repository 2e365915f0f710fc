//! The rings that a socket shares with the kernel (design/xdp.md `.ring`).

use core::ptr::NonNull;
use std::io;
use std::os::fd::AsFd;

use tripoint_core::internal::{AtomicU32, Ordering};

use crate::abi::Mapping;

/// Where the parts of a ring are in its mapping.
type Offsets = libc::xdp_ring_offset;

/// Where the entries of a ring are. Indexes only grow, and wrap; the entry of an index is the one below `entries` that is left if
/// multiples of `entries` are taken away.
#[derive(Clone, Copy, Debug)]
struct Entries<T> {
    first: NonNull<T>,
    entries: u32,
}

impl<T> Entries<T> {
    #[inline]
    const fn entry(self, index: u32) -> NonNull<T> {
        // SAFETY: below the number of entries, which is a power of two, and all of which are in the mapping.
        unsafe { self.first.add((index & (self.entries - 1)) as usize) }
    }
}

/// What both kinds of rings have.
#[derive(Debug)]
struct Shared<T> {
    produced: NonNull<AtomicU32>,
    consumed: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: Entries<T>,
    _mapping: Mapping,
}

// SAFETY: the mapping may be used by any thread, and a ring is used by one at a time, which owns it; the words that it shares
// with the kernel are atomic.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// Maps a ring of `entries`, a power of two, which the kernel has made for the socket at `place`.
    fn map(socket: &impl AsFd, place: u64, offsets: Offsets, entries: u32) -> io::Result<Self> {
        let bytes = offsets.desc as usize + entries as usize * size_of::<T>();
        Self::over(Mapping::of_socket(socket, bytes, place)?, offsets, entries)
    }

    /// A ring in a mapping that has its entries from the offset of them on.
    fn over(mapping: Mapping, offsets: Offsets, entries: u32) -> io::Result<Self> {
        let word = |offset: u64| {
            let is_inside = offset.is_multiple_of(4) && offset as usize + 4 <= mapping.bytes();
            // SAFETY: inside of the mapping.
            is_inside.then(|| unsafe { mapping.base().add(offset as usize) }.cast::<AtomicU32>())
        };
        let words = (word(offsets.producer), word(offsets.consumer), word(offsets.flags));
        let (Some(produced), Some(consumed), Some(flags)) = words else {
            return Err(io::Error::other("the kernel has the words of a ring outside of it"));
        };
        // SAFETY: the entries lie in the mapping, which was made as large as that.
        let first = unsafe { mapping.base().add(offsets.desc as usize) }.cast::<T>();
        if !first.is_aligned() {
            return Err(io::Error::other("the kernel has the entries of a ring at an odd address"));
        }
        Ok(Self { produced, consumed, flags, entries: Entries { first, entries }, _mapping: mapping })
    }

    #[inline]
    fn word(&self, place: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: `over` found the word aligned and in the mapping, which is there as long as this. Both sides use it as an
        // atomic word.
        unsafe { place.as_ref() }
    }

    /// Entries between two indexes. What the kernel says wrongly is no more than the ring has.
    const fn between(&self, begin: u32, end: u32) -> u32 {
        let (count, most) = (end.wrapping_sub(begin), self.entries.entries);
        if count < most { count } else { most }
    }
}

/// A ring that the program writes and the kernel reads: for a fill ring, offsets; for a transmit ring, descriptors.
#[derive(Debug)]
pub(crate) struct Submissions<T> {
    shared: Shared<T>,
    /// The index of the next entry to write. The kernel sees those before the index that was published.
    next: u32,
}

impl<T: Copy> Submissions<T> {
    pub(crate) fn map(socket: &impl AsFd, place: u64, offsets: Offsets, entries: u32) -> io::Result<Self> {
        Shared::map(socket, place, offsets, entries).map(Self::of)
    }

    fn of(shared: Shared<T>) -> Self {
        let next = shared.word(shared.produced).load(Ordering::Relaxed);
        Self { shared, next }
    }

    /// How many entries the kernel has not read yet, with those that are not published.
    #[inline]
    pub(crate) fn waiting(&self) -> u32 {
        // An entry is written again only after the kernel has read it.
        let consumed = self.shared.word(self.shared.consumed).load(Ordering::Acquire);
        self.shared.between(consumed, self.next)
    }

    /// How many entries can be written.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        self.shared.entries.entries - self.waiting()
    }

    /// Writes entries, one for each call, that the kernel sees once [`publish`](Self::publish) was called. There has to be
    /// [`room`](Self::room): without it, an entry that the kernel has not read is lost.
    #[inline]
    pub(crate) fn push<V>(&mut self, entry: impl Fn(V) -> T) -> impl FnMut(V) {
        // Copies, of which the index is written back: a call does not wait for what the one before has stored.
        let (entries, mut index) = (self.shared.entries, self.next);
        move |value| {
            // SAFETY: the entry is in the mapping and aligned. The kernel reads it only once it is published, and writes none.
            unsafe { entries.entry(index).write(entry(value)) };
            index = index.wrapping_add(1);
            self.next = index;
        }
    }

    /// Lets the kernel see what was written.
    #[inline]
    pub(crate) fn publish(&self) {
        self.shared.word(self.shared.produced).store(self.next, Ordering::Release);
    }

    /// Whether the kernel sleeps until it is called. It may say so a moment late: look again later.
    #[inline]
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.shared.word(self.shared.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that the kernel writes and the program reads: for a receive ring, descriptors; for a completion ring, offsets.
#[derive(Debug)]
pub(crate) struct Completions<T> {
    shared: Shared<T>,
    next: u32,
}

impl<T: Copy> Completions<T> {
    pub(crate) fn map(socket: &impl AsFd, place: u64, offsets: Offsets, entries: u32) -> io::Result<Self> {
        Shared::map(socket, place, offsets, entries).map(Self::of)
    }

    fn of(shared: Shared<T>) -> Self {
        let next = shared.word(shared.consumed).load(Ordering::Relaxed);
        Self { shared, next }
    }

    /// How many entries wait.
    #[inline]
    pub(crate) fn waiting(&self) -> u32 {
        // What the kernel wrote before this number is seen after it.
        let produced = self.shared.word(self.shared.produced).load(Ordering::Acquire);
        self.shared.between(self.next, produced)
    }

    /// Looks at the entries that wait, which go on waiting.
    #[inline]
    pub(crate) fn ahead(&self) -> impl Iterator<Item = T> {
        let (entries, begin) = (self.shared.entries, self.next);
        (0..self.waiting()).map(move |place| {
            // SAFETY: the kernel has written the entry, as a load with acquire said, and does not write to it before it is
            // released. Any bytes are a value: both kinds are numbers.
            unsafe { entries.entry(begin.wrapping_add(place)).read() }
        })
    }

    /// Reads the entries that wait. The kernel has them back once [`release`](Self::release) was called.
    #[inline]
    pub(crate) fn read(&mut self) -> impl Iterator<Item = T> {
        let (waiting, entries, begin) = (self.waiting(), self.shared.entries, self.next);
        (0..waiting).map(move |place| {
            let index = begin.wrapping_add(place);
            self.next = index.wrapping_add(1);
            // SAFETY: the kernel has written the entry, as a load with acquire said, and does not write to it before it is
            // released. Any bytes are a value: both kinds are numbers.
            unsafe { entries.entry(index).read() }
        })
    }

    /// Lets the kernel write to what was read.
    #[inline]
    pub(crate) fn release(&self) {
        self.shared.word(self.shared.consumed).store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: u32 = 8;

    const OFFSETS: Offsets = Offsets { producer: 0, consumer: 64, desc: 192, flags: 128 };

    /// A ring in memory that no kernel has, of which both sides have got to `index`.
    fn shared(index: u32) -> Shared<u64> {
        let ring = Shared::over(Mapping::of_zeros(4096).unwrap(), OFFSETS, ENTRIES).unwrap();
        ring.word(ring.produced).store(index, Ordering::Relaxed);
        ring.word(ring.consumed).store(index, Ordering::Relaxed);
        ring
    }

    /// What the other side reads and writes: an entry, found by a division.
    fn place(ring: &Shared<u64>, index: u32) -> NonNull<u64> {
        // SAFETY: there are as many entries in the mapping.
        unsafe { ring.entries.first.add((u64::from(index) % u64::from(ENTRIES)) as usize) }
    }

    #[test]
    fn submissions_go_on_over_the_end_of_the_indexes() {
        for begin in (u32::MAX - 20)..=u32::MAX {
            let mut ring = Submissions::of(shared(begin));
            let mut read = begin;
            for round in 0..12_u64 {
                let count = 1 + round % u64::from(ENTRIES);
                assert_eq!((ring.waiting(), ring.room()), (0, ENTRIES), "{begin}, {round}");
                (0..count).map(|value| 100 * round + value).for_each(ring.push(|value| value));
                assert_eq!(ring.room(), ENTRIES - count as u32);
                assert_eq!(ring.shared.word(ring.shared.produced).load(Ordering::Relaxed), read, "too soon");
                ring.publish();
                let end = ring.shared.word(ring.shared.produced).load(Ordering::Relaxed);
                for value in 0..count {
                    // SAFETY: in the mapping, and written.
                    assert_eq!(unsafe { place(&ring.shared, read).read() }, 100 * round + value);
                    read = read.wrapping_add(1);
                }
                assert_eq!(end, read);
                ring.shared.word(ring.shared.consumed).store(read, Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn completions_go_on_over_the_end_of_the_indexes() {
        for begin in (u32::MAX - 20)..=u32::MAX {
            let mut ring = Completions::of(shared(begin));
            let mut written = begin;
            for round in 0..12_u64 {
                let count = 1 + round % u64::from(ENTRIES);
                for value in 0..count {
                    // SAFETY: in the mapping.
                    unsafe { place(&ring.shared, written).write(100 * round + value) };
                    written = written.wrapping_add(1);
                }
                ring.shared.word(ring.shared.produced).store(written, Ordering::Relaxed);
                assert_eq!(u64::from(ring.waiting()), count);
                let expected: Vec<_> = (0..count).map(|value| 100 * round + value).collect();
                assert_eq!(ring.ahead().collect::<Vec<_>>(), expected);
                assert_eq!(u64::from(ring.waiting()), count, "they go on waiting");
                assert_eq!(ring.read().collect::<Vec<_>>(), expected);
                ring.release();
                assert_eq!(ring.shared.word(ring.shared.consumed).load(Ordering::Relaxed), written);
            }
        }
    }

    /// Whatever the kernel says, no more is read or written than there is.
    #[test]
    fn indexes_that_cannot_be_are_no_more_than_the_ring_has() {
        for begin in [0, 5, u32::MAX - 3] {
            for lie in [ENTRIES + 1, 1 << 20, 1 << 31, u32::MAX] {
                let mut ring = Completions::of(shared(begin));
                ring.shared.word(ring.shared.produced).store(begin.wrapping_add(lie), Ordering::Relaxed);
                assert_eq!(ring.waiting(), ENTRIES);
                assert_eq!(ring.ahead().count(), ENTRIES as usize);
                assert_eq!(ring.read().count(), ENTRIES as usize);
                let ring = Submissions::of(shared(begin));
                ring.shared.word(ring.shared.consumed).store(begin.wrapping_sub(lie), Ordering::Relaxed);
                assert_eq!((ring.waiting(), ring.room()), (ENTRIES, 0));
                // It has read what was not written yet.
                ring.shared.word(ring.shared.consumed).store(begin.wrapping_add(lie), Ordering::Relaxed);
                assert!(ring.waiting() + ring.room() == ENTRIES, "{begin}, {lie}");
            }
        }
    }

    #[test]
    fn words_and_entries_outside_of_the_mapping_are_refused() {
        for offsets in [
            Offsets { producer: 4094, ..OFFSETS },
            Offsets { consumer: 4096, ..OFFSETS },
            Offsets { flags: 66, ..OFFSETS },
            Offsets { desc: 193, ..OFFSETS },
        ] {
            let ring = Shared::<u64>::over(Mapping::of_zeros(4096).unwrap(), offsets, ENTRIES);
            assert!(ring.is_err(), "{offsets:?}");
        }
    }
}
