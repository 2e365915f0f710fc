//! [`PoolAllocator`] as an allocator of each trait that collections ask for (design/adaptors.md `.allocator.traits`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::Store;

use crate::allocator::PoolAllocator;

/// Ends the program if it is dropped: no call of an allocator may unwind.
struct MayNotUnwind;

impl Drop for MayNotUnwind {
    #[cold]
    fn drop(&mut self) {
        // In the course of another panic this ends the program.
        panic!("a store panicked as an allocator");
    }
}

/// Calls without unwinding. If nothing in a call can panic, this is no code at all.
#[inline(always)]
fn without_unwinding<R>(call: impl FnOnce() -> R) -> R {
    let guard = MayNotUnwind;
    let result = call();
    core::mem::forget(guard);
    result
}

macro_rules! implement {
    ($($module:ident)::+) => {
        // SAFETY: (design/adaptors.md `.req.contract`)
        // - A block is memory of the store, or dangling if it has no bytes. It stays valid until it is
        //   freed or the store is dropped (`Store`). As long as the allocator or anything that contains it
        //   exists, wherever that is moved, `'s` keeps the store from being dropped.
        // - All copies borrow one store, so one may free what another allocated. No call mutates the allocator.
        // - A block has exactly the requested size. So the only layout that fits it is that of its last
        //   `allocate`, `grow` or `shrink`, and this is the layout that the store gets. If a block was
        //   resized in place, the store has promised to take the new layout.
        // - A failure changes nothing: `resize` frees a block only after its bytes have moved.
        // - Blocks are disjoint, and none reaches the end of the addresses: they are objects of a store.
        // - No call unwinds. What drops the allocator does nothing.
        unsafe impl<S: Store> $($module)::+::Allocator for PoolAllocator<'_, S> {
            #[inline]
            fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, $($module)::+::AllocError> {
                without_unwinding(|| self.take(layout)).ok_or($($module)::+::AllocError)
            }

            #[inline]
            fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, $($module)::+::AllocError> {
                without_unwinding(|| self.take_zeroed(layout)).ok_or($($module)::+::AllocError)
            }

            #[inline]
            unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
                // SAFETY: the caller says that the block is allocated by this allocator, that `layout` fits it, and that it is
                // not used any more.
                without_unwinding(|| unsafe { self.give_back(block, layout) });
            }

            #[inline]
            unsafe fn grow(
                &self,
                block: NonNull<u8>,
                from: Layout,
                to: Layout,
            ) -> Result<NonNull<[u8]>, $($module)::+::AllocError> {
                // SAFETY: the caller says that the block is allocated by this allocator and `from` fits it.
                without_unwinding(|| unsafe { self.resize(block, from, to) }).ok_or($($module)::+::AllocError)
            }

            #[inline]
            unsafe fn grow_zeroed(
                &self,
                block: NonNull<u8>,
                from: Layout,
                to: Layout,
            ) -> Result<NonNull<[u8]>, $($module)::+::AllocError> {
                // SAFETY: the caller says that the block is allocated by this allocator and `from` fits it.
                without_unwinding(|| unsafe { self.resize_zeroed(block, from, to) })
                    .ok_or($($module)::+::AllocError)
            }

            #[inline]
            unsafe fn shrink(
                &self,
                block: NonNull<u8>,
                from: Layout,
                to: Layout,
            ) -> Result<NonNull<[u8]>, $($module)::+::AllocError> {
                // SAFETY: the caller says that the block is allocated by this allocator and `from` fits it.
                without_unwinding(|| unsafe { self.resize(block, from, to) }).ok_or($($module)::+::AllocError)
            }
        }
    };
}

implement!(allocator_api2::alloc);
#[cfg(feature = "allocator-api2-03")]
implement!(allocator_api2_03::alloc);
#[cfg(feature = "allocator-api2-04")]
implement!(allocator_api2_04::alloc);
#[cfg(tripoint_standard_allocator)]
implement!(core::alloc);
