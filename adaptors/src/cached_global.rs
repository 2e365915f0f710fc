//! A manual pool as the allocator of a whole program, with a cache for each thread.

use core::alloc::{GlobalAlloc, Layout};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use tripoint_core::internal::Once;
use tripoint_core::{Arena, Error, ManualPool, PoolClass, Result, Store, aver};
use tripoint_pools::{CacheClass, CacheClasses, Depot};

use crate::fork_gate::{Inside, watch_forks};
use crate::global::without_unwinding;
use crate::moving::{LARGE, move_bytes};
use crate::thread_cache::ThreadCache;
use crate::thread_caches::ThreadCaches;

/// The most bytes of a class that a thread keeps, if it keeps more than four blocks.
const CLASS_SIZE: usize = 64 << 10;
/// The most blocks of a class that a thread keeps.
const CLASS_COUNT: usize = 128;
/// The largest size that caches serve, in bytes, with words of eight bytes.
const LARGEST: usize = 1024 * CacheClass::ALIGN;
/// The bytes that a depot without slabs may keep.
const DEPOT: usize = 4 << 20;
/// The bytes that a depot may keep besides slabs: enough for what threads exchange. More would keep blocks in the order in which
/// they were freed, and what is built of these lies scattered (design/cache.md `.slab.aged`).
const DEPOT_BESIDE_SLABS: usize = 512 << 10;

/// The bytes that an arena has for its pool at least if the depot cuts small blocks from slabs: sixteen times what those take of
/// which each class uses one.
const ROOM_FOR_SLABS: usize = 32 << 20;

/// By how many bytes a pool grows until idle threads are looked for.
const GROWTH: usize = 1 << 20;

/// The pool of a [`CachedGlobalPool`], and what its threads share of it.
pub struct GlobalHome<P: ManualPool + 'static> {
    pool: Once<P>,
    depot: Once<Depot<'static, P>>,
    caches: ThreadCaches<P>,
    make: fn() -> Result<P>,
}

impl<P: ManualPool + Send + Sync> GlobalHome<P> {
    /// A pool that is made by `make` at its first use.
    #[must_use]
    pub const fn new(make: fn() -> Result<P>) -> Self {
        Self { pool: Once::new(), depot: Once::new(), caches: ThreadCaches::new(), make }
    }

    /// Returns the depot, and makes it and its pool first if there is none.
    ///
    /// # Errors
    /// Those of the function that makes the pool, and [`Error::Unready`](tripoint_core::Error::Unready) if another thread is still making it
    /// after some waiting.
    #[inline]
    pub fn depot(&'static self) -> Result<&'static Depot<'static, P>> {
        if let Some(depot) = self.depot.get() {
            return Ok(depot);
        }
        watch_forks();
        let _inside = Inside::enter(); // a child of a fork must not find it half made
        self.depot.get_or_try_init(|| {
            let classes = CacheClasses::geometric_within(LARGEST, CLASS_COUNT, CLASS_SIZE)?;
            let pool = self.pool.get_or_try_init(self.make)?;
            let arena = pool.header().arena().sizes();
            let has_room = arena.reserved.min(arena.commit_limit) >= ROOM_FOR_SLABS;
            Ok(if has_room {
                Depot::with_slabs(pool, classes, DEPOT_BESIDE_SLABS)
            } else {
                Depot::new(pool, classes, DEPOT)
            })
        })
    }

    /// The depot, if it was made.
    fn made(&'static self) -> Option<&'static Depot<'static, P>> {
        self.depot.get()
    }
}

impl<P: ManualPool> fmt::Debug for GlobalHome<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = if self.depot.get().is_some() { "made" } else { "not yet made" };
        write!(f, "GlobalHome({}, {made})", P::CLASS)
    }
}

/// What [`cached_global_pool!`](crate::cached_global_pool) makes of a static: its pool, and its threads' caches.
///
/// # Safety
/// - `local` passes the same [`ThreadCache`] each time that a thread calls it, which is no other thread's, and
///   is used with no other home.
pub unsafe trait ThreadCached: 'static {
    /// The pool.
    type Pool: ManualPool + Send + Sync + 'static;

    /// The pool, and what its threads share.
    fn home() -> &'static GlobalHome<Self::Pool>;

    /// Passes the word of this thread to `work`, at any time of the thread's life.
    fn local<R>(work: impl FnOnce(&ThreadCache<Self::Pool>) -> R) -> R;

    /// Has [`ThreadEnd`] dropped when this thread ends. Returns false if it is too late for that.
    fn watch_end() -> bool;
}

