//! A table of sampled objects that are not freed yet (design/sampling.md `.live`).

#![forbid(unsafe_code)]

use core::fmt;

use tripoint_core::internal::{AtomicU32, AtomicUsize, Ordering};
use tripoint_core::{Addr, AddrRange, Event, EventHook, PoolId, aver};

use crate::estimators::estimate::Estimate;
use crate::live::entry::LiveEntry;
use crate::sample::Mean;
use crate::sampled_object::SampledObject;

/// The number of places that an address may be at. Their keys take 64 bytes on 64-bit targets.
const BUCKET: usize = 8;

/// The key of a place that no object has.
const FREE: usize = 0;

/// The key of a place that is being written or freed. No object has this address.
const TAKEN: usize = 1;

/// An odd number near `2^BITS` divided by the golden ratio: its products spread addresses evenly.
const SPREAD: usize = (0x9e37_79b9_7f4a_7c15_u64 >> (u64::BITS - usize::BITS)) as usize | 1;

/// The sampled objects that are not freed yet: up to `N`, in a table of fixed size that never
/// allocates and never waits. `N` is a power of two, and at least 8.
///
/// The objects in the table are a sample of what is in use, as the objects that samplers report are a
/// sample of what is allocated. So the same [`Estimate`] says how many bytes are in use, in all or by group,
/// and how far from the truth that may be.
///
/// | the objects of | are remembered by | and forgotten by |
/// |---|---|---|
/// | a [`SampledStore`](crate::SampledStore) | [`remembering`](crate::SampledStore::remembering) | a free through it, before the memory is returned |
/// | the program's global allocator | `GlobalSampler::remembering` | a free or a reallocation through its wrapper |
/// | the arena of which this is the [`EventHook`] | | the end of their pool or of the arena, and tracts returned |
///
/// Objects of allocation points are not remembered: their pool takes them back itself, and no sampler sees that.
/// A pool's [`PoolSizes`](tripoint_core::PoolSizes) say exactly how much of it is in use.
///
/// The free of an object that was not sampled costs one load, of 4 bytes in a table of `4 * N` bytes. If a
/// sampled object has the same hash, it also compares eight words.
///
/// An object for which there is no place is [missed](LiveSamples::missed), and estimates are lower bounds
/// from then on. A table four times as large as the number of samples that are expected
/// at once misses next to none ([design/sampling.md `.live.size`](crate::design::sampling)).
///
/// ```
/// use tripoint_core::{ClientArena, ClientArenaOptions, PoolBox};
/// use tripoint_pools::{Mvff, MvffOptions};
/// use tripoint_telemetry::{Groups, LiveSamples, Mean, SampledStore, Sampling};
///
/// static SAMPLING: Sampling = Sampling::off(42);
/// static LIVE: LiveSamples<1024> = LiveSamples::new();
///
/// let mut memory = Box::new_uninit_slice(4 << 20);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let pool = Mvff::create(&arena, MvffOptions::default())?;
/// let mean = Mean::new(10_000).unwrap();
/// SAMPLING.set_mean(Some(mean));
/// let store = SampledStore::new(&pool, &SAMPLING, |_| ()).of_pool(&pool).remembering(&LIVE);
///
/// let kept: Vec<_> = (0..20_000_u64).map(|number| PoolBox::new_in([number; 12], &store)).collect();
/// for number in 0..10_000_u32 {
///     drop(PoolBox::new_in([number; 12], &store)?); // in use for a moment
/// }
/// // 1,920,000 bytes are in use; some 192 of them were drawn.
/// assert!((LIVE.estimate(mean).bytes() / 1_920_000.0 - 1.0).abs() < 0.4);
/// assert_eq!(LIVE.missed(), 0);
///
/// // The same by type; by site, thread, pool or size class in the same way.
/// let mut by_type = Groups::<_, 8>::new(mean);
/// LIVE.for_each(|sampled| by_type.add(sampled.type_name, &sampled.sample));
/// assert!(by_type.get(&Some("[u64; 12]")).is_some() && by_type.get(&Some("[u32; 12]")).is_none());
/// drop(kept);
/// assert_eq!(LIVE.estimate(mean).bytes(), 0.0);
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct LiveSamples<const N: usize> {
    /// How many objects have each hash. A free looks here first.
    marks: [AtomicU32; N],
    /// The address of the object at each place, [`FREE`] or [`TAKEN`].
    keys: [AtomicUsize; N],
    entries: [LiveEntry; N],
    missed: AtomicUsize,
}

impl<const N: usize> Default for LiveSamples<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> LiveSamples<N> {
    const SIZE_IS_RIGHT: () =
        assert!(N.is_power_of_two() && N >= BUCKET, "the size is a power of two, and at least 8");

    words! {
        /// An empty table.
        pub fn new() -> Self {
            let () = Self::SIZE_IS_RIGHT;
            Self {
                marks: words![AtomicU32::new(0); N],
                keys: words![AtomicUsize::new(FREE); N],
                entries: words![LiveEntry::new(); N],
                missed: AtomicUsize::new(0),
            }
        }
    }

    /// The key and the entry at a place.
    #[cfg(any(tripoint_loom, tripoint_shuttle))]
    #[doc(hidden)]
    pub fn place(&self, place: usize) -> (&AtomicUsize, &LiveEntry) {
        (&self.keys[place], &self.entries[place])
    }

    /// Writes to every page of the table, so that no page faults later.
    pub fn prefault(&self) {
        self.marks.iter().for_each(|mark| _ = mark.fetch_add(0, Ordering::Relaxed));
        self.keys.iter().for_each(|key| _ = key.fetch_add(0, Ordering::Relaxed));
        self.entries.iter().for_each(LiveEntry::prefault);
    }

