//! Allocation points that are created, used and dropped, while other threads walk
//! their buffers and trip them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tripoint::author::for_each_buffer;
use tripoint::points::Control;
use tripoint::{
    AllocationPoint, ArenaVm, ArenaVmOptions, BufferKind, Check, CheckLevel, Mvff, MvffOptions, PoolClass,
};

use crate::random::Random;

const OWNERS: usize = 2;
const TRIPPERS: usize = 2;
const POINTS: usize = 4;
const OBJECTS: usize = 500;

/// Stops often, and counts its notices.
#[derive(Debug, Default)]
struct Told {
    trips: usize,
}

impl Control for Told {
    fn next_stop(&mut self) -> usize {
        1000
    }

    fn tripped(&mut self, requests: usize) {
        self.trips += requests;
    }
}

type Pool<'a> = Mvff<&'a ArenaVm>;

fn allocate(pool: &Pool<'_>, mut random: Random) -> u64 {
    let mut heard = 0;
    for _ in 0..POINTS {
        let mut point = AllocationPoint::create_with(pool, BufferKind::Mutator, Told::default()).unwrap();
        let mut objects = Vec::new();
        for number in 0..OBJECTS {
            let value = [number; 5];
            objects.push((point.boxed(value).unwrap(), value));
            if random.below(3) == 0 {
                let (object, value) = objects.swap_remove(random.below(objects.len()));
                assert_eq!(*object, value);
            }
            random.pause();
        }
        assert!(objects.iter().all(|(object, value)| **object == *value));
        heard += point.control().trips as u64;
    }
    heard
}

fn walk_and_trip(pool: &Pool<'_>, working: &AtomicUsize, mut random: Random) -> u64 {
    let mut trips = 0;
    while working.load(Ordering::Relaxed) > 0 {
        for_each_buffer(pool, |buffer| {
            buffer.trip();
            buffer.check(CheckLevel::Shallow).unwrap();
            trips += 1;
        });
        random.pause();
    }
    trips
}

pub(crate) fn race(random: &mut Random) -> u64 {
    let arena = ArenaVm::create(ArenaVmOptions { reserve: 64 << 20, ..ArenaVmOptions::default() }).unwrap();
    let pool = Mvff::create(&arena, MvffOptions { extend_by: 64 << 10, ..MvffOptions::default() }).unwrap();
    let working = AtomicUsize::new(OWNERS);
    let (requested, heard) = thread::scope(|scope| {
        let (pool, working) = (&pool, &working);
        let owners = [(); OWNERS].map(|()| {
            let random = random.split();
            scope.spawn(move || {
                let heard = allocate(pool, random);
                working.fetch_sub(1, Ordering::Relaxed);
                heard
            })
        });
        let trippers = [(); TRIPPERS].map(|()| {
            let random = random.split();
            scope.spawn(move || walk_and_trip(pool, working, random))
        });
        let requested: u64 = trippers.map(|tripper| tripper.join().unwrap()).iter().sum();
        (requested, owners.map(|owner| owner.join().unwrap()).iter().sum::<u64>())
    });
    // A trip that is requested while its point is dropped is handled by no
    // control.
    assert!(heard <= requested);
    pool.check(CheckLevel::Deep).unwrap();
    assert_eq!(pool.sizes().free, pool.sizes().total);
    (OWNERS * POINTS * OBJECTS) as u64
}
