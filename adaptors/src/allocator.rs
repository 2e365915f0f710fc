//! A manual pool, or any other store, as the allocator of collections; `allocator_traits` has the traits that they ask for.

use core::alloc::Layout;
use core::fmt;
use core::ptr::{self, NonNull};

use tripoint_core::{Arena, Result, Store};

use crate::blocks::Blocks;
use crate::moving::move_bytes;

/// A [`Store`] as the allocator of collections: a manual pool, a cache, or a store in front of either that samples
/// or logs what is allocated. It is a borrow of the store, and as cheap to copy.
///
/// A block is exactly as large as requested, however the store rounds it. It grows and shrinks
/// in place if the store allows that ([`Store::resize`]), and moves otherwise;
/// shrinking then takes new memory, and may be refused. A layout of size zero takes no memory.
///
/// It is an `Allocator` of `allocator_api2` 0.2, by features of 0.3 and 0.4, and of the standard library from Rust 1.100
/// on. A refusal is an `AllocError`, which carries no details: [`Exhausted`](tripoint_core::Exhausted) shows what the pool
/// has left. A store that panics, as a debug pool may, ends the program: allocators must not unwind.
///
/// ```
/// # use tripoint_core::{ClientArena, ClientArenaOptions};
/// # let mut memory = Box::new_uninit_slice(256 << 10);
/// # let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// use tripoint_adaptors::PoolAllocator;
/// use tripoint_pools::{Tlsf, TlsfOptions};
///
/// let pool = Tlsf::create(&arena, TlsfOptions::default())?;
/// let mut levels = allocator_api2::vec::Vec::new_in(PoolAllocator::new(&pool));
/// levels.try_reserve(1 << 30).unwrap_err(); // the pool has no such block
/// levels.extend([61_659, 61_660]);
/// assert_eq!(levels.len(), 2);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[doc(alias("allocator_api"))]
pub struct PoolAllocator<'s, S: Store> {
    store: &'s S,
}

impl<'s, S: Store> PoolAllocator<'s, S> {
    /// An allocator that takes its memory from `store`.
    #[must_use]
    pub const fn new(store: &'s S) -> Self {
        Self { store }
    }

    /// The store that the memory comes from.
    #[must_use]
    pub const fn store(self) -> &'s S {
        self.store
    }

    /// Changes the layout of a block to `to`, in place if the store allows that. Otherwise allocates
    /// a new block, and moves the bytes that both have.
    ///
    /// # Safety
    /// - `block` is allocated by this allocator, with a layout that `from` fits.
    unsafe fn resize_block(self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>> {
        if from.size() != 0 && to.size() != 0 {
            // SAFETY: a block with a size came from this store's `alloc`, and is not freed. The layout that fits it
            // is that of the allocation, or of the last resize in place.
            if let Some(block) = unsafe { self.store.resize_room(block, from, to) } {
                return Some(NonNull::slice_from_raw_parts(block, to.size()));
            }
        }
        let moved = self.take(to)?;
        // SAFETY: both blocks have at least as many bytes, and lie in the store if that is not zero. The new one is in use by
        // nothing else, so they do not overlap. The old one is freed below.
        unsafe { move_bytes(self.store, block, moved.cast(), from.size().min(to.size())) };
        // SAFETY: the block is allocated by this allocator with a layout that `from` fits, and is not
        // used any more.
        unsafe { self.give_back(block, from) };
        Some(moved)
    }
}

// SAFETY:
// - A block is memory of the store, or dangling if it has no bytes. It stays valid until it is
//   freed or the store is dropped (`Store`). As long as the allocator or anything that contains it
//   exists, wherever that is moved, `'s` keeps the store from being dropped.
// - All copies borrow one store, so one may free what another allocated. No call mutates the allocator.
// - A block has exactly the requested size. So the only layout that fits it is that of its last
//   `take`, `grow` or `shrink`, and this is the layout that the store gets. If a block was
//   resized in place, the store has promised to take the new layout.
// - A failure changes nothing: `resize_block` frees a block only after its bytes have moved.
unsafe impl<S: Store> Blocks for PoolAllocator<'_, S> {
    #[inline]
    fn take(&self, layout: Layout) -> Option<NonNull<[u8]>> {
        let block = match layout.size() {
            0 => dangling(layout),
            _ => self.store.alloc(layout).ok()?,
        };
        Some(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    #[inline]
    fn take_zeroed(&self, layout: Layout) -> Option<NonNull<[u8]>> {
        let block = match layout.size() {
            0 => dangling(layout),
            _ => self.store.alloc_zeroed(layout).ok()?,
        };
        Some(NonNull::slice_from_raw_parts(block, layout.size()))
    }

    #[inline]
    unsafe fn give_back(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() != 0 {
            // SAFETY: a block with a size came from this store's `alloc`. The layout that fits it is
            // that of the allocation, or of the last resize in place. The caller frees it once and
            // does not use it any more. Only its address matters.
            unsafe { self.store.free(block, layout) };
        }
    }

    #[inline]
    unsafe fn grow(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>> {
        // SAFETY: the caller says that the block is allocated by this allocator and `from` fits it.
        unsafe { self.resize_block(block, from, to) }
    }

    #[inline]
    unsafe fn grow_zeroed(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>> {
        // SAFETY: the caller says that the block is allocated by this allocator and `from` fits it.
        let grown = unsafe { self.resize_block(block, from, to) }?;
        let added = to.size().saturating_sub(from.size());
        if added != 0 {
            // SAFETY: the block has `to.size()` bytes, of which `from.size()` come before those that were added. It is an object
            // of the store, because its size is not zero, and nothing else uses it.
            unsafe { self.store.zero(grown.cast::<u8>().add(from.size()), added) };
        }
        Some(grown)
    }

    #[inline]
    unsafe fn shrink(&self, block: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<[u8]>> {
        // SAFETY: the caller says that the block is allocated by this allocator and `from` fits it.
        unsafe { self.resize_block(block, from, to) }
    }
}

impl<S: Store> Clone for PoolAllocator<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Store> Copy for PoolAllocator<'_, S> {}

impl<S: Store> fmt::Debug for PoolAllocator<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PoolAllocator").field(&ptr::from_ref(self.store)).finish()
    }
}

// SAFETY: each call is that of the store, which keeps the promises. As long as a value of this type exists, `'s` keeps the
// store from being dropped. It is `Sync` only if the store is.
unsafe impl<S: Store> Store for PoolAllocator<'_, S> {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.store.alloc(layout)
    }

    #[inline]
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller frees an object of this store, with its layout, once.
        unsafe { self.store.free(object, layout) };
    }

    #[inline]
    fn arena(&self) -> Option<&dyn Arena> {
        self.store.arena()
    }
}

/// An aligned pointer to no bytes.
pub(crate) fn dangling(layout: Layout) -> NonNull<u8> {
    // SAFETY: an alignment is a power of two, and so not zero.
    unsafe { NonNull::new_unchecked(ptr::without_provenance_mut(layout.align())) }
}
