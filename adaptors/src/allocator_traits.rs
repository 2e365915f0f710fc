//! What collections take memory from, as an allocator of each trait that they ask for (design/adaptors.md
//! `.allocator.traits`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::Store;

use crate::allocator::PoolAllocator;
use crate::blocks::Blocks;
use crate::global::without_unwinding;
#[cfg(feature = "std")]
use crate::{process_pool::ProcessPool, scratch::Scratch};

macro_rules! implement_for {
    ([$($parameter:ident: $bound:ident)?] $type:ty, $($module:ident)::+) => {
        // SAFETY: (design/adaptors.md `.req.contract`) each call is that of `Blocks`, whose promises are those of an allocator,
        // and does not unwind. What drops the allocator does nothing.
        unsafe impl$(<$parameter: $bound>)? $($module)::+::Allocator for $type {
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
                // SAFETY: the caller says that the block is allocated by this allocator, `from` fits it, and `to` is not smaller.
                without_unwinding(|| unsafe { Blocks::grow(self, block, from, to) })
                    .ok_or($($module)::+::AllocError)
            }

            #[inline]
            unsafe fn grow_zeroed(
                &self,
                block: NonNull<u8>,
                from: Layout,
                to: Layout,
            ) -> Result<NonNull<[u8]>, $($module)::+::AllocError> {
                // SAFETY: the caller says that the block is allocated by this allocator, `from` fits it, and `to` is not smaller.
                without_unwinding(|| unsafe { Blocks::grow_zeroed(self, block, from, to) })
                    .ok_or($($module)::+::AllocError)
            }

            #[inline]
            unsafe fn shrink(
                &self,
                block: NonNull<u8>,
                from: Layout,
                to: Layout,
            ) -> Result<NonNull<[u8]>, $($module)::+::AllocError> {
                // SAFETY: the caller says that the block is allocated by this allocator, `from` fits it, and `to` is not larger.
                without_unwinding(|| unsafe { Blocks::shrink(self, block, from, to) })
                    .ok_or($($module)::+::AllocError)
            }
        }
    };
}

macro_rules! implement {
    ($($module:ident)::+) => {
        implement_for!([S: Store] PoolAllocator<'_, S>, $($module)::+);
        #[cfg(feature = "std")]
        implement_for!([] ProcessPool, $($module)::+);
        #[cfg(feature = "std")]
        implement_for!([S: Store] &Scratch<S>, $($module)::+);
    };
}

implement!(allocator_api2::alloc);
#[cfg(feature = "allocator-api2-03")]
implement!(allocator_api2_03::alloc);
#[cfg(feature = "allocator-api2-04")]
implement!(allocator_api2_04::alloc);
#[cfg(tripoint_standard_allocator)]
implement!(core::alloc);
