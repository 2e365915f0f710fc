//! One thread makes objects of 64 bytes, another takes them back, and a ring of
//! 1,024 places lies between them.
//!
//! Each thread has a processor of its own. What counts is the processor time of
//! both, less the time that they wait for each other. So a busy machine, which
//! seldom runs both at once, shows the same as an idle one.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use core::time::Duration;
use std::alloc::System;
use std::sync::mpsc;
use std::thread;

use crate::compare::{Contender, NULL, compare};
use crate::table::Table;
use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::author::Unit;
use tripoint::{
    Arena, ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Depot, ManualPool, Mfs, MfsOptions,
    Mvff, MvffOptions, Returns, Tlsf, TlsfOptions, UnitOf,
};

use super::objects::{General, LAYOUT, MiMallocDirect, Object, Objects};
use crate::processor::{pin, thread_time};

const MESSAGES: usize = 3_000 * CHUNK;
const PLACES: usize = 1024;
/// The most bytes that a depot keeps.
pub(super) const DEPOT: usize = 1 << 20;
/// The number of messages that one end announces to the other at a time, so that
/// the allocators are measured and not the ring.
const CHUNK: usize = 32;

/// One end's count, on a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct End(AtomicUsize);

/// A ring for one producer and one consumer.
pub(super) struct Ring {
    places: Vec<AtomicPtr<Object>>,
    pushed: End,
    popped: End,
}

impl Default for Ring {
    fn default() -> Self {
        let places = (0..PLACES).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        Self { places, pushed: End::default(), popped: End::default() }
    }
}

impl Ring {
    /// Pushes `count` objects, and announces them a few at a time.
    #[inline(always)]
    pub(super) fn produce(&self, count: usize, mut make: impl FnMut(usize) -> NonNull<Object>) -> Duration {
        let mut work = Work::begin();
        let first = self.pushed.0.load(Ordering::Relaxed);
        let mut popped = self.popped.0.load(Ordering::Acquire);
        for chunk in (first..first + count).step_by(CHUNK) {
            while chunk + CHUNK > popped + PLACES {
                popped = work.wait_for(&self.popped.0, popped);
            }
            for index in chunk..chunk + CHUNK {
                self.places[index % PLACES].store(make(index).as_ptr(), Ordering::Relaxed);
            }
            self.pushed.0.store(chunk + CHUNK, Ordering::Release);
        }
        work.end()
    }

    /// Pops `count` objects, and announces that a few at a time.
    #[inline(always)]
    pub(super) fn consume(&self, count: usize, mut take_back: impl FnMut(NonNull<Object>)) -> Duration {
        let mut work = Work::begin();
        let first = self.popped.0.load(Ordering::Relaxed);
        let mut pushed = self.pushed.0.load(Ordering::Acquire);
        for chunk in (first..first + count).step_by(CHUNK) {
            while chunk == pushed {
                pushed = work.wait_for(&self.pushed.0, pushed);
            }
            self.pop(chunk, &mut take_back);
        }
        work.end()
    }

    /// Pops the objects that one announcement was for.
    #[inline(always)]
    fn pop(&self, chunk: usize, take_back: &mut impl FnMut(NonNull<Object>)) {
        for index in chunk..chunk + CHUNK {
            let object = self.places[index % PLACES].load(Ordering::Relaxed);
            take_back(NonNull::new(object).unwrap());
        }
        self.popped.0.store(chunk + CHUNK, Ordering::Release);
    }

    /// Whether objects were announced that are not popped yet.
    fn has_more(&self) -> bool {
        self.pushed.0.load(Ordering::Acquire) != self.popped.0.load(Ordering::Relaxed)
    }
}

