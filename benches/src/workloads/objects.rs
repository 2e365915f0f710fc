//! The contenders that allocate objects of 64 bytes.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;

use slab::Slab;
use tripoint::author::Unit;
use tripoint::{Arena, Cache, ManualPool, Mfs, MfsCache, Store};

/// A cache line of words.
pub(super) type Object = [u64; 8];

pub(super) const LAYOUT: Layout = Layout::new::<Object>();

/// A contender that makes objects and takes them back.
pub(super) trait Objects {
    type Handle: Copy;

    fn make(&mut self, object: Object) -> Self::Handle;

    /// Takes an object back: one that it made, once.
    fn take_back(&mut self, object: Self::Handle);
}

/// Hides from the compiler what becomes of a value, at no cost.
#[inline(always)]
pub(super) fn keep<T: Copy>(value: T) {
    let place = &raw const value;
    if size_of::<T>() == size_of::<usize>() {
        // SAFETY: a word, read as one; the assembly is empty.
        unsafe {
            core::arch::asm!("/* {} */", in(reg) *place.cast::<usize>(), options(nostack, preserves_flags))
        };
    }
}

#[inline(always)]
fn write(place: NonNull<u8>, object: Object) -> NonNull<Object> {
    let place = place.cast();
    // SAFETY: fresh memory of an object's layout.
    unsafe { place.write(object) };
    place
}

impl<A: Arena, U: Unit> Objects for &MfsCache<'_, A, U> {
    type Handle = NonNull<Object>;

    #[inline(always)]
    fn make(&mut self, object: Object) -> NonNull<Object> {
        write(self.alloc(LAYOUT).unwrap(), object)
    }

    #[inline(always)]
    fn take_back(&mut self, object: NonNull<Object>) {
        // SAFETY: made here, taken back once.
        unsafe { self.free(object.cast(), LAYOUT) };
    }
}

impl<P: ManualPool> Objects for &Cache<'_, P> {
    type Handle = NonNull<Object>;

    #[inline(always)]
    fn make(&mut self, object: Object) -> NonNull<Object> {
        write(self.alloc(LAYOUT).unwrap(), object)
    }

    #[inline(always)]
    fn take_back(&mut self, object: NonNull<Object>) {
        // SAFETY: made in a cache of the same pool with equal classes, taken back once.
        unsafe { self.free(object.cast(), LAYOUT) };
    }
}

/// A pool without a cache: every operation takes its lock.
impl<A: Arena, U: Unit> Objects for &Mfs<A, U> {
    type Handle = NonNull<Object>;

    #[inline(always)]
    fn make(&mut self, object: Object) -> NonNull<Object> {
        write(self.alloc(LAYOUT).unwrap(), object)
    }

    #[inline(always)]
    fn take_back(&mut self, object: NonNull<Object>) {
        // SAFETY: made here, taken back once.
        unsafe { self.free(object.cast(), LAYOUT) };
    }
}

impl Objects for Slab<Object> {
    type Handle = usize;

    #[inline(always)]
    fn make(&mut self, object: Object) -> usize {
        self.insert(object)
    }

    #[inline(always)]
    fn take_back(&mut self, key: usize) {
        self.remove(key);
    }
}

/// A general allocator, by way of `GlobalAlloc`.
pub(super) struct General<G>(pub(super) G);

impl<G: GlobalAlloc> Objects for General<G> {
    type Handle = NonNull<Object>;

    #[inline(always)]
    fn make(&mut self, object: Object) -> NonNull<Object> {
        // SAFETY: the layout's size is not zero.
        write(NonNull::new(unsafe { self.0.alloc(LAYOUT) }).unwrap(), object)
    }

    #[inline(always)]
    fn take_back(&mut self, object: NonNull<Object>) {
        // SAFETY: made here, taken back once.
        unsafe { self.0.dealloc(object.as_ptr().cast(), LAYOUT) };
    }
}

/// mimalloc called directly: its `GlobalAlloc` takes the entry for aligned requests.
pub(super) struct MiMallocDirect;

// SAFETY: the alignments asked for here are those that `mi_malloc` guarantees.
unsafe impl GlobalAlloc for MiMallocDirect {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size may be asked for.
        unsafe { libmimalloc_sys::mi_malloc(layout.size()) }.cast()
    }

    #[inline(always)]
    unsafe fn dealloc(&self, place: *mut u8, _layout: Layout) {
        // SAFETY: the caller passes a place that `mi_malloc` returned, once.
        unsafe { libmimalloc_sys::mi_free(place.cast()) };
    }
}

/// No allocator: the same place every time. What remains is the cost of the
/// benchmark itself.
pub(super) struct SamePlace(pub(super) NonNull<Object>);

impl Objects for SamePlace {
    type Handle = NonNull<Object>;

    #[inline(always)]
    fn make(&mut self, object: Object) -> NonNull<Object> {
        write(self.0.cast(), object)
    }

    #[inline(always)]
    fn take_back(&mut self, _object: NonNull<Object>) {}
}
