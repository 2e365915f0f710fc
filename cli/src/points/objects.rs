//! Which objects of a pool are live, in the log and in the replay: nothing is freed in the replay that is not allocated
//! there, whatever the log says.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeMap;

/// A call that no program can have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Impossible(pub(super) &'static str);

const NOT_ALLOCATED: Impossible = Impossible("it frees or resizes what is not allocated");
const OTHER_LAYOUT: Impossible = Impossible("it frees or resizes an object with another layout than it has");

/// The live objects of a pool.
#[derive(Debug)]
pub(super) struct Objects {
    /// By their addresses in the log.
    live: BTreeMap<u64, Object>,
    /// The alignment, in bytes, of every object of the pool, and of its size.
    granule: usize,
}

/// Memory that was allocated by one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    /// Where it is in the replay.
    pub(super) at: NonNull<u8>,
    /// Its bytes in the log.
    pub(super) size: usize,
    /// Its bytes in the replay, as the pool rounds them.
    pub(super) reserved: usize,
    pub(super) made: Made,
}

/// How memory was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// In one piece.
    Whole,
    /// At a point, as a batch, whose objects may be freed one by one.
    AsBatch,
}

impl Objects {
    pub(super) const fn new(granule: usize) -> Self {
        Self { live: BTreeMap::new(), granule }
    }

    pub(super) fn insert(&mut self, logged: u64, object: Object) {
        self.live.insert(logged, object);
    }

    /// Takes out an object that is to be freed with a layout, for which the pool would reserve `reserved` bytes. Returns
    /// where it is in the replay: it is aligned as the layout says.
    pub(super) fn take(
        &mut self,
        logged: u64,
        layout: Layout,
        reserved: Option<usize>,
    ) -> Result<NonNull<u8>, Impossible> {
        let (&start, &object) = self.live.range(..=logged).next_back().ok_or(NOT_ALLOCATED)?;
        let offset = usize::try_from(logged - start).map_err(|_| NOT_ALLOCATED)?;
        if offset >= object.size.max(1) {
            return Err(NOT_ALLOCATED);
        }
        let at = object.at.map_addr(|addr| addr.saturating_add(offset));
        if !offset.is_multiple_of(self.granule) || !at.addr().get().is_multiple_of(layout.align()) {
            return Err(OTHER_LAYOUT);
        }
        let is_whole = offset == 0 && reserved == Some(object.reserved);
        match object.made {
            _ if is_whole => _ = self.live.remove(&start),
            Made::AsBatch => self.divide(start, object, offset, reserved.ok_or(OTHER_LAYOUT)?)?,
            Made::Whole => return Err(OTHER_LAYOUT),
        }
        Ok(at)
    }

    /// Takes one object out of a batch. What is before and behind it stays.
    fn divide(&mut self, start: u64, batch: Object, offset: usize, size: usize) -> Result<(), Impossible> {
        let end = offset.checked_add(size).ok_or(OTHER_LAYOUT)?;
        let within = batch.reserved.min(batch.size);
        let at = |bytes: usize| batch.at.map_addr(|addr| addr.saturating_add(bytes));
        if end > within {
            return Err(OTHER_LAYOUT);
        }
        self.live.remove(&start);
        let piece = |from: usize, to: usize| Object {
            at: at(from),
            size: to - from,
            reserved: to - from,
            made: Made::AsBatch,
        };
        if offset > 0 {
            self.live.insert(start, piece(0, offset));
        }
        if end < within {
            self.live.insert(start.wrapping_add(end as u64), piece(end, within));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: Layout = Layout::new::<u64>();

    fn object(made: Made, size: usize) -> Object {
        let at = NonNull::new(core::ptr::without_provenance_mut(0x1000)).unwrap();
        Object { at, size, reserved: size, made }
    }

    #[test]
    fn only_what_is_allocated_is_freed_and_once() {
        let mut objects = Objects::new(8);
        objects.insert(64, object(Made::Whole, 16));
        objects.insert(128, object(Made::Whole, 32));
        assert_eq!(objects.take(56, WORD, Some(16)), Err(NOT_ALLOCATED));
        assert_eq!(objects.take(80, WORD, Some(16)), Err(NOT_ALLOCATED));
        assert_eq!(objects.take(72, WORD, Some(16)), Err(OTHER_LAYOUT), "inside an object");
        let aligned = Layout::from_size_align(8, 0x2000).unwrap();
        assert_eq!(objects.take(64, aligned, Some(16)), Err(OTHER_LAYOUT), "it lies at 0x1000");
        assert_eq!(objects.take(64, WORD, Some(32)), Err(OTHER_LAYOUT), "of another size");
        assert!(objects.take(64, WORD, Some(16)).is_ok());
        assert_eq!(objects.take(64, WORD, Some(16)), Err(NOT_ALLOCATED), "freed before");
        assert_eq!(objects.take(128, WORD, Some(16)), Err(OTHER_LAYOUT), "a part of an object");
        assert!(objects.take(128, Layout::new::<[u8; 20]>(), Some(32)).is_ok());
    }

    #[test]
    fn objects_of_a_batch_are_freed_one_by_one() {
        let mut objects = Objects::new(16);
        objects.insert(0x4000, object(Made::AsBatch, 64));
        let mut take = |place: usize| {
            objects.take(0x4000 + place as u64, WORD, Some(16)).map(|at| at.addr().get() - 0x1000)
        };
        assert_eq!([16, 48, 0, 32].map(&mut take), [Ok(16), Ok(48), Ok(0), Ok(32)]);
        assert_eq!(take(16), Err(NOT_ALLOCATED));
        assert_eq!(take(56), Err(NOT_ALLOCATED));
        objects.insert(0x4000, object(Made::AsBatch, 64));
        assert_eq!(objects.take(0x4008, WORD, Some(16)), Err(OTHER_LAYOUT), "between two granules");
        assert_eq!(objects.take(0x4030, WORD, Some(32)), Err(OTHER_LAYOUT), "beyond the batch");
        assert_eq!(objects.take(0x4010, WORD, None), Err(OTHER_LAYOUT), "of a layout that is not served");
    }
}