/// Pops `count` objects of each ring: of one after the other, a few at a time.
#[inline(always)]
pub(super) fn consume_all<const N: usize>(
    rings: &[Ring; N],
    count: usize,
    mut take_back: impl FnMut(NonNull<Object>),
) -> Duration {
    let mut work = Work::begin();
    let mut left = N * count;
    while left != 0 {
        let was_left = left;
        for ring in rings.iter().filter(|ring| ring.has_more()) {
            ring.pop(ring.popped.0.load(Ordering::Relaxed), &mut take_back);
            left -= CHUNK;
        }
        if left == was_left {
            work.wait_until(|| rings.iter().any(Ring::has_more));
        }
    }
    work.end()
}

/// The processor time of a thread, less the time that it waited.
struct Work {
    begun: Duration,
    waited: Duration,
}

impl Work {
    fn begin() -> Self {
        Self { begun: thread_time(), waited: Duration::ZERO }
    }

    fn end(self) -> Duration {
        thread_time() - self.begun - self.waited
    }

    /// Waits until a count has changed.
    #[cold]
    fn wait_for(&mut self, count: &AtomicUsize, was: usize) -> usize {
        self.wait_until(|| count.load(Ordering::Acquire) != was);
        count.load(Ordering::Acquire)
    }

    #[cold]
    fn wait_until(&mut self, is_due: impl Fn() -> bool) {
        let start = thread_time();
        while !is_due() {
            thread::yield_now();
        }
        self.waited += thread_time() - start;
    }
}

/// The end that frees what another thread made.
pub(super) trait TakeBack {
    /// Takes an object back, once.
    fn take_back(&mut self, object: NonNull<Object>);
}

impl<A: Arena, U: Unit> TakeBack for Returns<'_, A, U> {
    #[inline(always)]
    fn take_back(&mut self, object: NonNull<Object>) {
        // SAFETY: made in a cache of the pool, taken back once.
        unsafe { self.free(object.cast(), LAYOUT) };
    }
}

/// A cache of the consuming thread, over any class.
impl<P: ManualPool> TakeBack for Cache<'_, P> {
    #[inline(always)]
    fn take_back(&mut self, object: NonNull<Object>) {
        Objects::take_back(&mut &*self, object);
    }
}

pub(super) struct Same<O>(pub(super) O);

impl<O: Objects<Handle = NonNull<Object>>> TakeBack for Same<O> {
    #[inline(always)]
    fn take_back(&mut self, object: NonNull<Object>) {
        self.0.take_back(object);
    }
}

/// No allocator: twice as many places as the ring has, one after the other. What remains is the cost of the ring, and of
/// writing what goes through it.
pub(super) struct Rotation {
    objects: Vec<Object>,
    next: usize,
}

impl Rotation {
    pub(super) fn new() -> Self {
        Self { objects: vec![[0; 8]; 2 * PLACES], next: 0 }
    }
}

impl Objects for Rotation {
    type Handle = NonNull<Object>;

    #[inline(always)]
    fn make(&mut self, object: Object) -> NonNull<Object> {
        self.next = (self.next + 1) % (2 * PLACES);
        let place = &mut self.objects[self.next];
        *place = object;
        NonNull::from(place)
    }

    #[inline(always)]
    fn take_back(&mut self, _object: NonNull<Object>) {}
}

/// What the consuming thread does for one contender in one round.
type Consumer<'a> = Box<dyn FnMut(&Ring) -> Duration + Send + 'a>;

fn consumer<'a>(mut end: impl TakeBack + Send + 'a) -> Consumer<'a> {
    Box::new(move |ring| ring.consume(MESSAGES, |object| end.take_back(object)))
}

pub(super) fn measure(rounds: usize) -> Vec<Table> {
    // In a thread of its own, because a pinned thread stays pinned.
    thread::scope(|scope| scope.spawn(|| measure_pinned(rounds)).join().expect("a table"))
}

