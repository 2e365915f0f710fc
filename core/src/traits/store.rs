//! Where one object gets its memory from, and returns it to.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::traits::arena::Arena;
use crate::traits::block::Block;
use crate::traits::magazine::Magazine;
use crate::values::error::Result;

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
/// - If [`Store::resize`] returns a pointer, it has the address of the object, reaches `to.size()` bytes there, and
///   those that both layouts have are unchanged. The object is aligned to `to.align()`, and may from then
///   on be freed or resized with either layout.
/// - If [`Store::resize_room`] returns a pointer, the same holds, except that the object has only the layout `to` from
///   then on.
/// - What [`Store::alloc_many`] adds to a magazine is as if from [`Store::alloc`], and it takes nothing out.
/// - Memory from [`Store::alloc_zeroed`] is as if from [`Store::alloc`], and is zero; [`Store::zero`] makes all the bytes
///   zero that it is passed, and changes no others.
/// - If [`Store::arena`] returns an arena, all objects lie in tracts of pools in it.
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

    /// Allocates `layout` as [`alloc`](Store::alloc) does; all of its bytes are zero. Large objects take no memory of the
    /// system for pages that had none, if the arena can do that.
    ///
    /// # Errors
    /// Those of [`alloc`](Store::alloc).
    #[inline]
    fn alloc_zeroed(&self, layout: Layout) -> Result<NonNull<u8>> {
        let object = self.alloc(layout)?;
        // SAFETY: the bytes of a new object, which nothing else uses.
        unsafe { self.zero(object, layout.size()) };
        Ok(object)
    }

    /// Makes bytes of an object zero, in the way that is cheapest.
    ///
    /// # Safety
    /// - `bytes` is valid for reads and writes of `size` bytes, all of them in one object of this store. Nothing else uses
    ///   them meanwhile.
    #[inline]
    unsafe fn zero(&self, bytes: NonNull<u8>, size: usize) {
        match self.arena() {
            // SAFETY: bytes of an object, which lies in tracts of a pool of this arena; they are valid for writes, and
            // nothing else uses them.
            Some(arena) => unsafe { arena.zero(Block::new(bytes, size)) },
            // SAFETY: valid for writes, and used by nothing else.
            None => unsafe { bytes.write_bytes(0, size) },
        }
    }

    /// The arena that all objects of the store lie in, for what only it can do to their memory
    /// ([`Arena::zero`], [`Arena::discard`]). By default the store does not say.
    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        None
    }

    /// Adds objects of `layout` to a magazine, as if by [`alloc`](Store::alloc): as many as it has room for, or fewer.
    ///
    /// The store decides how many: pools that can take several under one lock add those that they find free, and do not
    /// grow. By default this is one `alloc` after the other, until one is refused.
    fn alloc_many(&self, layout: Layout, magazine: &mut Magazine) {
        while magazine.room() != 0 {
            let Ok(object) = self.alloc(layout) else { return };
            let _ = magazine.push(object);
        }
    }

    /// Frees all objects of a magazine, as if by [`free`](Store::free). Pools that can do so take one lock for all of
    /// them. The magazine is empty afterwards.
    ///
    /// # Safety
    /// - Each object of the magazine is as [`free`](Store::free) requires, with this `layout`.
    unsafe fn free_many(&self, layout: Layout, magazine: &mut Magazine) {
        while let Some(object) = magazine.pop() {
            // SAFETY: an object that the caller gives up; it is taken out of the magazine, so freed once.
            unsafe { self.free(object, layout) };
        }
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

    /// Changes the layout of an object in place, and returns a pointer to all of it. If this returns `None`, the
    /// object stays as it was: to resize it, allocate another one, move the bytes, and free this one. By
    /// default no object is resized in place. Pools do as
    /// [`ManualPool::resizes_in_place`](crate::ManualPool::resizes_in_place) says.
    ///
    /// # Safety
    /// - `object` came, with the layout `from`, from where [`Store::free`] takes objects, and is not freed.
    #[inline(always)]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        let _ = (object, from, to);
        None
    }

    /// As [`resize`](Store::resize), but the object may take another amount of room: the store may extend it into free
    /// memory behind it, or take back the end that it needs no longer. If this returns a pointer, the object has only the
    /// layout `to` from then on. By default the room stays as it is.
    ///
    /// # Safety
    /// - As [`resize`](Store::resize).
    #[inline(always)]
    unsafe fn resize_room(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the object came, with the layout `from`, from where `free` takes objects, and is not freed.
        unsafe { self.resize(object, from, to) }
    }
}
