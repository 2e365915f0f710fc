//! Where one object gets its memory from, and returns it to.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::words::error::Result;

/// A manual pool, or a cache over one: it allocates objects one by one, and frees them one by
/// one.
///
/// [`PoolBox`](crate::PoolBox) and [`PoolRc`](crate::PoolRc) do both by themselves.
///
/// # Safety
/// - Memory from [`Store::alloc`] is valid for reads and writes of `layout.size()` bytes, is
///   aligned to `layout.align()`, and is used by nothing else until it is freed or the store is
///   dropped. It stays so if the store is moved.
/// - [`Store::free`] relies on the address of an object, not on the provenance of the pointer.
/// - A store that is `Sync` may be asked by any thread, whichever thread allocated the object.
#[diagnostic::on_unimplemented(
    note = "only manual pools and their caches do this: in a stack pool (Snc) use `AllocationPoint::scope`, in a flippable one `alloc_with`"
)]
pub unsafe trait Store {
    /// Allocates `layout`, aligned as it says. The memory is not initialised.
    ///
    /// # Errors
    /// - [`Error::Parameter`](crate::Error::Parameter) for a layout that the store does not
    ///   serve
    /// - those of [`Arena::alloc_tracts`](crate::Arena::alloc_tracts) if the pool has to grow
    ///   and cannot
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>>;

    /// As [`alloc`](Store::alloc), for an object of a type of this name. A store that reports what it
    /// allocates may say it; by default the name is not used.
    ///
    /// # Errors
    /// Those of [`alloc`](Store::alloc).
    #[inline(always)]
    fn alloc_named(&self, layout: Layout, type_name: &'static str) -> Result<NonNull<u8>> {
        let _ = type_name;
        self.alloc(layout)
    }

    /// Frees the memory of an object.
    ///
    /// # Safety
    /// - `object` came, with this `layout`, from [`Store::alloc`] of this store, or from a source
    ///   whose objects this store takes. A pool takes those of its allocation points and of its
    ///   caches; a cache says which it takes. Only the address matters: the pointer may have
    ///   passed through a reference to a part of the object, because a pool reaches the memory
    ///   by [`PoolHeader::reach`](crate::PoolHeader::reach).
    /// - It is freed once, and nothing uses it any more.
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout);
}
