//! A borrowed platform is a platform.

use core::ptr::NonNull;

use tripoint_core::{AddrRange, NodeSet};

use super::{Platform, PlatformError, Watch};
use crate::chosen_memory::{HugePages, PageSizes, Placement};

// SAFETY: every call is passed on to one platform, which keeps these promises. It stays while it
// is borrowed.
unsafe impl<P: Platform + ?Sized> Platform for &P {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn page_size(&self) -> usize {
        (**self).page_size()
    }

    fn yielding(&self) -> Option<fn()> {
        (**self).yielding()
    }

    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        (**self).reserve(size, align)
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize, align: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).release(base, size, align) }
    }

    unsafe fn commit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).commit(base, size) }
    }

    unsafe fn decommit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).decommit(base, size) }
    }

    unsafe fn zero(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).zero(base, size) }
    }

    unsafe fn discard(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).discard(base, size) }
    }

    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).populate(base, size) }
    }

    unsafe fn populate_in_use(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).populate_in_use(base, size) }
    }

    unsafe fn advise_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).advise_huge_pages(base, size) }
    }

    unsafe fn collapse(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).collapse(base, size) }
    }

    unsafe fn map_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        pages: HugePages,
    ) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).map_huge_pages(base, size, pages) }
    }

    unsafe fn fill_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        pages: HugePages,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).fill_huge_pages(base, size, pages, placement) }
    }

    unsafe fn empty_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).empty_huge_pages(base, size) }
    }

    fn memory_nodes(&self) -> Result<NodeSet, PlatformError> {
        (**self).memory_nodes()
    }

    unsafe fn place(
        &self,
        base: NonNull<u8>,
        size: usize,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).place(base, size, placement) }
    }

    unsafe fn locate(
        &self,
        base: NonNull<u8>,
        size: usize,
        page_size: usize,
        visit: &mut dyn FnMut(usize, Option<usize>),
    ) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).locate(base, size, page_size, visit) }
    }

    fn page_sizes(&self, range: AddrRange, visit: &mut dyn FnMut(PageSizes)) -> Result<(), PlatformError> {
        (**self).page_sizes(range, visit)
    }

    fn map_file(&self, file: i32, size: usize) -> Result<NonNull<u8>, PlatformError> {
        (**self).map_file(file, size)
    }

    unsafe fn unmap_file(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is a mapping of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).unmap_file(base, size) }
    }

    unsafe fn lock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).lock(base, size) }
    }

    unsafe fn unlock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).unlock(base, size) }
    }

    unsafe fn no_inherit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, and the caller
        // keeps to the duties of this method.
        unsafe { (**self).no_inherit(base, size) }
    }

    fn open_watch(&self, watch: &Watch) -> Result<(), PlatformError> {
        (**self).open_watch(watch)
    }

    fn is_watch_open(&self, watch: &Watch) -> bool {
        (**self).is_watch_open(watch)
    }

    unsafe fn watch(&self, watch: &Watch, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, whose watch this is.
        unsafe { (**self).watch(watch, base, size) }
    }

    unsafe fn take_written(
        &self,
        watch: &Watch,
        base: NonNull<u8>,
        size: usize,
        visit: &mut dyn FnMut(AddrRange),
    ) -> Result<usize, PlatformError> {
        // SAFETY: the caller's range is in a reservation of the borrowed platform, whose watch this is.
        unsafe { (**self).take_written(watch, base, size, visit) }
    }

    unsafe fn close_watch(&self, watch: &Watch) {
        // SAFETY: the caller says that no thread uses the watch any more.
        unsafe { (**self).close_watch(watch) };
    }

    fn account_mappings(&self, before: usize, now: usize) -> usize {
        (**self).account_mappings(before, now)
    }

    fn reserve_with_room(
        &self,
        size: usize,
        room: usize,
        align: usize,
    ) -> Result<NonNull<u8>, PlatformError> {
        (**self).reserve_with_room(size, room, align)
    }

    unsafe fn extend(
        &self,
        base: NonNull<u8>,
        size: usize,
        more: usize,
        room: usize,
        align: usize,
    ) -> Result<usize, PlatformError> {
        // SAFETY: the caller's range is a reservation of the borrowed platform, and the caller keeps to the duties of
        // this method.
        unsafe { (**self).extend(base, size, more, room, align) }
    }

    fn reserves_memory(&self) -> bool {
        (**self).reserves_memory()
    }

    fn memory_limit(&self) -> Option<usize> {
        (**self).memory_limit()
    }
}
