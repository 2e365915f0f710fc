//! Which sizes a cache keeps, and how many of each (design/cache.md `.classes`).

#![forbid(unsafe_code)]

use core::alloc::Layout;

use tripoint_core::{Error, Magazine, Result, aver};

pub(crate) use super::sums::BLOCK_ALIGN;
use super::sums::{batch_of, step_of};

/// The most classes there may be.
pub(crate) const CLASSES_MAX: usize = 48;

/// Up to this size, in bytes, the class is found by one look into a table.
const SMALL: usize = 64 * BLOCK_ALIGN;

/// The classes that a doubling of the size is divided in.
const STEPS: usize = 4;

/// The same up to [`SMALL`] for a whole program ([`CacheClasses::geometric_within`]).
const FINE_STEPS: usize = 8;

/// How many blocks of a class are kept however large they are ([`CacheClasses::geometric_within`]).
const LEAST: usize = 4;

const SIZE: Error =
    Error::Parameter("classes have ascending sizes from 1 to isize::MAX, rounded to two words");

/// One size of block that a cache keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheClass {
    /// The bytes of a block, rounded up to [`CacheClass::ALIGN`]: it serves layouts
    /// that are not larger and do not fit the class before.
    pub size: usize,
    /// The most blocks of this class that the cache keeps: at least one, or `usize::MAX` to
    /// keep all.
    pub count: usize,
}

/// The size classes of a cache. Blocks may pass between caches of one pool whose classes are equal; those of a depot with
/// [slabs](crate::Depot::with_slabs) only between its own caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheClasses {
    /// The class of each size up to [`SMALL`], by multiples of [`CacheClass::ALIGN`].
    small: [u8; SMALL / BLOCK_ALIGN + 1],
    classes: [CacheClass; CLASSES_MAX],
    len: usize,
}

impl CacheClasses {
    /// The most classes that a cache has.
    pub const MAX: usize = CLASSES_MAX;

    /// The index of no class.
    pub(crate) const NONE: usize = CLASSES_MAX;

    /// These classes, in the order of their sizes.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there are none or more than [`CacheClasses::MAX`],
    /// if a count is zero, and if the rounded sizes do not ascend.
    pub fn new(classes: &[CacheClass]) -> Result<Self> {
        if classes.is_empty() || classes.len() > CLASSES_MAX {
            return Err(Error::Parameter("a cache has 1 to 48 classes"));
        }
        let mut these = Self {
            small: [CLASSES_MAX as u8; SMALL / BLOCK_ALIGN + 1],
            classes: [CacheClass::default(); CLASSES_MAX],
            len: classes.len(),
        };
        let mut largest = 0;
        for (place, class) in these.classes.iter_mut().zip(classes) {
            let size = class.size.checked_next_multiple_of(BLOCK_ALIGN).ok_or(SIZE)?;
            if size <= largest || Layout::from_size_align(size, BLOCK_ALIGN).is_err() {
                return Err(SIZE);
            }
            if class.count == 0 {
                return Err(Error::Parameter("a class keeps at least one block"));
            }
            *place = CacheClass { size, count: class.count };
            largest = size;
        }
        for step in 0..these.small.len() {
            // At most `CLASSES_MAX`, which is far below 256.
            these.small[step] = these.search(step * BLOCK_ALIGN) as u8;
        }
        Ok(these)
    }

    /// [`CacheClasses::MAX`] classes at most, evenly up to `largest` bytes: up to 768 bytes
    /// (with words of eight bytes) one for every multiple of two words, so that a block
    /// is hardly larger than asked. Each keeps `count` blocks.
    ///
    /// The more classes, the less often one call waits for what the one before wrote
    /// (design/cache.md `.classes`).
    ///
    /// # Errors
    /// [`Error::Parameter`] for a largest size that is no layout's, and for a count of
    /// zero.
    pub fn linear(largest: usize, count: usize) -> Result<Self> {
        let step = largest.div_ceil(CLASSES_MAX).max(1).checked_next_multiple_of(BLOCK_ALIGN).ok_or(SIZE)?;
        let mut classes = [CacheClass::default(); CLASSES_MAX];
        for (index, class) in classes.iter_mut().enumerate() {
            *class = CacheClass { size: step.checked_mul(index + 1).ok_or(SIZE)?, count };
        }
        let len = largest.div_ceil(step).max(1);
        aver!(len <= CLASSES_MAX, "{len} classes of {step} bytes each up to {largest}");
        Self::new(classes.get(..len).unwrap_or_default())
    }

