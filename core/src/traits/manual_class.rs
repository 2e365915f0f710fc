//! The short way to write a manual pool class: only what is particular to it.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::traits::arena::Arena;
use crate::traits::barrier::SymmetricFence;
use crate::traits::block::Block;
use crate::traits::buffer_class::BasicBuffer;
use crate::traits::fill::Fill;
use crate::traits::gives_way::GivesWay;
use crate::traits::keeps_in_buffer::KeepsInBuffer;
use crate::traits::manual_pool::ManualPool;
use crate::traits::pool::{PoolClass, PoolSizes};
use crate::traits::pool_header::PoolHeader;
use crate::traits::store::Store;
use crate::values::check::Check;
use crate::values::describe::Describe;
use crate::values::error::Result;

/// A manual pool class without segments or ranks: the client frees each object, and the pool
/// never moves one.
///
/// A class that implements this trait is a [`PoolClass`] and a [`ManualPool`]. Everything in
/// which manual classes are alike is written once, in those implementations: buffers are never
/// flipped, barriers cost nothing, a buffer keeps nothing for the pool. Classes that differ
/// in this implement [`PoolClass`] themselves (design/core.md `.pool.manual`).
///
/// The methods have the names of those that call them. So import this trait where the class
/// is written, and [`PoolClass`] and [`ManualPool`] where it is used. How objects are allocated
/// and freed one by one is [`Store`].
///
/// # Safety
/// - A block from [`ManualClass::fill`] is valid for reads and writes, and overlaps nothing else
///   that is in use. It stays so until it is returned by [`ManualClass::empty`], its objects are
///   freed, or the pool is dropped. Until then the pool does not touch it.
/// - It has room for `layout.size()` bytes. Its base is a multiple of `layout.align()`, and base
///   and limit are multiples of [`ManualClass::min_align`].
/// - An object of [`Store::alloc`] takes the bytes that [`ManualClass::reserve_size`] says, from a
///   multiple of [`ManualClass::min_align`].
/// - All of this memory ends at or below [`ADDRESS_CEILING`](crate::ADDRESS_CEILING), as the
///   tracts of an arena do.
/// - [`Store::free`] takes objects that were allocated in a fill too, from any thread that may call the pool, also while
///   the rest of that fill is in use.
/// - [`ManualClass::header`] always returns the same header, and only classes that implement
///   this trait share it.
/// - [`ManualClass::min_align`] is a power of two and never changes.
/// - [`ManualClass::reserve_size`] depends on the layout alone. It is a multiple of `min_align`,
///   at least `layout.size()`, and not zero. For a smaller layout of the same alignment it is
///   not larger, and not `None`. If two layouts have the same alignment and this size, an object
///   of one may become one of the other in place.
#[diagnostic::on_unimplemented(
    note = "only manual pools do this: in a stack pool (Snc) use `AllocationPoint::scope`, in a flippable one `alloc_with`"
)]
pub unsafe trait ManualClass: Store + Check + Describe {
    /// As [`PoolClass::CLASS`].
    const CLASS: &'static str;

    /// As [`PoolClass::SEAL_SIZE`].
    const SEAL_SIZE: usize = 0;

    /// As [`PoolClass::Arena`].
    type Arena: Arena;

    /// As [`PoolClass::header`].
    fn header(&self) -> &PoolHeader<Self::Arena>;

    /// As [`PoolClass::min_align`].
    fn min_align(&self) -> usize;

    /// As [`PoolClass::reserve_size`].
    fn reserve_size(&self, layout: Layout) -> Option<usize>;

    /// Returns a block for a buffer that is about to allocate `layout`. None of it is allocated
    /// yet. See [`PoolClass::fill`].
    ///
    /// # Errors
    /// Those of [`PoolClass::fill`].
    fn fill(&self, layout: Layout) -> Result<Block>;

    /// As [`PoolClass::empty`].
    ///
    /// # Safety
    /// Those of [`PoolClass::empty`].
    unsafe fn empty(&self, unused: Block);

