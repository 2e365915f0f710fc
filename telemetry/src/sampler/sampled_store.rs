//! A pool or a cache whose objects are sampled.

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;

use tripoint_core::internal::Defer;
use tripoint_core::{Addr, Arena, Lock, PoolClass, PoolId, Result, Store};

use crate::live::live_samples::LiveSamples;
use crate::live::remember::Remember;
use crate::sample::Sample;
use crate::sampled_object::{ObjectKind, SampledObject};
use crate::sampler::countdown::{Countdown, OneThread, Threads};
use crate::sampler::draws::Draws;
use crate::sampler::sampling::Sampling;

/// A [`Store`] in front of another one, a pool or a cache, which samples what is allocated through it:
/// by [`alloc`](Store::alloc), in a [`PoolBox`](tripoint_core::PoolBox) or
/// [`PoolRc`](tripoint_core::PoolRc), or in a collection whose allocator is a `PoolAllocator` over this store.
///
/// The bytes that count are those asked for. An object that is resized in place counts as freed, and as a new one
/// of its new size, as if it had moved. An allocation that fails does not count. A free costs no more
/// than in the store itself, unless samples are [remembered](SampledStore::remembering); without that, objects may
/// also be freed to the store itself. What other code allocates in the same pool is not sampled here: a thread
/// that uses a point has a [`PointSampler`](crate::PointSampler) there.
///
/// For a store of one thread, such as a cache, make one with [`new`](Self::new): an allocation
/// costs two or three instructions more. Threads that share a pool, or send its boxes to each
/// other, share one in front of it ([`shared`](SampledStore::shared)), and all count down the same
/// word. That takes a compare-exchange for each allocation; the pool itself takes a lock. In both
/// cases an object that is sampled costs some hundred ns
/// ([design/sampling.md `.store`](crate::design::sampling)).
///
/// ```
/// use core::cell::RefCell;
/// use tripoint_core::{ClientArena, ClientArenaOptions, PoolBox};
/// use tripoint_pools::{Mvff, MvffOptions};
/// use tripoint_telemetry::{Estimate, Mean, SampledStore, Sampling};
///
/// static SAMPLING: Sampling = Sampling::off(42);
///
/// let mut memory = Box::new_uninit_slice(1 << 20);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let pool = Mvff::create(&arena, MvffOptions::default())?;
/// let mean = Mean::new(200).unwrap();
/// SAMPLING.set_mean(Some(mean));
///
/// let estimate = RefCell::new(Estimate::new(mean));
/// let store = SampledStore::new(&pool, &SAMPLING, |sampled| estimate.borrow_mut().add(&sampled.sample));
/// for number in 0..200_u64 {
///     drop(PoolBox::new_in([number; 12], &store)?);
/// }
/// // Of 19,200 bytes, some 96 were drawn.
/// assert!((estimate.borrow().bytes() / 19_200.0 - 1.0).abs() < 0.4);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct SampledStore<'s, S, F, L = OneThread, M = ()> {
    store: &'s S,
    /// Bytes to be allocated before the next byte drawn. Without a draw it counts down too,
    /// from the largest number.
    left: L,
    draws: Lock<Draws<'s>>,
    on_sample: F,
    sampling: &'s Sampling,
    /// The pool and the name of its class, for reports.
    pool: Option<(PoolId, &'static str)>,
    memory: M,
}

impl<'s, S: Store, F: Fn(SampledObject)> SampledStore<'s, S, F> {
    /// A store in front of `store`, for one thread, which follows `sampling`. `on_sample` is called on the
    /// thread that allocates, when it has the memory, which is not initialised yet. It may use the
    /// store. If it unwinds, the memory is freed.
    pub fn new(store: &'s S, sampling: &'s Sampling, on_sample: F) -> Self {
        Self::create(store, sampling, on_sample)
    }
}

impl<'s, S: Store, F: Fn(SampledObject)> SampledStore<'s, S, F, Threads> {
    /// The same as [`new`](SampledStore::new), for any number of threads.
    pub fn shared(store: &'s S, sampling: &'s Sampling, on_sample: F) -> Self {
        Self::create(store, sampling, on_sample)
    }
}

impl<'s, S: Store, F: Fn(SampledObject), L: Countdown> SampledStore<'s, S, F, L> {
    fn create(store: &'s S, sampling: &'s Sampling, on_sample: F) -> Self {
        let mut draws = Draws::new(sampling);
        let left = L::new(draws.next_distance());
        Self { store, left, draws: Lock::new(draws), on_sample, sampling, pool: None, memory: () }
    }
}

impl<'s, S: Store, F: Fn(SampledObject), L: Countdown, M: Remember> SampledStore<'s, S, F, L, M> {
    /// Has `live` remember each object that is sampled until it is freed through this store, or through
    /// another one that remembers with the same table. A free then costs one load more, which says whether
    /// the object may be in the table.
    ///
    /// An object that is freed in another way stays in the table until an object at its address is sampled. If
    /// the table is the arena's hook, it also leaves when its memory is returned to the arena or its pool is
    /// destroyed.
    #[must_use]
    pub fn remembering<const N: usize>(
        self,
        live: &'s LiveSamples<N>,
    ) -> SampledStore<'s, S, F, L, &'s LiveSamples<N>> {
        let Self { store, left, draws, on_sample, sampling, pool, memory: _ } = self;
        SampledStore { store, left, draws, on_sample, sampling, pool, memory: live }
    }

