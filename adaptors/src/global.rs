//! A manual pool as the allocator of a whole program.

use core::alloc::{GlobalAlloc, Layout};
use core::fmt;
use core::ptr::{self, NonNull};

use tripoint_core::internal::Once;
use tripoint_core::{ManualPool, PoolClass, Result, aver};

use crate::moving::move_bytes;

/// A pool for everything that a program allocates. It is made by a function, which is called
/// at the first request.
///
/// The class should serve every layout, as `Mvff` and `Tlsf` of `tripoint-pools` do. A request
/// that it refuses returns null, which the standard library turns into an abort, or into an
/// error for the `try_` methods.
///
/// The function **must not allocate** from this same allocator. If it does, that request
/// is refused after some waiting. So is a request of another thread while the pool is
/// being made. If several threads may make the first request at once, and making the
/// pool takes long, call [`GlobalPool::pool`] first
/// ([design/adaptors.md `.global.reentry`](crate::design::adaptors)).
///
/// The pool is never dropped. As with any allocator, signal and interrupt handlers must
/// not use it: pools lock.
///
/// **Fork.** If a process with several threads forks, the child must not allocate before
/// it calls `exec`. Another thread may have held a lock of the pool or the arena; nothing
/// in the child releases that lock, and the child would spin forever.
/// `std::process::Command` keeps to this rule ([design/adaptors.md `.global.fork`](crate::design::adaptors)).
///
/// A panic of the function, of a hook, or of the class ends the program, because
/// allocators must not unwind. If the pool is the program's own allocator, a panic under
/// the pool's lock hangs: hooks should abort instead of panicking
/// ([design/adaptors.md `.global.unwind`](crate::design::adaptors)).
///
/// All threads share the pool's lock. A program with several threads, or one that allocates much, is better off with
/// `cached_global_pool!` (feature `std`), which gives each thread a cache.
///
/// `examples/09_whole_program.rs` of the package `tripoint` is a program that lives in one.
///
/// ```
/// use tripoint_adaptors::GlobalPool;
/// use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
/// use tripoint_core::PoolClass;
/// use tripoint_pools::{Mvff, MvffOptions};
///
/// # // On some other systems, and under Miri, the arena takes its addresses from the global allocator,
/// # // so cannot be it.
/// # #[cfg(all(target_os = "linux", not(miri)))]
/// #[global_allocator]
/// static GLOBAL: GlobalPool<Mvff<ArenaVm>> = GlobalPool::new(|| {
///     let arena = ArenaVm::create(ArenaVmOptions { commit_limit: 1 << 30, ..Default::default() })?;
///     Mvff::create(arena, MvffOptions::default())
/// });
/// # #[cfg(all(target_os = "linux", not(miri)))] {
/// let text = "everything".to_string();
/// let sizes = GLOBAL.pool()?.sizes();
/// assert!(sizes.total - sizes.free >= text.len());
/// # }
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct GlobalPool<P> {
    pool: Once<P>,
    make: fn() -> Result<P>,
}

impl<P> GlobalPool<P> {
    /// An allocator whose pool is made by `make` at its first use.
    pub const fn new(make: fn() -> Result<P>) -> Self {
        Self { pool: Once::new(), make }
    }

    /// Returns the pool, and makes it first if there is none. This is for looking at its
    /// sizes, or for making it before the first request.
    ///
    /// # Errors
    /// - those of the function that makes the pool
    /// - [`Error::Unready`](tripoint_core::Error::Unready) if it is still being made
    ///   after some waiting
    #[inline]
    pub fn pool(&self) -> Result<&P> {
        self.pool.get_or_try_init(self.make)
    }
}

impl<P: PoolClass> fmt::Debug for GlobalPool<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = if self.pool.get().is_some() { "made" } else { "not yet made" };
        write!(f, "GlobalPool({}, {made})", P::CLASS)
    }
}

/// Does work that must not unwind. A panic in it ends the program, because no panic leaves a
/// function of this calling convention.
#[inline]
pub(crate) extern "C" fn without_unwinding<T>(work: impl FnOnce() -> T) -> T {
    work()
}

// SAFETY: a block is memory of the pool, and is valid until it is freed: while the allocator
// exists, its pool is neither dropped nor moved, because it is only used by shared reference.
// Layouts are passed on unchanged. Nothing unwinds, and any thread may use a pool
// that is `Sync`.
unsafe impl<P: ManualPool + Send + Sync> GlobalAlloc for GlobalPool<P> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let object = without_unwinding(|| self.pool().and_then(|pool| pool.alloc(layout)));
        object.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let object = without_unwinding(|| self.pool().and_then(|pool| pool.alloc_zeroed(layout)));
        object.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        let (Some(pool), Some(object)) = (self.pool.get(), NonNull::new(object)) else {
            without_unwinding(|| aver!(false, "{object:?} is freed, which was never allocated"));
            return;
        };
        // SAFETY: memory of this allocator came from the pool's `alloc`, with this layout
        // or resized to it in place. The caller frees it once, and does not use it any
        // more. Only its address matters.
        without_unwinding(|| unsafe { pool.free(object, layout) });
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size, rounded up to the alignment, is at most
        // `isize::MAX`. The alignment is that of a layout.
        let to = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (Some(pool), Some(object)) = (self.pool.get(), NonNull::new(object)) else {
            without_unwinding(|| aver!(false, "{object:?} is resized, which was never allocated"));
            return ptr::null_mut();
        };
        // SAFETY: memory of this allocator came from the pool's `alloc`, with this layout or resized to it
        // in place, and is not freed.
        let resized = without_unwinding(|| unsafe { pool.resize_room(object, layout, to) });
        if let Some(object) = resized {
            return object.as_ptr();
        }
        // SAFETY: the caller promises that the size is not zero.
        let Some(moved) = NonNull::new(unsafe { self.alloc(to) }) else { return ptr::null_mut() };
        // SAFETY: both objects are the pool's, and have at least as many bytes. The new one is in use by nothing else, so they
        // do not overlap. The old one is freed below.
        without_unwinding(|| unsafe { move_bytes(pool, object, moved, size.min(layout.size())) });
        // SAFETY: the caller allocated the object here with this layout, and does not use it any
        // more now that it has moved.
        unsafe { self.dealloc(object.as_ptr(), layout) };
        moved.as_ptr()
    }
}
