//! What a manual pool promises in addition: its objects are freed one by one.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::traits::pool::PoolClass;
use crate::traits::store::Store;

/// A pool whose objects the client frees, and which never moves or takes them.
///
/// # Safety
/// - [`PoolClass::FLIPPABLE`] is false.
/// - Memory from [`Store::alloc`] keeps the promises of [`PoolClass::fill`]. What was allocated in
///   a buffer may be freed by [`Store::free`], in any thread that may call the pool, also while that buffer is in use.
/// - Memory from [`KeepsInBuffer::alloc_in_buffer`](crate::KeepsInBuffer::alloc_in_buffer) keeps the promises of [`Store::alloc`].
/// - If [`ManualPool::resizes_in_place`] returns true, an object has room for the new layout
///   in place, and may be freed as if it had been allocated with either.
#[diagnostic::on_unimplemented(
    note = "only manual pools do this: in a stack pool (Snc) use `AllocationPoint::scope`, in a flippable one `alloc_with`"
)]
pub unsafe trait ManualPool: PoolClass + Store {
    /// Whether the class observes each object, as one does that looks for faults. A front end then must not cut one into several.
    const OBSERVES_OBJECTS: bool = false;

    /// Takes an object of this layout, from [`Store::alloc`] of this pool, out of use: until it is [put in
    /// use](ManualPool::put_in_use) again, no store of the pool frees it. This is for front ends that keep objects for later,
    /// such as caches. A class returns `false`, and changes nothing, if it knows that there is no such object in use, because it
    /// was freed or set aside before. It takes constant time and no lock. The default returns `true`.
    ///
    /// # Safety
    /// - If there is such an object, it is the caller's, and nothing uses it any more.
    #[inline(always)]
    unsafe fn set_aside(&self, object: NonNull<u8>, layout: Layout) -> bool {
        let _ = (object, layout);
        true
    }

    /// Puts an object in use again that was [set aside](ManualPool::set_aside): it is about to be handed out, or freed. A class
    /// returns `false`, and changes nothing, if it knows that the object is not set aside. It takes constant time and
    /// no lock. The default returns `true`.
    ///
    /// # Safety
    /// - `object` was set aside with this layout, and the caller is the one that has it.
    #[inline(always)]
    unsafe fn put_in_use(&self, object: NonNull<u8>, layout: Layout) -> bool {
        let _ = (object, layout);
        true
    }

    /// Observes damage that a front end, such as a cache, has found: something was freed that is
    /// no object, or free memory was written to. A class that is disabled by damage refuses every
    /// request from then on. The default does nothing.
    fn note_damage(&self) {}

    /// Whether an object of layout `from` may become one of layout `to` in place, as [`Store::resize`] has
    /// it. By default it may if both take the same room and have the same alignment.
    ///
    /// A class that remembers more of a layout than the room it takes must return false if that
    /// differs.
    #[inline]
    fn resizes_in_place(&self, from: Layout, to: Layout) -> bool {
        let size = self.reserve_size(to);
        size.is_some() && size == self.reserve_size(from) && from.align() == to.align()
    }
}
