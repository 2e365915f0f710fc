//! How many blocks a cache keeps and passes on at once, and how a size becomes an entry of its table
//! (design/cache.md `.classes`, `.capacity`). Kept apart from words that threads share, so that laws can be proved of it
//! (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

/// The alignment, in bytes, of every block in a cache, and of its size: two words.
pub(crate) const BLOCK_ALIGN: usize = 2 * size_of::<usize>();

/// The blocks that pass at once between the pool and a class that was seldom used, if they are small.
const FIRST: usize = 8;

/// The bytes of them, if they are large.
const FIRST_SIZE: usize = 4 << 10;

/// The part of a pool's memory that a cache may keep for its classes to keep more.
const SHARE: usize = 32;

/// The same of a small pool, up to [`ENOUGH`].
const SMALL_SHARE: usize = 4;

/// The bytes that are more than a part of a small pool, and with which each class can keep what it needs.
const ENOUGH: usize = 512 << 10;

/// The bytes of a slab, and its alignment.
pub(super) const SLAB_SIZE: usize = 64 << 10;

/// The largest blocks that slabs are cut into.
pub(super) const LARGEST_IN_SLAB: usize = SLAB_SIZE / 64;

/// How many words there are for the bits of a slab: as many bits as the smallest blocks.
pub(super) const SLAB_WORDS: usize = SLAB_SIZE / BLOCK_ALIGN / usize::BITS as usize;

/// The bytes of a slab's header without its bits, at most: a cache line.
const HEADER: usize = 64;

/// At how many places the header may be, so that those of many slabs do not all share the same part of a processor's cache.
const PLACES: usize = 8;

/// The bytes at the start of a slab that have its header and its bits.
const FRONT: usize = PLACES * HEADER + SLAB_WORDS * size_of::<usize>();

/// The entry of the table for a size: that of the next multiple of [`BLOCK_ALIGN`]. Of a size that is no layout's, any.
#[inline(always)]
pub(super) const fn step_of(size: usize) -> usize {
    size.wrapping_add(BLOCK_ALIGN - 1) / BLOCK_ALIGN
}

/// The blocks of a batch: half of what may be kept, but no more than `most`.
pub(super) const fn batch_of(count: usize, most: usize) -> usize {
    let half = count / 2;
    if half < most { half } else { most }
}

/// Whether a cache that keeps `cached` bytes of a pool's `total` may keep more.
pub(super) const fn may_keep_more(cached: usize, total: usize) -> bool {
    let (share, small) = (total / SHARE, total / SMALL_SHARE);
    let small = if small < ENOUGH { small } else { ENOUGH };
    cached <= if share < small { small } else { share }
}

/// The portion that a class of blocks of `size` bytes, not zero, begins with, and shrinks to.
pub(super) fn first_portion(size: usize) -> usize {
    FIRST.min((FIRST_SIZE / size).max(1))
}

/// The portion of a class that was hardly used: half of what it is.
pub(super) fn smaller_portion(portion: usize, size: usize) -> usize {
    portion.div_ceil(2).max(first_portion(size))
}

/// The portion as it is kept: no more than a batch, which is at most a magazine, far below 2^32.
pub(super) fn portion_within(portion: usize, batch: usize) -> u32 {
    portion.min(batch) as u32
}

/// How far into its slab an address is.
#[inline(always)]
pub(super) const fn offset_in_slab(addr: usize) -> usize {
    addr % SLAB_SIZE
}

/// How many blocks of `size` bytes, not zero, a slab is cut into.
#[inline(always)]
pub(super) const fn blocks_in_slab(size: usize) -> usize {
    (SLAB_SIZE - FRONT) / size
}

/// Where the header of the slab at `base` is in it. Its bits follow.
#[inline(always)]
pub(super) const fn header_in_slab(base: usize) -> usize {
    base / SLAB_SIZE % PLACES * HEADER
}

/// Where in a slab the block of `size` bytes with this index is.
#[inline(always)]
pub(super) const fn place_in_slab(size: usize, index: usize) -> usize {
    FRONT + index * size
}

/// What [`index_in_slab`] multiplies by, for blocks of `size` bytes, not zero: the reciprocal, in units of 2^-32, rounded up.
#[inline(always)]
pub(super) const fn reciprocal(size: usize) -> u64 {
    (1_u64 << 32).div_ceil(size as u64)
}

/// The index of the block at `place` in its slab. Exact for the blocks of a slab, whose places are far below 2^32 divided by
/// what was rounded.
#[inline(always)]
pub(super) const fn index_in_slab(reciprocal: u64, place: usize) -> usize {
    (place.wrapping_sub(FRONT) as u64).wrapping_mul(reciprocal).wrapping_shr(32) as usize
}
