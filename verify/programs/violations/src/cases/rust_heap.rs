//! Collections, boxes and strings of Rust. The allocator of a program is glibc's, below each tool's own.

use core::cell::RefCell;
use core::error::Error;
use core::hint::black_box;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::CString;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, mpsc};

use crate::case::{C_HEAP, Case, Facts, Group, LIBRARY, RUST_HEAP, discard, forever, once};

const HEAP: Facts = RUST_HEAP | LIBRARY;

thread_local! {
    static LAZY: RefCell<Vec<u64>> = RefCell::new(vec![7; 16]);
}

static TABLE: LazyLock<Vec<u64>> = LazyLock::new(|| (0..100).collect());

pub(crate) const GROUP: Group = Group {
    name: "allocation in Rust",
    cases: &[
        Case::new("a vector is pushed over its capacity", HEAP, || {
            let mut numbers = vec![7_u64; 4];
            once(move || numbers.push(black_box(7)))
        }),
        Case::new("a vector is collected", HEAP, || {
            once(|| discard((0..black_box(100_u64)).collect::<Vec<_>>()))
        }),
        Case::new("a vector is cloned", HEAP, || {
            let numbers = forever(vec![7_u64; 4]);
            once(|| discard(numbers.clone()))
        }),
        Case::new("a vector of zeros is made", HEAP, || once(|| discard(vec![0_u8; black_box(1_000)]))),
        Case::new("a vector is shrunk to fit", HEAP, || {
            let mut numbers = Vec::<u64>::with_capacity(1_000);
            numbers.push(7);
            once(move || {
                numbers.shrink_to_fit();
                core::mem::forget(numbers);
            })
        }),
        Case::new("a box is made and dropped", HEAP, || once(|| discard(Box::new(black_box(7_u64))))),
        Case::new("a box is dropped", HEAP, || {
            let number = Box::new(7_u64);
            once(move || discard(number))
        }),
        Case::new("a closure is boxed", HEAP, || {
            let number = black_box(7_u64);
            once(move || discard(Box::new(move || number) as Box<dyn Fn() -> u64>))
        }),
        Case::new("an error is boxed", HEAP, || {
            once(|| discard::<Box<dyn Error>>(black_box("refused").into()))
        }),
        Case::new("a string is formatted", HEAP, || once(|| discard(format!("order {}", black_box(7))))),
        Case::new("a number becomes a string", HEAP, || once(|| discard(black_box(7_u64).to_string()))),
        Case::new("a string is pushed over its capacity", HEAP, || {
            let mut text = String::from("bid");
            once(move || text.push_str(black_box("and ask")))
        }),
        Case::new("a string for C is made", HEAP, || once(|| discard(CString::new(black_box("bid"))))),
        Case::new("two paths are joined", HEAP, || {
            once(|| discard(Path::new(black_box("/tmp")).join("orders")))
        }),
        Case::new("a variable of the environment is read", HEAP, || {
            once(|| discard(std::env::var(black_box("PATH"))))
        }),
        Case::new("a hash map grows", HEAP, || {
            let mut map: HashMap<u64, u64> = (0..3).map(|key| (key, key)).collect();
            once(move || map.extend((3..100).map(|key| (key, key))))
        }),
        Case::new("a tree takes its first key", HEAP, || {
            let mut tree = BTreeMap::new();
            once(move || discard(tree.insert(black_box(7_u64), 7_u64)))
        }),
        Case::new("a queue grows", HEAP, || {
            let mut queue = VecDeque::from([7_u64; 4]);
            once(move || queue.extend([7; 100]))
        }),
        Case::new("the last of an Arc is dropped", HEAP, || {
            let shared = Arc::new(7_u64);
            drop(Arc::clone(&shared));
            once(move || discard(shared))
        }),
        Case::new("a shared string is made", HEAP, || once(|| discard(Rc::<str>::from(black_box("bid"))))),
        Case::new("a large slice is sorted stably", HEAP, || {
            let numbers: &'static mut [u64] =
                (0..10_000_u64).map(|key| key.wrapping_mul(7_919) % 9_973).collect::<Vec<_>>().leak();
            once(move || numbers.sort())
        }),
        Case::new("a thread-local is made at its first use", HEAP, || {
            once(|| LAZY.with(|lazy| discard(lazy.borrow().len())))
        })
        .may(C_HEAP), // its destructor is registered
        Case::new("a static is made at its first use", HEAP, || once(|| discard(TABLE.len()))),
        Case::new("a channel without a bound takes its first message", HEAP, || {
            let (sender, receiver) = mpsc::channel();
            forever(receiver);
            once(move || {
                let _ = sender.send(black_box(7_u64));
                core::mem::forget(sender);
            })
        }),
        Case::new("a channel is made", HEAP, || once(|| discard(mpsc::sync_channel::<u64>(4)))),
    ],
};