/// Ends the cache of a thread when the thread's storage drops it.
pub struct ThreadEnd<K: ThreadCached>(PhantomData<fn() -> K>);

impl<K: ThreadCached> ThreadEnd<K> {
    /// For one thread.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "made by a macro, in a constant")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<K: ThreadCached> fmt::Debug for ThreadEnd<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadEnd")
    }
}

impl<K: ThreadCached> Drop for ThreadEnd<K> {
    fn drop(&mut self) {
        without_unwinding(|| K::local(|local| local.end(&K::home().caches)));
    }
}

/// A pool for everything that a program allocates, with a cache for each thread. Made by
/// [`cached_global_pool!`](crate::cached_global_pool).
///
/// An allocation or a free that the thread's cache can serve takes no lock. Caches hand batches of blocks to each
/// other through a [`Depot`], and return them when their threads end. Objects of more than 16 KiB, or aligned to more than two
/// words, come from the pool. The depot has [slabs](Depot::with_slabs) if the pool can have them, and its arena 32 MiB or more: each
/// size class of up to 1 KiB that is used takes 64 KiB.
///
/// As [`GlobalPool`](crate::GlobalPool), it makes its pool at the first request, by a function that must not allocate from
/// it; never drops it; and ends the program if a hook panics. In addition:
///
/// **Threads.** A thread may allocate and free at any time, also in destructors of thread-local values: what runs after its
/// cache was returned goes to the pool.
///
/// **Signal handlers.** A handler may interrupt the use of the cache: it finds no cache then, and goes to the pool. But
/// pools and depots have locks, and a handler that interrupts a thread which holds one never returns if it needs it. So
/// handlers should not allocate, as with any allocator.
///
/// **Fork.** On Unix a child may allocate, also if its parent has several threads: the fork waits until no other
/// thread holds a lock of the pool by way of this allocator. What other threads' caches kept is lost to the child. This
/// does not cover threads that use the pool, its depot or its arena directly, a fork inside a hook of the pool, or
/// calls that run no handlers of `pthread_atfork` (`_Fork`, `vfork`, `clone`). Do not fork while you hold a lock that a
/// hook waits for.
pub struct CachedGlobalPool<K: ThreadCached>(PhantomData<fn() -> K>);