    /// Says which pool the store allocates in: the store itself, or the pool behind a cache. This changes
    /// only what reports say.
    #[must_use]
    pub fn of_pool<P: PoolClass>(self, pool: &P) -> Self {
        Self { pool: Some((pool.header().id(), pool.header().class())), ..self }
    }

    /// Follows the switch at once: sampling on or off, another mean, or another seed. Otherwise the store
    /// follows from its next sample on.
    pub fn follow_switch(&self) {
        let mut draws = self.draws.lock();
        if draws.are_outdated() {
            self.left.replace(draws.next_distance());
        }
    }

    /// Carries out the trials of an object. Returns a sample if one of its bytes is drawn.
    #[inline]
    fn allocate(&self, size: usize) -> Option<Sample> {
        if self.left.pass(size) { None } else { self.take(size) }
    }

    #[cold]
    #[inline(never)]
    fn take(&self, size: usize) -> Option<Sample> {
        let mut draws = self.draws.lock();
        // Another thread may have drawn since.
        if self.left.pass(size) {
            return None;
        }
        let mean = draws.mean();
        // Threads that find room below the byte drawn may still pass, so its offset is what is
        // found now. Only the holder of the lock makes the word larger.
        let offset = self.left.replace(draws.next_distance());
        Sample::new(size as u64, offset as u64, mean?)
    }

    /// Reports a new object that is sampled. It is freed if that unwinds.
    #[cold]
    #[inline(never)]
    fn report_alloc(
        &self,
        object: NonNull<u8>,
        layout: Layout,
        sample: Sample,
        type_name: Option<&'static str>,
    ) {
        // SAFETY: the object was allocated in this store with this layout. It is freed only if
        // the report unwinds, and then nothing else has its address.
        let free = Defer::new(|| unsafe { self.store.free(object, layout) });
        self.report(object, sample, type_name);
        core::mem::forget(free);
    }

    #[cold]
    #[inline(never)]
    fn report(&self, object: NonNull<u8>, sample: Sample, type_name: Option<&'static str>) {
        let (pool, class) = self.pool.unzip();
        let known = SampledObject::new(ObjectKind::Direct, Addr::of(object.as_ptr()), sample);
        let sampled = SampledObject { pool, class, type_name, site: self.sampling.site(), ..known };
        (self.on_sample)(sampled);
        self.memory.remember(&sampled);
    }

    #[inline(always)]
    fn alloc_with(&self, layout: Layout, type_name: Option<&'static str>) -> Result<NonNull<u8>> {
        let object = match type_name {
            Some(type_name) => self.store.alloc_named(layout, type_name),
            None => self.store.alloc(layout),
        }?;
        if let Some(sample) = self.allocate(layout.size()) {
            self.report_alloc(object, layout, sample, type_name);
        }
        Ok(object)
    }
}

// SAFETY: memory comes from the store, with the layout that was asked for, and is returned to it
// in the same way, so its promises are these. They do not depend on the address of this value:
// it only borrows the store. It is `Sync` only if the store is, because it holds a `&S`, and only
// with a countdown that threads may share.
unsafe impl<S: Store, F: Fn(SampledObject), L: Countdown, M: Remember> Store
    for SampledStore<'_, S, F, L, M>
{
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>> {
        self.alloc_with(layout, None)
    }

    #[inline]
    fn alloc_named(&self, layout: Layout, type_name: &'static str) -> Result<NonNull<u8>> {
        self.alloc_with(layout, Some(type_name))
    }

    #[inline]
    unsafe fn free(&self, object: NonNull<u8>, layout: Layout) {
        // Before the memory is returned, because then another object may be there at once.
        self.memory.forget(Addr::of(object.as_ptr()));
        // SAFETY: the caller's object came from this store, and so from the one behind it, or from
        // a source whose objects that one takes. It is freed once, and nothing uses it any more.
        unsafe { self.store.free(object, layout) };
    }

    /// If the object is resized, that counts as a free and an allocation of the whole new size.
    #[inline]
    unsafe fn resize(&self, object: NonNull<u8>, from: Layout, to: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the caller's object came from this store, and so from the one behind it, or from
        // a source whose objects that one takes, with this layout. It is not freed.
        let object = unsafe { self.store.resize(object, from, to) }?;
        self.memory.forget(Addr::of(object.as_ptr()));
        // If the report unwinds, the object stays the caller's, who may still free it as it was.
        if let Some(sample) = self.allocate(to.size()) {
            self.report(object, sample, None);
        }
        Some(object)
    }

    #[inline(always)]
    fn arena(&self) -> Option<&dyn Arena> {
        self.store.arena()
    }
}

impl<S, F, L, M> fmt::Debug for SampledStore<'_, S, F, L, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampledStore").field("mean", &self.draws.lock().mean()).finish_non_exhaustive()
    }
}
