//! The pool of the process, as libraries use it.

use core::alloc::Layout;
use std::thread;

use allocator_api2::alloc::Allocator;
use allocator_api2::boxed::Box as BoxIn;
use allocator_api2::vec::Vec as VecIn;
use tripoint_adaptors::{ProcessPool, TypedArena};
use tripoint_core::{Check, CheckLevel, PoolBox, PoolClass, Store};

/// A list of a library: no lifetime, no pool in its type.
#[derive(Default)]
struct List {
    first: Option<BoxIn<Node, ProcessPool>>,
}

struct Node {
    value: String,
    next: Option<BoxIn<Node, ProcessPool>>,
}

impl List {
    fn push(&mut self, value: String) {
        let next = self.first.take();
        self.first = Some(BoxIn::new_in(Node { value, next }, ProcessPool));
    }

    fn pop(&mut self) -> Option<String> {
        let Node { value, next } = BoxIn::into_inner(self.first.take()?);
        self.first = next;
        Some(value)
    }
}

/// (design/adaptors.md `.req.library`)
#[test]
fn many_small_containers_share_the_pool() {
    assert_eq!(size_of::<List>(), size_of::<usize>());
    const COUNT: usize = if cfg!(miri) { 20 } else { 2000 };
    let mut lists: Vec<_> = (0..COUNT).map(|_| List::default()).collect();
    for round in 0..8 {
        lists.iter_mut().enumerate().for_each(|(index, list)| list.push(format!("{index} {round}")));
    }
    let sizes = ProcessPool::pool().unwrap().sizes();
    let used = sizes.total - sizes.free;
    assert!(used < COUNT * 8 * 64 + (4 << 20), "{used} bytes");
    // They are dropped by other threads, some only in part.
    let lists = thread::spawn(move || {
        for (index, list) in lists.iter_mut().enumerate() {
            assert_eq!(list.pop(), Some(format!("{index} 7")));
        }
        lists
    })
    .join()
    .unwrap();
    drop(lists);
    ProcessPool::flush_caches();
    ProcessPool::pool().unwrap().check(CheckLevel::Deep).unwrap();
}

#[test]
fn collections_and_boxes_of_both_kinds_live_in_it() {
    let mut map = hashbrown::HashMap::<_, _, hashbrown::DefaultHashBuilder, _>::new_in(ProcessPool);
    let mut list = VecIn::new_in(ProcessPool);
    for number in 0..if cfg!(miri) { 50 } else { 1000 } {
        map.insert(number, number.to_string());
        list.push(number);
    }
    list.shrink_to_fit();
    assert!(list.iter().all(|number| map[number] == number.to_string()));
    static POOL: ProcessPool = ProcessPool;
    let boxed: PoolBox<'static, _, _> = PoolBox::new_in([7_u8; 30], &POOL).unwrap();
    assert_eq!(thread::spawn(move || boxed[29]).join().unwrap(), 7);
    let zeros = ProcessPool.allocate_zeroed(Layout::new::<[u64; 100]>()).unwrap();
    // SAFETY: a block of this size, all zero.
    assert!(unsafe { zeros.as_ref() }.iter().all(|byte| *byte == 0));
    // SAFETY: allocated with this layout.
    unsafe { ProcessPool.deallocate(zeros.cast(), Layout::new::<[u64; 100]>()) };
    let nothing = ProcessPool.alloc(Layout::new::<()>()).unwrap();
    // SAFETY: allocated with this layout.
    unsafe { ProcessPool.free(nothing, Layout::new::<()>()) };
}

#[test]
fn arenas_outlive_the_thread_that_made_them() {
    thread_local! {
        static LAST: TypedArena<String> = const { TypedArena::new() };
    }
    for _ in 0..3 {
        let arena = thread::spawn(|| {
            // Dropped when the thread ends, and so perhaps after its cache.
            LAST.with(|last| _ = last.alloc("last".to_owned()));
            let arena = TypedArena::new();
            arena.alloc("made there".to_owned());
            arena
        });
        assert_eq!(arena.join().unwrap().into_vec(), ["made there"]);
    }
}

/// Collections free and resize through a pointer that may have passed through a reference to the elements alone. Miri
/// reports it if the pool returns that pointer where the block is larger. (design/adaptors.md `.req.contract`)
#[test]
fn a_block_that_was_narrow_grows_to_its_whole_size() {
    let mut list = VecIn::with_capacity_in(100, ProcessPool);
    list.extend(0..97_u8);
    let mut list = list.into_boxed_slice().into_vec();
    list.reserve_exact(8);
    list.extend(0..8);
    assert_eq!((list.len(), list[96], list[104]), (105, 96, 7));
}

#[test]
fn odd_layouts_are_served_or_refused() {
    let layout = |size, align| Layout::from_size_align(size, align).unwrap();
    let largest = 1 << (usize::BITS - 1);
    Store::alloc(&ProcessPool, layout(0, largest)).unwrap_err();
    Store::alloc_zeroed(&ProcessPool, layout(0, largest)).unwrap_err();
    let nothing = Store::alloc(&ProcessPool, layout(0, 4096)).unwrap();
    assert_eq!(nothing.addr().get() % 4096, 0);
    // SAFETY: allocated with this layout; freed once.
    unsafe { Store::free(&ProcessPool, nothing, layout(0, 4096)) };
    let zeros = Store::alloc_zeroed(&ProcessPool, layout(3000, 1)).unwrap();
    // SAFETY: an object of that size, of zeros, freed once with its layout.
    unsafe {
        assert!(zeros.cast::<[u8; 3000]>().as_ref().iter().all(|&byte| byte == 0));
        Store::free(&ProcessPool, zeros, layout(3000, 1));
    }
}