impl<K: ThreadCached> CachedGlobalPool<K> {
    /// Made by [`cached_global_pool!`](crate::cached_global_pool).
    #[doc(hidden)]
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    /// Returns the pool, and makes it first if there is none.
    ///
    /// # Errors
    /// As [`GlobalPool::pool`](crate::GlobalPool::pool).
    pub fn pool(&self) -> Result<&'static K::Pool> {
        K::home().depot().map(Depot::pool)
    }

    /// Returns the depot that the threads' caches share, and makes it first if there is none. [`Depot::kept`] is how much it
    /// keeps. To flush it, call [`flush_depot`](CachedGlobalPool::flush_depot).
    ///
    /// # Errors
    /// As [`GlobalPool::pool`](crate::GlobalPool::pool).
    pub fn depot(&self) -> Result<&'static Depot<'static, K::Pool>> {
        K::home().depot()
    }

    /// Returns to the pool what the depot keeps, and slabs of which no block is in use: so flush threads first. A fork waits for this call, as it does not for [`Depot::flush`].
    pub fn flush_depot(&self) {
        without_unwinding(|| {
            let _inside = Inside::enter();
            if let Some(depot) = K::home().made() {
                depot.flush();
            }
        });
    }

    /// Returns to the pool, or to slabs, what the cache of this thread keeps. What other threads' caches keep stays there.
    pub fn flush_thread(&self) {
        without_unwinding(|| {
            let _inside = Inside::enter();
            K::local(|local| local.with_lock(&K::home().caches, |cache| cache.flush()));
        });
    }

    /// Returns to the pool, or to slabs, what the caches of all threads keep: of this thread, and of those that are not in
    /// a call of this allocator, at once; of others at their next call. Threads that call meanwhile wait for as long as it takes to
    /// return what one cache keeps. From a hook of the pool, nothing is done for other threads.
    ///
    /// Where there is no [`Membarrier`](tripoint_arena_vm::Membarrier), other threads do so at their next call, and an idle one does not.
    pub fn flush_threads(&self) {
        self.flush_thread();
        without_unwinding(|| K::local(|local| K::home().caches.flush(local.own())));
    }

    /// As [`flush_threads`](Self::flush_threads), of the threads that have not used their caches since they were last
    /// looked at. Call it now and then, from any thread. The allocator does it by itself for some threads each time that
    /// the pool has grown by a MiB, or a thread gets its cache; if the process is confined to some system calls, `membarrier` has to be one of them, or be refused by
    /// an error.
    pub fn flush_idle_threads(&self) {
        without_unwinding(|| K::local(|local| K::home().caches.flush_idle(local.own())));
    }

    /// Allocates what no cache serves at once, with all bytes zero if that is asked for.
    fn ask<const ZEROED: bool>(layout: Layout) -> Result<NonNull<u8>> {
        let depot = K::home().depot()?;
        K::local(|local| {
            let caches = &K::home().caches;
            if local.asks_first() && K::watch_end() {
                // Without a cache the thread goes to the pool, which refuses below if it refused here.
                let _ = local.make(depot);
                caches.look_for_new(local.own());
            }
            let ask = || {
                let _inside = Inside::enter();
                local
                    .with_lock(caches, |cache| alloc_in::<_, ZEROED>(cache, layout))
                    .unwrap_or_else(|| alloc_in::<_, ZEROED>(depot, layout))
            };
            let asked = ask().or_else(|error| {
                if matches!(error, Error::Parameter(_)) {
                    return Err(error);
                }
                caches.flush_for(layout.size(), depot.classes().as_slice().len() * CLASS_SIZE, local.own());
                ask()
            });
            caches.look_when_changed(depot.pool().header().total(), GROWTH, local.own());
            asked
        })
    }

    /// As [`GlobalAlloc::alloc`], for a layout with a size; says why if it refuses. A panic in it ends the program.
    #[inline]
    pub(crate) fn try_alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        let cached = K::local(|local| local.with_armed(|cache| cache.alloc_cached(layout)).flatten());
        match cached {
            Some(object) => Ok(object),
            None => without_unwinding(|| Self::ask::<false>(layout)),
        }
    }

    /// Allocates as [`ask`](Self::ask) does; null if that is refused. It takes the words of a layout instead of the layout,
    /// and returns a pointer instead of a result, so that the fast path ends in a jump to here and saves no register. A panic
    /// in it ends the program (design/adaptors.md `.global.unwind`).
    ///
    /// # Safety
    /// - `size` and `align` are those of a layout.
    #[cold]
    #[inline(never)]
    unsafe extern "C" fn alloc_slow<const ZEROED: bool>(size: usize, align: usize) -> *mut u8 {
        // SAFETY: `size` and `align` are those of a layout, as the caller promises.
        let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
        Self::ask::<ZEROED>(layout).map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    /// Frees what no cache takes at once, as [`alloc_slow`](Self::alloc_slow) allocates.
    ///
    /// # Safety
    /// - As [`GlobalAlloc::dealloc`]; `size` and `align` are those of the layout.
    #[cold]
    #[inline(never)]
    unsafe extern "C" fn free_slow(object: NonNull<u8>, size: usize, align: usize) {
        // SAFETY: `size` and `align` are those of a layout, as the caller promises.
        let layout = unsafe { Layout::from_size_align_unchecked(size, align) };
        let Some(depot) = K::home().made() else {
            aver!(false, "{object:?} is freed, which was never allocated");
            return;
        };
        let _inside = Inside::enter();
        let freed = K::local(|local| {
            // SAFETY: allocated by this allocator with this layout, so in a cache of this depot; freed once.
            local.with_lock(&K::home().caches, |cache| unsafe { cache.free(object, layout) })
        });
        if freed.is_none() {
            // SAFETY: allocated by this depot, or by a cache of it, with this layout; freed once.
            unsafe { depot.free(object, layout) };
        }
    }

    /// As [`Store::alloc_zeroed`]. A panic in it ends the program.
    pub(crate) fn try_alloc_zeroed(&self, layout: Layout) -> Result<NonNull<u8>> {
        without_unwinding(|| Self::ask::<true>(layout))
    }

    /// As [`Store::zero`]. A panic in it ends the program.
    ///
    /// # Safety
    /// - As for [`Store::zero`], of objects that are allocated by this allocator.
    pub(crate) unsafe fn zero(&self, bytes: NonNull<u8>, size: usize) {
        without_unwinding(|| {
            let _inside = Inside::enter();
            match K::home().made() {
                // SAFETY: bytes of an object of this pool, which nothing else uses, as the caller promises.
                Some(depot) => unsafe { depot.pool().zero(bytes, size) },
                // SAFETY: valid for writes, as the caller promises.
                None => unsafe { bytes.write_bytes(0, size) },
            }
        });
    }

    /// As [`Store::resize_room`]. A panic in it ends the program.
    ///
    /// # Safety
    /// - `object` is allocated by this allocator with the layout `from`.
    pub(crate) unsafe fn try_resize(
        &self,
        object: NonNull<u8>,
        from: Layout,
        to: Layout,
    ) -> Option<NonNull<u8>> {
        let depot = K::home().made()?;
        // SAFETY: allocated by this allocator with the layout `from`, as the caller promises.
        without_unwinding(|| unsafe { Self::resize(depot, object, from, to) })
    }

    /// Resizes an object in place, if it has the room.
    ///
    /// # Safety
    /// - `object` is allocated by this allocator with the layout `from`.
    unsafe fn resize(
        depot: &Depot<'static, K::Pool>,
        object: NonNull<u8>,
        from: Layout,
        to: Layout,
    ) -> Option<NonNull<u8>> {
        match depot.classes().have_same_block(from, to) {
            // The pointer that was passed may reach no further than what it was made narrow to.
            Some(same) => same.then(|| depot.pool().header().reach(object.addr())),
            None => {
                let _inside = Inside::enter();
                // SAFETY: no class serves the object, so it came from the pool with this layout.
                unsafe { depot.pool().resize_room(object, from, to) }
            }
        }
    }
}

