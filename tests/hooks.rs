//! An event hook may use a cache, which is no pool, in the middle of that cache's own
//! slow path: the cache keeps its count.
#![cfg(feature = "vm")]
#![forbid(unsafe_code)]

use core::cell::{Cell, RefCell};

use tripoint::author::CacheClass;
use tripoint::events::{Event, EventHook};
use tripoint::{
    ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Check, CheckLevel, Mvff, MvffOptions,
    PoolBox,
};

const SIZE: usize = 4096;
const COUNT: usize = 90;

type Pool = Mvff<&'static ArenaVm>;
type Objects = Cache<'static, Pool>;
type Object = PoolBox<'static, [u64; SIZE / 8], Objects>;

thread_local! {
    static CACHE: Cell<Option<&'static Objects>> = const { Cell::new(None) };
    static KEPT: RefCell<Vec<Object>> = const { RefCell::new(Vec::new()) };
}

/// Takes an object out of the cache at every event, while there is one.
struct Taker;

impl EventHook for Taker {
    fn event(&self, _: Event) {
        let Some(cache) = CACHE.get().filter(|cache| cache.descriptor().cached() >= SIZE) else { return };
        let object = cache.boxed([7; SIZE / 8]).unwrap();
        KEPT.with(|kept| kept.borrow_mut().push(object));
    }
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

#[test]
#[cfg_attr(miri, ignore = "a cache that lives for good is a leak; with -Zmiri-ignore-leaks it passes")]
fn a_hook_that_uses_the_cache_breaks_nothing() {
    let options = ArenaVmOptions { event_hook: Some(&Taker), grain: SIZE, ..ArenaVmOptions::default() };
    let arena = leak(ArenaVm::create(options).unwrap());
    // An event for each run of blocks that the cache returns.
    let options = MvffOptions { extend_by: SIZE, spare: 0, ..MvffOptions::default() };
    let pool: &Pool = leak(Mvff::create(arena, options).unwrap());
    let class = CacheClass { size: SIZE, count: COUNT };
    let descriptor = leak(CacheDescriptor::new(CacheClasses::new(&[class]).unwrap()));
    let cache = leak(Cache::create(pool, descriptor).unwrap());
    let first = cache.boxed([1; SIZE / 8]).unwrap();
    let objects: Vec<Object> = (0..=COUNT).map(|_| cache.boxed([3; SIZE / 8]).unwrap()).collect();
    CACHE.set(Some(cache));
    // The last ones find a class that is full.
    drop(objects);
    CACHE.set(None);
    assert!(KEPT.with(|kept| !kept.borrow().is_empty()), "the hook took something");
    cache.check(CheckLevel::Deep).unwrap();
    let all: Vec<Object> =
        (0..descriptor.cached() / SIZE).map(|_| cache.boxed([2; SIZE / 8]).unwrap()).collect();
    KEPT.with(|kept| assert!(kept.borrow().iter().all(|object| object[0] == 7)));
    assert!(all.iter().all(|object| object[SIZE / 8 - 1] == 2));
    assert_eq!(first[0], 1);
    KEPT.with(|kept| kept.borrow_mut().clear());
}
