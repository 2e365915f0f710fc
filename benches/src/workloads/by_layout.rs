//! The contenders that allocate any size, by layout.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::RefCell;
use core::ptr::NonNull;

use rlsf::Tlsf as Rlsf;
use talc::DefaultBinning;
use talc::base::Talc;
use talc::source::Manual;
use tripoint::Store;

use crate::random::Random;

/// The memory of a peer that takes none by itself.
const PEER_MEMORY: usize = 128 << 20;

/// Sizes are multiples of a word from 16 to 512 bytes.
#[inline(always)]
pub(super) fn layout(random: &mut Random) -> Layout {
    let size = 16 + 8 * random.below(63);
    // SAFETY: a power of two, and a small size.
    unsafe { Layout::from_size_align_unchecked(size, 8) }
}

/// A contender that allocates by layout.
pub(super) trait Memory {
    fn get(&self, layout: Layout) -> NonNull<u8>;
    /// Frees what it allocated, once.
    fn put(&self, place: NonNull<u8>, layout: Layout);
}

impl<M: Memory> Memory for &M {
    #[inline(always)]
    fn get(&self, layout: Layout) -> NonNull<u8> {
        (**self).get(layout)
    }

    #[inline(always)]
    fn put(&self, place: NonNull<u8>, layout: Layout) {
        (**self).put(place, layout);
    }
}

/// A pool or a cache.
pub(super) struct Stored<S>(pub(super) S);

impl<S: Store> Memory for Stored<S> {
    #[inline(always)]
    fn get(&self, layout: Layout) -> NonNull<u8> {
        self.0.alloc(layout).unwrap()
    }

    #[inline(always)]
    fn put(&self, place: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here, or in a cache of the same depot or of the same pool with equal classes; freed once.
        unsafe { self.0.free(place, layout) };
    }
}

impl Memory for RefCell<Talc<Manual, DefaultBinning>> {
    #[inline(always)]
    fn get(&self, layout: Layout) -> NonNull<u8> {
        // SAFETY: no layout here has size zero.
        unsafe { self.borrow_mut().allocate(layout) }.unwrap()
    }

    #[inline(always)]
    fn put(&self, place: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here, freed once.
        unsafe { self.borrow_mut().deallocate(place.as_ptr(), layout) };
    }
}

impl Memory for RefCell<Rlsf<'static, u32, u32, 24, 32>> {
    #[inline(always)]
    fn get(&self, layout: Layout) -> NonNull<u8> {
        self.borrow_mut().allocate(layout).unwrap()
    }

    #[inline(always)]
    fn put(&self, place: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here, freed once.
        unsafe { self.borrow_mut().deallocate(place, layout.align()) };
    }
}

/// An allocator of whole programs.
pub(super) struct Allocator<G>(pub(super) G);

impl<G: GlobalAlloc> Memory for Allocator<G> {
    #[inline(always)]
    fn get(&self, layout: Layout) -> NonNull<u8> {
        // SAFETY: the layout's size is not zero.
        NonNull::new(unsafe { self.0.alloc(layout) }).unwrap()
    }

    #[inline(always)]
    fn put(&self, place: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated here, freed once.
        unsafe { self.0.dealloc(place.as_ptr(), layout) };
    }
}

/// No allocator: the same place every time. What remains is the cost of the
/// benchmark itself.
pub(super) struct SamePlace(pub(super) NonNull<u8>);

impl Memory for SamePlace {
    #[inline(always)]
    fn get(&self, _layout: Layout) -> NonNull<u8> {
        self.0
    }

    #[inline(always)]
    fn put(&self, _place: NonNull<u8>, _layout: Layout) {}
}

/// A peer with memory of its own.
pub(super) fn talc() -> RefCell<Talc<Manual, DefaultBinning>> {
    let mut talc = Talc::new(Manual);
    // SAFETY: the memory is leaked, and no other code uses it.
    unsafe { talc.claim(memory().as_mut_ptr().cast(), PEER_MEMORY) }.unwrap();
    RefCell::new(talc)
}

/// Another.
pub(super) fn rlsf() -> RefCell<Rlsf<'static, u32, u32, 24, 32>> {
    let mut rlsf = Rlsf::new();
    rlsf.insert_free_block(memory());
    RefCell::new(rlsf)
}

fn memory() -> &'static mut [core::mem::MaybeUninit<u8>] {
    Box::leak(Box::<[u8]>::new_uninit_slice(PEER_MEMORY))
}