    /// Calls `visit` for each object, in no particular order. Objects that are allocated or freed meanwhile
    /// may be among them or not.
    pub fn for_each(&self, mut visit: impl FnMut(&SampledObject)) {
        for (key, entry) in self.keys.iter().zip(&self.entries) {
            let object = key.load(Ordering::Acquire);
            if object > TAKEN {
                let is_still_there = || key.load(Ordering::Relaxed) == object;
                if let Some(sampled) = entry.read(Addr::new(object), is_still_there) {
                    visit(&sampled);
                }
            }
        }
    }

    /// An estimate of what is in use: of its bytes and objects. `mean` is the one in force (see
    /// [`Estimate::new`]). If objects were [missed](LiveSamples::missed), it is a lower bound.
    #[must_use]
    pub fn estimate(&self, mean: Mean) -> Estimate {
        let mut estimate = Estimate::new(mean);
        self.for_each(|sampled| estimate.add(&sampled.sample));
        estimate
    }

    /// How many sampled objects found no place. If this is not zero, estimates are lower bounds:
    /// these objects may be in use, and no estimate includes them. The number never falls, because their frees
    /// are not recognised.
    #[must_use]
    pub fn missed(&self) -> usize {
        self.missed.load(Ordering::Relaxed)
    }

    const fn hash(object: Addr) -> usize {
        object.get().wrapping_mul(SPREAD) >> (usize::BITS - N.trailing_zeros())
    }

    /// The places that an object of this hash may be at.
    fn bucket(hash: usize) -> core::ops::Range<usize> {
        let first = hash & !(BUCKET - 1);
        first..first + BUCKET
    }

    /// Whether an object at this address may have been remembered: one load.
    #[inline(always)]
    pub(super) fn may_hold(&self, object: Addr) -> bool {
        // The thread that frees an object got it from the thread that allocated it, and so sees its mark.
        self.marks[Self::hash(object)].load(Ordering::Relaxed) != 0
    }

    /// Remembers an object, or counts it as missed if there is no place.
    #[cold]
    pub(super) fn remember(&self, sampled: &SampledObject) {
        let object = sampled.object;
        match self.take_again(object).or_else(|| self.take_free(Self::hash(object))) {
            Some(place) => {
                self.entries[place].write(sampled);
                self.keys[place].store(object.get(), Ordering::Release);
            }
            None => _ = self.missed.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Takes the place of an object that was at this address before, and whose free no sampler saw.
    fn take_again(&self, object: Addr) -> Option<usize> {
        if self.may_hold(object) { self.take(object) } else { None }
    }

    fn take_free(&self, hash: usize) -> Option<usize> {
        let place = Self::bucket(hash).find(|&place| self.swap_key(place, FREE, TAKEN))?;
        self.marks[hash].fetch_add(1, Ordering::Relaxed);
        Some(place)
    }

    fn swap_key(&self, place: usize, from: usize, to: usize) -> bool {
        self.keys[place].compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Forgets an object, if it is in the table. Its owner calls this before the memory is returned.
    #[cold]
    pub(super) fn forget(&self, object: Addr) {
        if let Some(place) = self.take(object) {
            self.release(place, object);
        }
    }

    /// Forgets an object, if it is in the table, while `reallocate` moves it, and for good unless that
    /// returns null.
    #[cfg(feature = "std")]
    #[cold]
    pub(super) fn forget_unless_refused(
        &self,
        object: Addr,
        reallocate: impl FnOnce() -> *mut u8,
    ) -> *mut u8 {
        let place = self.take(object);
        let moved = reallocate();
        match place {
            Some(place) if moved.is_null() => self.keys[place].store(object.get(), Ordering::Release),
            Some(place) => self.release(place, object),
            None => {}
        }
        moved
    }

    /// Returns the place of an object that was taken out.
    fn release(&self, place: usize, object: Addr) {
        self.keys[place].store(FREE, Ordering::Release);
        let marked = self.marks[Self::hash(object)].fetch_sub(1, Ordering::Relaxed);
        aver!(marked > 0, "{object:?} was remembered without a mark");
    }

    /// Takes an object's place, so that no thread finds the object any more.
    fn take(&self, object: Addr) -> Option<usize> {
        Self::bucket(Self::hash(object)).find(|&place| self.swap_key(place, object.get(), TAKEN))
    }

    /// Forgets all objects in a range.
    fn forget_range(&self, range: Option<AddrRange>) {
        for key in &self.keys {
            let object = Addr::new(key.load(Ordering::Acquire));
            if object.get() > TAKEN && range.is_some_and(|range| range.contains(object)) {
                self.forget(object);
            }
        }
    }

    /// Forgets all objects of a pool. Each is read as a whole, so that none is taken for one of the pool that had its
    /// address before.
    fn forget_pool(&self, pool: PoolId) {
        self.for_each(|sampled| {
            if sampled.pool == Some(pool) {
                self.forget(sampled.object);
            }
        });
    }
}

/// Forgets objects whose memory returns to the arena without being freed one by one. That is reported before another
/// pool can have the memory, so no object of another pool is forgotten. Give each arena a table of its own, because
/// pools of two arenas may have the same number.
impl<const N: usize> EventHook for LiveSamples<N> {
    fn event(&self, event: Event) {
        match event {
            Event::DestroyArena { range } => self.forget_range(Some(range)),
            Event::Retract { base, size, .. } => self.forget_range(AddrRange::with_size(base, size)),
            Event::DestroyPool { pool, .. } => self.forget_pool(pool),
            _ => {}
        }
    }
}

impl<const N: usize> fmt::Debug for LiveSamples<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut held = 0_usize;
        self.for_each(|_| held += 1);
        f.debug_struct("LiveSamples")
            .field("held", &held)
            .field("missed", &self.missed())
            .finish_non_exhaustive()
    }
}
