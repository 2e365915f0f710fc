//! The author of a manual class makes promises about its memory.

use core::alloc::Layout;
use core::ptr::NonNull;
use tripoint_core::{ClientArena, Error, ManualPool, Result, Store};
use tripoint_pools::Null;

struct Mine(Null<ClientArena<'static>>);

impl Store for Mine {
    fn alloc(&self, _layout: Layout) -> Result<NonNull<u8>> {
        Err(Error::Memory)
    }

    unsafe fn free(&self, _object: NonNull<u8>, _layout: Layout) {}
}

impl ManualPool for Mine {}

fn main() {}
