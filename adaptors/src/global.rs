//! A manual pool as the allocator of a whole program.

use core::alloc::{GlobalAlloc, Layout};
use core::fmt;
use core::ptr::{self, NonNull};

use tripoint_core::internal::Once;
use tripoint_core::{ManualPool, PoolClass, Result};

/// A pool for everything that a program allocates. The function that makes it is called
/// at the first request.
///
/// The class should serve any layout, and any thread, as `Mvff` and the bounded-latency class of
/// `tripoint-pools` do. A request it refuses gets null, which the standard library turns
/// into an abort, or for the `try_` methods into an error.
///
/// The function **must not allocate** from this same allocator. If it does, that request
/// is refused after some waiting. So is a request of another thread while the pool is
/// being made. If several threads may make the first request at once, and making the
/// pool takes long, call [`GlobalPool::pool`] first
/// (design/adaptors.md `.global.reentry`).
///
/// The pool is never dropped. As with any allocator, signal and interrupt handlers must
/// not use it: pools lock.
///
/// **Fork.** If a process with several threads forks, the child must not allocate before
/// it calls `exec`. Another thread may have held a lock of the pool or the arena; nothing
/// in the child releases that lock, and the child would spin forever.
/// `std::process::Command` keeps to this rule (design/adaptors.md `.global.fork`).
///
/// A panic of the function, of a hook, or of the class ends the program, because
/// allocators must not unwind. If the pool is the program's own allocator, a panic under
/// the pool's lock hangs: hooks should abort instead of panicking
/// (design/adaptors.md `.global.unwind`).
///
/// `examples/09_whole_program.rs` of the package `tripoint` is a program that lives in one.
///
/// ```
/// use tripoint_adaptors::GlobalPool;
/// use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
/// use tripoint_core::PoolClass;
/// use tripoint_pools::{Mvff, MvffOptions};
///
/// # // Elsewhere the arena takes its address space from the global allocator, and cannot be it.
/// # #[cfg(target_os = "linux")]
/// #[global_allocator]
/// static GLOBAL: GlobalPool<Mvff<ArenaVm>> = GlobalPool::new(|| {
///     let arena = ArenaVm::create(ArenaVmOptions { commit_limit: 1 << 30, ..Default::default() })?;
///     Mvff::create(arena, MvffOptions::default())
/// });
/// # #[cfg(target_os = "linux")] {
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
    /// An allocator whose pool `make` makes at first use.
    pub const fn new(make: fn() -> Result<P>) -> Self {
        Self { pool: Once::new(), make }
    }

    /// Returns the pool, and makes it first if there is none. This is for looking at its
    /// sizes, or for making it before the first request.
    ///
    /// # Errors
    /// - those of the function that makes it
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

/// Does what must not unwind: a panic in it ends the program, since none leaves a
/// function of this calling convention.
#[inline]
extern "C" fn without_unwinding<T>(work: impl FnOnce() -> T) -> T {
    work()
}

// SAFETY: blocks are the pool's and valid until they are freed, since the pool is never
// dropped while the allocator exists, nor moved: it is used through a shared borrow.
// Layouts are passed on as they come. Nothing unwinds, and pools answer any thread.
unsafe impl<P: ManualPool + Send> GlobalAlloc for GlobalPool<P> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let object = without_unwinding(|| self.pool().and_then(|pool| pool.alloc(layout)));
        object.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // What was allocated is not null, and its pool is made.
        let (Some(pool), Some(object)) = (self.pool.get(), NonNull::new(object)) else { return };
        // SAFETY: memory of this allocator came from the pool's `alloc`, with this layout
        // or resized to it in place. The caller frees it once, and does not use it any
        // more. Its address is enough (`ManualPool::free`).
        without_unwinding(|| unsafe { pool.free(object, layout) });
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size, rounded up to the alignment, is
        // not above `isize::MAX`; the alignment is a layout's.
        let to = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let stays = |pool: &&P| without_unwinding(|| pool.resizes_in_place(layout, to));
        if let Some(pool) = self.pool.get().filter(stays)
            && let Some(object) = NonNull::new(object)
        {
            // The caller's pointer may not reach all of the object.
            return pool.header().reach(object.addr()).as_ptr();
        }
        // SAFETY: the caller promises a size that is not zero.
        let moved = unsafe { self.alloc(to) };
        if !moved.is_null() {
            // SAFETY: both have at least as many bytes, and the new object is nobody
            // else's, so they do not overlap.
            unsafe { object.copy_to_nonoverlapping(moved, size.min(layout.size())) };
            // SAFETY: the caller's duties: allocated with this layout, and given up.
            unsafe { self.dealloc(object, layout) };
        }
        moved
    }
}