fn measure_pinned(rounds: usize) -> Vec<Table> {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = || Mfs::create(&arena, UnitOf::<Object>::new(), MfsOptions::default()).unwrap();
    let (cached, locked) = (pool(), pool());
    let cache = cached.cache();
    let (tlsf, mvff) = (
        Tlsf::create(&arena, TlsfOptions::default()).unwrap(),
        Mvff::create(&arena, MvffOptions::default()).unwrap(),
    );
    let classes = CacheClasses::geometric(512, 128).unwrap();
    let (tlsf_depot, mvff_depot) = (Depot::new(&tlsf, classes, DEPOT), Depot::new(&mvff, classes, DEPOT));
    let descriptors = [(); 6].map(|()| CacheDescriptor::new(classes));
    let [tlsf_makes, tlsf_frees] =
        [&descriptors[0], &descriptors[1]].map(|end| Cache::with_depot(&tlsf_depot, end).unwrap());
    let [mvff_makes, mvff_frees] =
        [&descriptors[2], &descriptors[3]].map(|end| Cache::with_depot(&mvff_depot, end).unwrap());
    let [alone_makes, alone_frees] =
        [&descriptors[4], &descriptors[5]].map(|end| Cache::create(&tlsf, end).unwrap());
    let mut consumers = [
        consumer(cached.returns()),
        consumer(Same(&locked)),
        consumer(Same(General(MiMalloc))),
        consumer(Same(General(MiMallocDirect))),
        consumer(Same(General(SnMalloc))),
        consumer(Same(General(Jemalloc))),
        consumer(Same(General(System))),
        consumer(tlsf_frees),
        consumer(mvff_frees),
        consumer(alone_frees),
        consumer(Same(Rotation::new())),
        consumer(Same(General(RustyAlloc))),
    ];
    let ring = Ring::default();
    let (order, orders) = mpsc::channel::<usize>();
    let (done, all_done) = mpsc::channel::<Duration>();
    pin(0);
    thread::scope(|scope| {
        let ring = &ring;
        scope.spawn(move || {
            pin(1);
            for which in orders {
                done.send(consumers[which](ring)).unwrap();
            }
        });
        let round = |which, produce: &mut dyn FnMut() -> Duration| {
            order.send(which).unwrap();
            produce() + all_done.recv().unwrap()
        };
        let mut contenders = [
            Contender::new("Mfs, cache and returns", produced(ring, &cache, 0, &round)),
            Contender::new("Mfs, lock", produced(ring, &locked, 1, &round)),
            Contender::new("mimalloc (goal 1.82)", produced(ring, General(MiMalloc), 2, &round)),
            Contender::new("mi_malloc (goal 1.82)", produced(ring, General(MiMallocDirect), 3, &round)),
            Contender::new("snmalloc", produced(ring, General(SnMalloc), 4, &round)),
            Contender::new("jemalloc (goal 1.82)", produced(ring, General(Jemalloc), 5, &round)),
            Contender::new("system malloc", produced(ring, General(System), 6, &round)),
            Contender::new("Tlsf, caches and depot", produced(ring, &tlsf_makes, 7, &round)),
            Contender::new("Mvff, caches and depot", produced(ring, &mvff_makes, 8, &round)),
            Contender::new("Tlsf, caches without a depot", produced(ring, &alone_makes, 9, &round)),
            Contender::new(NULL, produced(ring, Rotation::new(), 10, &round)),
            Contender::new("rusty_alloc", produced(ring, General(RustyAlloc), 11, &round)),
        ];
        let table = Table::of("64 bytes across a ring", &compare(&mut contenders, rounds, MESSAGES));
        drop(contenders);
        drop(order);
        vec![table]
    })
}

fn produced<'a, O: Objects<Handle = NonNull<Object>> + 'a>(
    ring: &'a Ring,
    mut objects: O,
    which: usize,
    round: &'a dyn Fn(usize, &mut dyn FnMut() -> Duration) -> Duration,
) -> impl FnMut() -> Duration + 'a {
    move || round(which, &mut || ring.produce(MESSAGES, |index| objects.make([index as u64; 8])))
}
