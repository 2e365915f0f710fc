//! Whoever makes a manual class of a pool class answers for its memory.

use core::alloc::Layout;
use core::ptr::NonNull;
use tripoint_core::{ClientArena, Error, ManualPool, Result};
use tripoint_pools::Null;

struct Mine(Null<ClientArena<'static>>);

impl ManualPool for Mine {
    fn alloc(&self, _layout: Layout) -> Result<NonNull<u8>> {
        Err(Error::Memory)
    }

    unsafe fn free(&self, _object: NonNull<u8>, _layout: Layout) {}
}

fn main() {}
