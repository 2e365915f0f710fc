//! Nothing wrong: what a steady loop may do as often as it likes.

use core::alloc::Layout;
use core::fmt::Write;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::catch_unwind;
use std::sync::{Mutex, RwLock, mpsc};
use std::time::Instant;

use tripoint::{
    AllocationPoint, Arena, Cache, CacheClasses, CacheDescriptor, Mfs, MfsOptions, Mvff, MvffOptions, Mvt,
    MvtOptions, Snc, SncOptions, Store, UnitOf,
};

use crate::case::{Act, Case, Group, all, discard, forever};
use crate::cases::arenas::{Order, arena};

thread_local! {
    static TURNS: Cell<u64> = const { Cell::new(0) };
}

/// Does it often before it is steady, so that what it needs is there.
fn warm(mut act: Act) -> Act {
    for _ in 0..10_000 {
        act();
    }
    act
}

/// All of them, in one turn.
pub(crate) fn together() -> Act {
    all(GROUP.cases.iter().map(|case| (case.prepare)()).collect())
}

/// Numbers that were written to, and stay.
fn numbers(count: usize) -> &'static mut [u64] {
    vec![7; count].leak()
}

pub(crate) const GROUP: Group = Group {
    name: "controls",
    cases: &[
        Case::new("arithmetic", 0, || {
            let mut sum = 7_u64;
            warm(Box::new(move || sum = black_box(sum.wrapping_mul(31) ^ sum >> 7)))
        }),
        Case::new("arithmetic of floats", 0, || {
            let mut sum = 7_f64;
            warm(Box::new(move || sum = black_box((sum * 1.5 + 2.0).sqrt())))
        }),
        Case::new("memory is copied that was touched before", 0, || {
            let (from, to) = (numbers(32), numbers(32));
            warm(Box::new(move || black_box(&mut *to).copy_from_slice(black_box(from))))
        }),
        Case::new("a Mutex that no thread holds", 0, || {
            let lock = forever(Mutex::new(7_u64));
            warm(Box::new(|| *lock.lock().expect("no thread panics") += 1))
        }),
        Case::new("an RwLock that no thread holds", 0, || {
            let lock = forever(RwLock::new(7_u64));
            warm(Box::new(|| discard(*lock.read().expect("no thread panics"))))
        }),
        Case::new("an atomic", 0, || {
            let count = forever(AtomicU64::new(0));
            warm(Box::new(|| discard(count.fetch_add(1, SeqCst))))
        }),
        Case::new("the clock, without a system call", 0, || warm(Box::new(|| discard(Instant::now())))),
        Case::new("a thread-local", 0, || warm(Box::new(|| TURNS.with(|turns| turns.set(turns.get() + 1))))),
        Case::new("a vector is pushed within its capacity", 0, || {
            let mut orders: Vec<u64> = vec![7; 64];
            warm(Box::new(move || {
                orders.clear();
                orders.extend_from_slice(black_box(&[7; 64]));
            }))
        }),
        Case::new("a string is formatted within its capacity", 0, || {
            let mut text = String::with_capacity(64);
            warm(Box::new(move || {
                text.clear();
                let _ = write!(text, "order {}", black_box(7));
            }))
        }),
        Case::new("a hash map is written to within its capacity", 0, || {
            let mut map: HashMap<u64, u64> = (0..100).map(|key| (key, key)).collect();
            let mut turn = 0_u64;
            warm(Box::new(move || {
                turn += 1;
                let key = turn % 100;
                let order = map.remove(&key);
                map.insert(key, order.unwrap_or_default() + 1);
            }))
        }),
        Case::new("a slice is sorted in its place", 0, || {
            let numbers = numbers(8);
            let mut turn = 0_u64;
            warm(Box::new(move || {
                turn = turn.wrapping_mul(6_364_136_223_846_793_005) + 1;
                numbers[turn as usize >> 7 & 7] = turn;
                numbers.sort_unstable();
            }))
        }),
        Case::new("an empty channel is asked", 0, || {
            let (sender, receiver) = mpsc::sync_channel::<u64>(4);
            forever(sender);
            warm(Box::new(move || discard(receiver.try_recv())))
        }),
        Case::new("a message is sent and received within the channel's bound", 0, || {
            let (sender, receiver) = mpsc::sync_channel::<u64>(4);
            warm(Box::new(move || {
                let _ = sender.try_send(7);
                discard(receiver.try_recv());
            }))
        }),
        Case::new("a panic could be caught, and there is none", 0, || {
            warm(Box::new(|| discard(catch_unwind(|| black_box(7)))))
        }),
        Case::new("a point reserves and commits, on a frozen arena", 0, || {
            let arena = arena();
            let pool = forever(Mvt::create(arena, MvtOptions::default()).expect("the arena has room"));
            let mut point = AllocationPoint::create(pool).expect("the arena has room");
            let act = warm(Box::new(move || {
                let Ok(reservation) = point.reserve(Layout::new::<Order>()) else {
                    panic!("the pool is warm")
                };
                // SAFETY: the reservation is valid for writes of this layout.
                unsafe { reservation.as_ptr().cast::<Order>().write([7; 4]) };
                // SAFETY: the object was just written whole.
                if let Ok(object) = unsafe { reservation.commit() } {
                    // SAFETY: an object of the pool with this layout, freed once.
                    unsafe { point.pool().free(object, Layout::new::<Order>()) };
                }
            }));
            arena.freeze();
            act
        }),
        Case::new("a scope of a point, on a frozen arena", 0, || {
            let arena = arena();
            let pool = forever(Snc::create(arena, SncOptions::default()).expect("the arena has room"));
            let mut point = AllocationPoint::create(pool).expect("the arena has room");
            let act = warm(Box::new(move || {
                point.scope(|scope| discard(scope.slice(16, |index| index as u64).map(|slice| slice.len())));
            }));
            arena.freeze();
            act
        }),
        Case::new("units of a cache, on a frozen arena", 0, || {
            let arena = arena();
            let pool = forever(
                Mfs::create(arena, UnitOf::<Order>::new(), MfsOptions::default())
                    .expect("the arena has room"),
            );
            let cache = pool.cache();
            let act = warm(Box::new(move || discard(cache.boxed([7; 4]).expect("the pool is warm"))));
            arena.freeze();
            act
        }),
        Case::new("objects of a cache, on a frozen arena", 0, || {
            let arena = arena();
            let pool = forever(Mvff::create(arena, MvffOptions::default()).expect("the arena has room"));
            let classes = CacheClasses::geometric(512, 8).expect("classes that caches may have");
            let cache =
                Cache::create(pool, forever(CacheDescriptor::new(classes))).expect("the arena has room");
            let act = warm(Box::new(move || discard(cache.boxed([7_u64; 3]).expect("the pool is warm"))));
            arena.freeze();
            act
        }),
    ],
};