impl<K: ThreadCached> fmt::Debug for CachedGlobalPool<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = if K::home().made().is_some() { "made" } else { "not yet made" };
        write!(f, "CachedGlobalPool({}, {made})", K::Pool::CLASS)
    }
}

// SAFETY: a block is memory of the pool, and is valid until it is freed: the pool is in a static, and is never dropped.
// A cache hands out blocks that are as large and aligned as asked. Nothing unwinds. What a thread's cache keeps is the
// thread's alone (`ThreadCached`).
unsafe impl<K: ThreadCached> GlobalAlloc for CachedGlobalPool<K> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let cached = K::local(|local| local.with_armed(|cache| cache.alloc_cached(layout)).flatten());
        match cached {
            Some(object) => object.as_ptr(),
            // SAFETY: the words of a layout.
            None => unsafe { Self::alloc_slow::<false>(layout.size(), layout.align()) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST {
            // SAFETY: the words of a layout.
            return unsafe { Self::alloc_slow::<true>(layout.size(), layout.align()) };
        }
        // SAFETY: the caller promises that the size is not zero.
        let object = unsafe { self.alloc(layout) };
        if !object.is_null() {
            // SAFETY: a new object of that size, which nothing else uses.
            unsafe { object.write_bytes(0, layout.size()) };
        }
        object
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        let Some(object) = NonNull::new(object) else { return };
        // SAFETY: the caller allocated the object here with this layout, and gives it up.
        let cached = K::local(|local| local.with_armed(|cache| unsafe { cache.free_cached(object, layout) }));
        if cached != Some(true) {
            // SAFETY: the same; the cache did not take it. These are the words of its layout.
            unsafe { Self::free_slow(object, layout.size(), layout.align()) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size, rounded up to the alignment, is at most
        // `isize::MAX`. The alignment is that of a layout.
        let to = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (Some(depot), Some(object)) = (K::home().made(), NonNull::new(object)) else {
            without_unwinding(|| aver!(false, "{object:?} is resized, which was never allocated"));
            return ptr::null_mut();
        };
        // SAFETY: the caller allocated the object here with this layout.
        if let Some(object) = without_unwinding(|| unsafe { Self::resize(depot, object, layout, to) }) {
            return object.as_ptr();
        }
        // SAFETY: the caller promises that the size is not zero.
        let Some(moved) = NonNull::new(unsafe { self.alloc(to) }) else { return ptr::null_mut() };
        let bytes = size.min(layout.size());
        without_unwinding(|| {
            let _inside = (bytes >= LARGE).then(Inside::enter);
            // SAFETY: both objects are the pool's, and have at least as many bytes. The new one is in use by nothing else, so
            // they do not overlap. The old one is freed below.
            unsafe { move_bytes(depot, object, moved, bytes) };
        });
        // SAFETY: the caller allocated the object here with this layout, and does not use it any
        // more now that it has moved.
        unsafe { self.dealloc(object.as_ptr(), layout) };
        moved.as_ptr()
    }
}

/// Allocates in a store, with all bytes zero if that is asked for.
fn alloc_in<S: Store, const ZEROED: bool>(store: &S, layout: Layout) -> Result<NonNull<u8>> {
    if ZEROED { store.alloc_zeroed(layout) } else { store.alloc(layout) }
}

/// Makes a static that is a [`CachedGlobalPool`]: the type is that of the pool, and the value is the function that makes it.
/// A type of the same name is made as well, which is of no use.
///
/// A program touches most of its memory, so have the arena ask for huge pages, as below: without them page faults may take a third of
/// the program's time. The first object then takes 2 MiB. A system that has no huge pages refuses such an arena, and the program could
/// not even start; so there is a second try.
///
/// What the program freed stays in the pool by default. To have it returned to the system, set `TlsfOptions::spare`, and
/// keep the default grain of the arena. After a burst, call [`flush_threads`](CachedGlobalPool::flush_threads)
/// and [`flush_depot`](CachedGlobalPool::flush_depot) ([design/adaptors.md `.cached.return`](crate::design::adaptors)).
///
/// On Windows this wants a standard library that does not allocate its thread-local variables by the global allocator: that of
/// Rust 1.95 does not, and with that of 1.90 the first allocation recurses without end.
///
/// ```
/// use tripoint_adaptors::cached_global_pool;
/// use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
/// use tripoint_core::PoolClass;
/// use tripoint_pools::{Tlsf, TlsfOptions};
///
/// cached_global_pool! {
///     # // On some other systems, and under Miri, the arena takes its addresses from the global allocator,
///     # // so cannot be it.
///     #[cfg_attr(all(target_os = "linux", not(miri)), global_allocator)]
///     static GLOBAL: Tlsf<ArenaVm> = || {
///         let options = ArenaVmOptions { huge_pages: true, grain: 2 << 20, ..ArenaVmOptions::default() };
///         let arena = ArenaVm::create(options).or_else(|_| ArenaVm::create(ArenaVmOptions::default()))?;
///         Tlsf::create(arena, TlsfOptions::default())
///     };
/// }
///
/// let text = "everything".to_string();
/// # #[cfg(all(target_os = "linux", not(miri)))] {
/// let sizes = GLOBAL.pool()?.sizes();
/// assert!(sizes.total - sizes.free >= text.len());
/// # }
/// # Ok::<(), tripoint_core::Error>(())
/// ```
#[macro_export]
macro_rules! cached_global_pool {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $pool:ty = $make:expr;) => {
        $(#[$attribute])*
        $visibility static $name: $crate::CachedGlobalPool<$name> = $crate::CachedGlobalPool::new();

        #[doc(hidden)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Debug)]
        $visibility enum $name {}

        const _: () = {
            static HOME: $crate::internal::GlobalHome<$pool> = $crate::internal::GlobalHome::new($make);

            ::std::thread_local! {
                static CACHE: $crate::internal::ThreadCache<$pool> = const { $crate::internal::ThreadCache::new() };
                static END: $crate::internal::ThreadEnd<$name> = const { $crate::internal::ThreadEnd::new() };
            }

            // SAFETY: `CACHE` is a thread-local value, which only this function reaches.
            unsafe impl $crate::internal::ThreadCached for $name {
                type Pool = $pool;

                #[inline(always)]
                fn home() -> &'static $crate::internal::GlobalHome<$pool> {
                    &HOME
                }

                #[inline(always)]
                fn local<R>(work: impl FnOnce(&$crate::internal::ThreadCache<$pool>) -> R) -> R {
                    const { assert!(!::core::mem::needs_drop::<$crate::internal::ThreadCache<$pool>>()) };
                    // Only the address is asked for there, so that the work is compiled into its caller.
                    let local = CACHE.with(::core::ptr::from_ref);
                    // SAFETY: a value of this thread that is never dropped, so it is there as long as the thread runs this; it is
                    // only shared.
                    work(unsafe { &*local })
                }

                fn watch_end() -> bool {
                    END.try_with(|_| ()).is_ok()
                }
            }
        };
    };
}
