//! What a depot counts while caches hand batches to it and take them: that it stays within its bound, and what
//! it counts is what it keeps (design/cache.md `.depot`). The stack of batches has its own model (`depot.rs`).
//!
//! Bound: two preemptions.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use core::alloc::Layout;
use core::mem;
use core::ptr::NonNull;

use tests_loom::{lend, model_bounded, thread, with_arena};
use tripoint_core::{Check, CheckLevel, PoolClass, Store};
use tripoint_oracle::BumpPool;
use tripoint_pools::{Cache, CacheClass, CacheClasses, CacheDescriptor, Depot};

const OBJECT: Layout = Layout::new::<u128>();
/// The most blocks that a cache keeps: two batches.
const COUNT: usize = 4;
const BATCH_SIZE: usize = COUNT / 2 * OBJECT.size();

type Pool = BumpPool<'static>;
type PoolDepot = Depot<'static, Pool>;

/// A cache, and objects that are allocated in it.
struct User {
    cache: Cache<'static, Pool>,
    objects: Vec<NonNull<u8>>,
}

// SAFETY: the objects are memory of the pool, which any thread may free; a cache may be sent.
unsafe impl Send for User {}

impl User {
    /// A cache that keeps all it may: with the first of its objects that it frees, it has a batch too many. It has that many objects
    /// at least.
    fn new(depot: &'static PoolDepot, descriptor: &'static CacheDescriptor, objects: usize) -> Self {
        let mut user = Self { cache: Cache::with_depot(depot, descriptor).unwrap(), objects: Vec::new() };
        user.alloc(objects + COUNT);
        while descriptor.cached() < COUNT * OBJECT.size() {
            user.free(1);
        }
        assert_eq!(depot.kept(), 0, "the cache has no batch too many yet");
        user
    }

    fn alloc(&mut self, count: usize) {
        self.objects.extend((0..count).map(|_| self.cache.alloc(OBJECT).unwrap()));
    }

    fn free(&mut self, count: usize) {
        for object in self.objects.drain(self.objects.len() - count..) {
            // SAFETY: it came from this cache, and nothing uses it.
            unsafe { self.cache.free(object, OBJECT) };
        }
    }
}

/// Runs a model of two caches with that many objects each, one in another thread, which are full at first. The
/// depot of each is one of these, and together they may keep that many batches.
fn race(batches: usize, depots_of: [usize; 2], objects: usize, run: [fn(&mut User); 2], end: fn(User)) {
    let bound = batches * BATCH_SIZE;
    model_bounded(2, move || {
        with_arena(|arena| {
            let classes = CacheClasses::new(&[CacheClass { size: OBJECT.size(), count: COUNT }]).unwrap();
            let pool = Box::new(BumpPool::create(arena, 64));
            let run = |pool: &'static mut Pool| {
                let pool = &*pool;
                let depots = Box::from_iter((0..2).map(|_| Depot::new(pool, classes, bound)));
                let run = |depots: &'static mut [PoolDepot]| {
                    let descriptors = Box::from_iter((0..2).map(|_| CacheDescriptor::new(classes)));
                    let run = |descriptors: &'static mut [CacheDescriptor]| {
                        race_users(depots, descriptors, depots_of, objects, run, end);
                    };
                    // SAFETY: the threads of the model have ended by then, and the caches are not used any more.
                    unsafe { lend(descriptors, run) };
                    depots.iter().for_each(Depot::flush);
                    let kept = depots.iter().map(Depot::kept).sum::<usize>();
                    assert_eq!(kept, 0, "what is counted is not what was kept");
                };
                // SAFETY: the threads of the model have ended by then, and the caches are not used any more.
                unsafe { lend(depots, run) };
                let sizes = pool.sizes();
                assert_eq!(sizes.free, sizes.total, "blocks were lost");
            };
            // SAFETY: the threads of the model have ended by then, and the depots are dropped.
            unsafe { lend(pool, run) };
        });
    });
}

fn race_users(
    depots: &'static [PoolDepot],
    descriptors: &'static [CacheDescriptor],
    depots_of: [usize; 2],
    objects: usize,
    [run, other_run]: [fn(&mut User); 2],
    end: fn(User),
) {
    let user = |which: usize| User::new(&depots[depots_of[which]], &descriptors[which], objects);
    let (mut user, mut other) = (user(0), user(1));
    let thread = thread::spawn(move || {
        other_run(&mut other);
        other
    });
    run(&mut user);
    // Not before the other thread has ended: loom remembers only the last access to a word, so a look would hide others
    // from it.
    let users = [user, thread.join().unwrap()];
    let kept = depots.iter().map(Depot::kept).sum::<usize>();
    let checked = depots.iter().try_for_each(|depot| depot.check(CheckLevel::Deep));
    // Before anything fails: a cache cannot be dropped outside of a model.
    users.into_iter().for_each(end);
    assert!(kept <= depots[0].bound(), "more is kept than may be");
    checked.unwrap();
}

/// Frees all, and drops the cache.
fn end(mut user: User) {
    user.free(user.objects.len());
}

#[test]
fn of_two_batches_one_is_admitted() {
    race(1, [0, 0], 1, [|user| user.free(1); 2], end);
}

/// A thread that only frees has the depot return what it keeps (design/cache.md `.depot.shrink`).
#[test]
fn a_depot_that_shrinks_returns_a_batch_once() {
    race(1, [0, 0], 3, [|user| user.free(3); 2], end);
}

/// The class of one cache is emptied, while the other hands a batch on.
#[test]
fn a_batch_is_taken_while_another_comes() {
    race(1, [0, 0], 1, [|user| user.alloc(COUNT + 1), |user| user.free(1)], end);
}

/// One of two batches that the depot may keep is taken again, while another comes.
#[test]
fn a_batch_is_counted_out_while_another_is_counted_in() {
    let hand_on_and_take = |user: &mut User| {
        user.free(1);
        user.alloc(COUNT + 1);
    };
    race(2, [0, 0], 1, [hand_on_and_take, |user| user.free(1)], end);
}

/// The twin: each cache has a depot of its own.
#[test]
#[should_panic(expected = "more is kept than may be")]
fn two_depots_keep_more_than_one() {
    race(1, [0, 1], 1, [|user| user.free(1); 2], end);
}

/// The twin: a cache is forgotten with what it keeps.
#[test]
#[should_panic(expected = "blocks were lost")]
fn with_a_forgotten_cache_blocks_are_lost() {
    race(1, [0, 0], 1, [|user| user.free(1); 2], mem::forget);
}
