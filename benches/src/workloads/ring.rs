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

    /// The next place.
    #[inline(always)]
    pub(super) fn place(&mut self) -> NonNull<Object> {
        self.next = (self.next + 1) % (2 * PLACES);
        NonNull::from(&mut self.objects[self.next])
    }
}

impl Objects for Rotation {
    type Handle = NonNull<Object>;

    #[inline(always)]
    fn make(&mut self, object: Object) -> NonNull<Object> {
        let place = self.place();
        // SAFETY: a place, which nothing else uses.
        unsafe { place.write(object) };
        place
    }

    #[inline(always)]
    fn take_back(&mut self, _object: NonNull<Object>) {}
}

/// What the producing thread does for one contender in one round.
pub(super) type Producer<'a> = Box<dyn FnMut(&Ring) -> Duration + 'a>;
/// What the consuming thread does for it.
pub(super) type Consumer<'a> = Box<dyn FnMut(&Ring) -> Duration + Send + 'a>;

fn producer<'a>(mut objects: impl Objects<Handle = NonNull<Object>> + 'a) -> Producer<'a> {
    Box::new(move |ring| ring.produce(MESSAGES, |index| objects.make([index as u64; 8])))
}

fn consumer<'a>(mut end: impl TakeBack + Send + 'a) -> Consumer<'a> {
    Box::new(move |ring| ring.consume(MESSAGES, |object| end.take_back(object)))
}

/// A contender that takes its own objects back.
fn same<'a, O>(name: &'static str, makes: O, frees: O) -> (&'static str, Producer<'a>, Consumer<'a>)
where
    O: Objects<Handle = NonNull<Object>> + Send + 'a,
{
    (name, producer(makes), consumer(Same(frees)))
}

/// Has contenders take turns, with both ends on processors of their own, and makes a table of it.
pub(super) fn race(
    title: &str,
    rounds: usize,
    messages: usize,
    contenders: Vec<(&'static str, Producer<'_>, Consumer<'_>)>,
) -> Table {
    let ring = Ring::default();
    let (order, orders) = mpsc::channel::<usize>();
    let (done, all_done) = mpsc::channel::<Duration>();
    let (mut producers, mut consumers) = (Vec::new(), Vec::new());
    for (name, producer, consumer) in contenders {
        producers.push((name, producer));
        consumers.push(consumer);
    }
    pin(0);
    thread::scope(|scope| {
        let ring = &ring;
        scope.spawn(move || {
            pin(1);
            for which in orders {
                done.send(consumers[which](ring)).expect("the measuring thread");
            }
        });
        let round = |which: usize, produce: &mut Producer<'_>| {
            order.send(which).expect("the other end");
            produce(ring) + all_done.recv().expect("the other end")
        };
        let round = &round;
        let mut contenders: Vec<_> = producers
            .into_iter()
            .enumerate()
            .map(|(which, (name, mut produce))| Contender::new(name, move || round(which, &mut produce)))
            .collect();
        let table = Table::of(title, &compare(&mut contenders, rounds, messages));
        drop(contenders);
        drop(order);
        table
    })
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
    let contenders = vec![
        ("Mfs, cache and returns", producer(&cache), consumer(cached.returns())),
        same("Mfs, lock", &locked, &locked),
        same("mimalloc (goal 1.82)", General(MiMalloc), General(MiMalloc)),
        same("mi_malloc (goal 1.82)", General(MiMallocDirect), General(MiMallocDirect)),
        same("snmalloc", General(SnMalloc), General(SnMalloc)),
        same("jemalloc (goal 1.82)", General(Jemalloc), General(Jemalloc)),
        same("system malloc", General(System), General(System)),
        ("Tlsf, caches and depot", producer(&tlsf_makes), consumer(tlsf_frees)),
        ("Mvff, caches and depot", producer(&mvff_makes), consumer(mvff_frees)),
        ("Tlsf, caches without a depot", producer(&alone_makes), consumer(alone_frees)),
        same(NULL, Rotation::new(), Rotation::new()),
        same("rusty_alloc", General(RustyAlloc), General(RustyAlloc)),
    ];
    vec![race("64 bytes across a ring", rounds, MESSAGES, contenders)]
}