    /// Classes for every size up to `largest` bytes, four to a doubling, so that
    /// above 128 bytes a block is at most a quarter larger than asked; each keeps
    /// `count` blocks.
    ///
    /// # Errors
    /// [`Error::Parameter`] if that takes more than [`CacheClasses::MAX`] classes
    /// (128 KiB with words of eight bytes), and for a count of zero.
    pub fn geometric(largest: usize, count: usize) -> Result<Self> {
        Self::stepping(largest, |_| STEPS, |_| count)
    }

    /// Classes for a whole program: eight to a doubling up to 1 KiB (with words of eight bytes), where most objects are,
    /// and four above. So a block is larger than asked by at most an eighth, or above 1 KiB by a quarter. Each keeps at most
    /// `count` blocks, and no more of them than fit into `size` bytes, but at least four.
    ///
    /// For a whole program, with words of eight bytes: `geometric_within(16 << 10, 128, 64 << 10)`.
    ///
    /// # Errors
    /// [`Error::Parameter`] if that takes more than [`CacheClasses::MAX`] classes (above 16 KiB), and for a count of zero.
    pub fn geometric_within(largest: usize, count: usize, size: usize) -> Result<Self> {
        let steps = |base| if base < SMALL { FINE_STEPS } else { STEPS };
        Self::stepping(largest, steps, |block| count.min((size / block).max(LEAST)))
    }

    /// Classes up to `largest` bytes: `steps` to a doubling of a size, each with a `count` of its blocks.
    fn stepping(
        largest: usize,
        steps: impl Fn(usize) -> usize,
        count: impl Fn(usize) -> usize,
    ) -> Result<Self> {
        let mut classes = [CacheClass::default(); CLASSES_MAX];
        let mut size = BLOCK_ALIGN;
        for index in 0..CLASSES_MAX {
            classes[index] = CacheClass { size, count: count(size) };
            if size >= largest {
                return Self::new(&classes[..=index]);
            }
            size += ((1 << size.ilog2()) / steps(size)).max(BLOCK_ALIGN);
        }
        Err(Error::Parameter("the largest size needs more than 48 classes"))
    }

    /// Returns the classes in the order of their sizes, the smallest first.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[CacheClass] {
        aver!(self.len <= CLASSES_MAX, "{} classes, of {CLASSES_MAX} at most", self.len);
        self.classes.get(..self.len).unwrap_or_default()
    }

    /// The layout of the block that serves `layout`; `None` if no class does.
    #[must_use]
    pub fn block(&self, layout: Layout) -> Option<Layout> {
        self.as_slice().get(self.of(layout)).and_then(CacheClass::block)
    }

    /// Whether a block that was allocated for `from` serves `to` as well, and is what a cache allocates for it. `None` if no class
    /// serves either: then it is for the pool to say.
    #[must_use]
    pub fn have_same_block(&self, from: Layout, to: Layout) -> Option<bool> {
        match (self.block(from), self.block(to)) {
            (None, None) => None,
            (from, to) => Some(from == to),
        }
    }

    /// The index of the class that serves `layout`, or [`CacheClasses::NONE`].
    #[inline(always)]
    pub(crate) fn of(&self, layout: Layout) -> usize {
        if layout.align() > BLOCK_ALIGN {
            return Self::NONE;
        }
        match self.small.get(step_of(layout.size())) {
            Some(&class) => usize::from(class),
            None => self.search(layout.size()),
        }
    }

    #[cold]
    fn search(&self, size: usize) -> usize {
        let index = self.as_slice().partition_point(|class| class.size < size);
        if index < self.len { index } else { Self::NONE }
    }
}

impl CacheClass {
    /// The alignment of every block of a cache, in bytes: two words.
    pub const ALIGN: usize = BLOCK_ALIGN;

    /// The layout of a block: there is one if the class is of a [`CacheClasses`], which refuses others.
    pub(crate) fn block(&self) -> Option<Layout> {
        let block = Layout::from_size_align(self.size, BLOCK_ALIGN).ok();
        aver!(block.is_some(), "{self:?} was not refused");
        block
    }

    /// The number of blocks that pass between a cache and its depot at once: half of what the cache may keep, but no
    /// more than a magazine.
    pub(crate) const fn batch(&self) -> usize {
        batch_of(self.count, Magazine::MAX)
    }

    /// The bytes of a batch.
    pub(crate) const fn batch_size(&self) -> usize {
        self.size.saturating_mul(self.batch())
    }
}