    /// As [`ManualPool::OBSERVES_OBJECTS`].
    const OBSERVES_OBJECTS: bool = false;

    /// As [`ManualPool::set_aside`].
    ///
    /// # Safety
    /// Those of [`ManualPool::set_aside`].
    #[inline(always)]
    unsafe fn set_aside(&self, object: NonNull<u8>, layout: Layout) -> bool {
        let _ = (object, layout);
        true
    }

    /// As [`ManualPool::put_in_use`].
    ///
    /// # Safety
    /// Those of [`ManualPool::put_in_use`].
    #[inline(always)]
    unsafe fn put_in_use(&self, object: NonNull<u8>, layout: Layout) -> bool {
        let _ = (object, layout);
        true
    }

    /// As [`ManualPool::note_damage`].
    fn note_damage(&self) {}

    /// As [`PoolClass::walk_free`].
    fn walk_free(&self, visit: &mut dyn FnMut(Block));

    /// As [`PoolClass::sizes`]; see [`PoolSizes::of`].
    fn sizes(&self) -> PoolSizes;
}

impl<C: ManualClass> KeepsInBuffer for C {
    type Buffer = BasicBuffer;

    fn new_buffer(&self) -> BasicBuffer {
        BasicBuffer
    }
}

impl<C: ManualClass> GivesWay for C {}

// SAFETY: what `PoolClass` requires of blocks, of the header, of alignments and of sizes,
// `ManualClass` promises in the same words. Fills have no segment and nothing preallocated, and
// classes that share a header have the same buffers: all of them are `ManualClass`es.
unsafe impl<C: ManualClass> PoolClass for C {
    const CLASS: &'static str = C::CLASS;
    const FLIPPABLE: bool = false;
    const SEAL_SIZE: usize = C::SEAL_SIZE;

    type Arena = C::Arena;
    type Barrier = SymmetricFence;

    #[inline(always)]
    fn header(&self) -> &PoolHeader<C::Arena> {
        ManualClass::header(self)
    }

    #[inline(always)]
    fn barrier(&self) -> SymmetricFence {
        SymmetricFence
    }

    #[inline(always)]
    fn min_align(&self) -> usize {
        ManualClass::min_align(self)
    }

    #[inline(always)]
    fn reserve_size(&self, layout: Layout) -> Option<usize> {
        ManualClass::reserve_size(self, layout)
    }

    #[inline]
    fn fill(&self, layout: Layout) -> Result<Fill> {
        ManualClass::fill(self, layout).map(Fill::from)
    }

    #[inline]
    unsafe fn empty(&self, unused: Block) {
        // SAFETY: the caller returns the unused end of a fill, once, and does not use it any
        // more, which is what `ManualClass::empty` requires.
        unsafe { ManualClass::empty(self, unused) };
    }

    fn walk_free(&self, visit: &mut dyn FnMut(Block)) {
        ManualClass::walk_free(self, visit);
    }

    fn sizes(&self) -> PoolSizes {
        ManualClass::sizes(self)
    }
}

// SAFETY: never flippable. `ManualClass` promises that objects of buffers may be freed by any
// thread that may call the pool, that `Store::alloc` keeps the promises of fills, and when objects may be resized in place.
unsafe impl<C: ManualClass> ManualPool for C {
    const OBSERVES_OBJECTS: bool = C::OBSERVES_OBJECTS;

    #[inline(always)]
    unsafe fn set_aside(&self, object: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: if there is such an object it is the caller's, and nothing uses it: what `ManualClass::set_aside` requires.
        unsafe { ManualClass::set_aside(self, object, layout) }
    }

    #[inline(always)]
    unsafe fn put_in_use(&self, object: NonNull<u8>, layout: Layout) -> bool {
        // SAFETY: the caller set the object aside with this layout, and has it: what `ManualClass::put_in_use` requires.
        unsafe { ManualClass::put_in_use(self, object, layout) }
    }

    #[inline]
    fn note_damage(&self) {
        ManualClass::note_damage(self);
    }
}
