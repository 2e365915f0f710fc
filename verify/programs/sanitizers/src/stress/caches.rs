//! Caches of several threads over one pool, which other threads trip, and blocks
//! that go from one cache into another.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tripoint::{
    ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Check, CheckLevel, Mvff, MvffOptions,
    PoolClass, Store,
};

use crate::random::Random;

const THREADS: usize = 3;
const ROUNDS: usize = 1500;

type Pool<'a> = Mvff<&'a ArenaVm>;

/// A block on its way to another thread, with its layout and first word.
struct Sent {
    block: NonNull<u64>,
    layout: Layout,
    value: u64,
}

// SAFETY: the value owns its block, which any thread may free.
unsafe impl Send for Sent {}

fn get(cache: &Cache<'_, Pool<'_>>, random: &mut Random) -> Sent {
    let layout = Layout::array::<u64>(1 + random.below(64)).unwrap();
    let block = cache.alloc(layout).unwrap().cast::<u64>();
    let value = random.number();
    // SAFETY: a new block of at least a word.
    unsafe { block.write(value) };
    Sent { block, layout, value }
}

fn put(cache: &Cache<'_, Pool<'_>>, Sent { block, layout, value }: Sent) {
    // SAFETY: a live block, whose first word its maker wrote.
    assert_eq!(unsafe { block.read() }, value);
    // SAFETY: a live block of the pool with this layout, freed once.
    unsafe { cache.free(block.cast(), layout) };
}

fn exchange(
    pool: &Pool<'_>,
    descriptor: &CacheDescriptor,
    sender: &Sender<Sent>,
    receiver: &Receiver<Sent>,
    mut random: Random,
) {
    let cache = Cache::create(pool, descriptor).unwrap();
    for _ in 0..ROUNDS {
        let made = get(&cache, &mut random);
        if random.below(2) == 0 {
            put(&cache, made)
        } else {
            sender.send(made).unwrap()
        }
        receiver.try_iter().for_each(|sent| put(&cache, sent));
        random.pause();
    }
}

pub(crate) fn race(random: &mut Random) -> u64 {
    let arena = ArenaVm::create(ArenaVmOptions { reserve: 64 << 20, ..ArenaVmOptions::default() }).unwrap();
    let pool = Mvff::create(&arena, MvffOptions { extend_by: 64 << 10, ..MvffOptions::default() }).unwrap();
    let descriptors = [(); THREADS].map(|()| CacheDescriptor::new(CacheClasses::geometric(256, 6).unwrap()));
    let working = AtomicUsize::new(THREADS);
    let left = thread::scope(|scope| {
        let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
        senders.rotate_left(1);
        let threads: Vec<_> = (senders.into_iter().zip(receivers).zip(&descriptors))
            .map(|((sender, receiver), descriptor)| {
                let (pool, working, random) = (&pool, &working, random.split());
                scope.spawn(move || {
                    exchange(pool, descriptor, &sender, &receiver, random);
                    working.fetch_sub(1, Ordering::Relaxed);
                    drop(sender);
                    receiver
                })
            })
            .collect();
        for _ in 0..2 {
            let (descriptors, working, mut random) = (&descriptors, &working, random.split());
            scope.spawn(move || {
                while working.load(Ordering::Relaxed) > 0 {
                    let descriptor = &descriptors[random.below(THREADS)];
                    descriptor.trip();
                    assert!(descriptor.cached() < 1 << 30);
                    random.pause();
                }
            });
        }
        let receivers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        receivers.into_iter().flatten().collect::<Vec<_>>()
    });
    let last = Cache::create(&pool, &descriptors[0]).unwrap();
    left.into_iter().for_each(|sent| put(&last, sent));
    drop(last);
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(pool.sizes().free, pool.sizes().total);
    (THREADS * ROUNDS) as u64
}
