//! A pool or a cache whose objects are reported.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::internal::Defer;
use tripoint_core::{Addr, Arena, Event, EventHook, PoolClass, PoolId, Result, Store};
use tripoint_stack::Site;

/// A [`Store`] in front of another one, a pool or a cache, which reports what is allocated and freed
/// through it: by [`alloc`](Store::alloc) and [`free`](Store::free), in a
/// [`PoolBox`](tripoint_core::PoolBox) or [`PoolRc`](tripoint_core::PoolRc), or in a collection whose allocator is a
/// `PoolAllocator` over this store. The hook is called with
/// [`Event::Alloc`] or [`Event::RefuseAlloc`], [`Event::Free`] and [`Event::Resize`].
///
/// The switch is a function, which is called for each object. While it returns false, calls of the store
/// cost no more than this function does. An allocation is reported after the store has returned the memory,
/// and a free just before the memory is returned. So in the order of the reports, no two objects have the
/// same memory at once.
///
/// ```
/// use std::sync::Mutex;
/// use tripoint_core::{ClientArena, ClientArenaOptions, Event, EventHook, PoolBox};
/// use tripoint_pools::{Mvff, MvffOptions};
/// use tripoint_telemetry::LoggedStore;
///
/// struct Events(Mutex<Vec<Event>>);
///
/// impl EventHook for Events {
///     fn event(&self, event: Event) {
///         self.0.lock().unwrap().push(event);
///     }
/// }
///
/// let mut memory = Box::new_uninit_slice(1 << 20);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let pool = Mvff::create(&arena, MvffOptions::default())?;
/// let events = Events(Mutex::default());
/// let store = LoggedStore::new(&pool, &pool, || true, &events);
/// drop(PoolBox::new_in([0_u64; 12], &store)?);
/// assert!(matches!(events.0.lock().unwrap()[..], [Event::Alloc { .. }, Event::Free { .. }]));
/// # Ok::<(), tripoint_core::Error>(())
/// ```
///
/// What other code allocates in the same pool is not reported here: a thread that uses a point has a
/// [`PointLogger`](crate::PointLogger) there, and a pool all of whose objects are to be reported is a
/// [`LoggedPool`](crate::LoggedPool). To sample as well, put one store in front of the other.
pub struct LoggedStore<'s, S, W, H> {
    store: &'s S,
    pool: PoolId,
    is_on: W,
    hook: H,
    has_sites: bool,
}

impl<'s, S: Store, W: Fn() -> bool, H: EventHook> LoggedStore<'s, S, W, H> {
    /// Reports to `hook` what `store` allocates and frees, while `is_on` returns true. `pool` is the
    /// pool that the store allocates in: the store itself, or the pool behind a cache. The hook may use the
    /// store. If the switch or the hook unwinds, the object that was just allocated, or was about to be freed, is freed.
    pub fn new<P: PoolClass>(store: &'s S, pool: &P, is_on: W, hook: H) -> Self {
        Self { store, pool: pool.header().id(), is_on, hook, has_sites: false }
    }

    /// Has the stack walked at each call, for [`EventHook::event_at`]. That takes 1 to 3 µs. Without
    /// the feature `std`, and on systems other than Linux, sites stay unknown.
    #[must_use]
    pub fn with_sites(self) -> Self {
        Self { has_sites: true, ..self }
    }

    #[cold]
    #[inline(never)]
    fn report(&self, event: Event) {
        if self.has_sites {
            self.hook.event_at(event, Site::here().frames());
        } else {
            self.hook.event(event);
        }
    }

    /// Allocates an object and reports it, or that it was refused.
    #[inline]
    fn alloc_by(
        &self,
        layout: Layout,
        type_name: Option<&'static str>,
        alloc: impl FnOnce(&S) -> Result<NonNull<u8>>,
    ) -> Result<NonNull<u8>> {
        if !(self.is_on)() {
            return alloc(self.store);
        }
        let _call = Call::begin(&self.hook);
        let (pool, size, align) = (self.pool, layout.size(), layout.align());
        match alloc(self.store) {
            Ok(allocated) => {
                // SAFETY: the object was allocated in this store with this layout. It is freed only if
                // this unwinds, and then nothing else has its address.
                let free = Defer::new(|| unsafe { self.store.free(allocated, layout) });
                let object = Addr::of(allocated.as_ptr());
                self.report(Event::Alloc { pool, object, size, align, type_name });
                core::mem::forget(free);
                Ok(allocated)
            }
            Err(error) => {
                self.report(Event::RefuseAlloc { pool, size, align, type_name, error });
                Err(error)
            }
        }
    }
}

/// A call, all events of which the hook observes together.
struct Call<'h, H: EventHook>(&'h H);

impl<'h, H: EventHook> Call<'h, H> {
    fn begin(hook: &'h H) -> Self {
        hook.begin_call();
        Self(hook)
    }
}

impl<H: EventHook> Drop for Call<'_, H> {
    fn drop(&mut self) {
        self.0.end_call();
    }
}

// SAFETY: memory comes from the store, with the layout that was asked for, and is returned to it
// in the same way, so its promises are these. They do not depend on the address of this value:
// it only borrows the store. It is `Sync` only if the store is, because it holds a `&S`.
unsafe impl<S: Store, W: Fn() -> bool, H: EventHook> Store for LoggedStore<'_, S, W, H> {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.alloc_by(layout, None, |store| store.alloc(layout))
    }

    #[inline]
    fn alloc_named(&self, layout: Layout, type_name: &'static str) -> Result<NonNull<u8>> {
        self.alloc_by(layout, Some(type_name), |store| store.alloc_named(layout, type_name))
    }

    #[inline]
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // It is over when the object was freed.
        let _call;
        // SAFETY: the caller's object came from this store, and so from the one behind it, or from
        // a source whose objects that one takes. It is freed once, and nothing uses it any more.
        let _free = Defer::new(|| unsafe { self.store.free(object, layout) });
        if (self.is_on)() {
            _call = Call::begin(&self.hook);
            let (object, size, align) = (Addr::of(object.as_ptr()), layout.size(), layout.align());
            self.report(Event::Free { pool: self.pool, object, size, align });
        }
    }

    #[inline]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        let is_on = (self.is_on)();
        let _call = is_on.then(|| Call::begin(&self.hook));
        // SAFETY: the caller's object came from this store, and so from the one behind it, or from
        // a source whose objects that one takes, with this layout. It is not freed.
        let resized = unsafe { self.store.resize(object, from, to) };
        // If the hook unwinds, the object stays the caller's, who may still free it as it was.
        if is_on {
            self.report(Event::Resize {
                pool: self.pool,
                object: Addr::of(object.as_ptr()),
                size: from.size(),
                align: from.align(),
                new_size: to.size(),
                new_align: to.align(),
                resized: resized.map_or(Addr::ZERO, |resized| Addr::of(resized.as_ptr())),
            });
        }
        resized
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        self.store.arena()
    }
}

impl<S, W, H> fmt::Debug for LoggedStore<'_, S, W, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedStore").field("pool", &self.pool).finish_non_exhaustive()
    }
}
