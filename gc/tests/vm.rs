//! Collections over virtual memory, with waits in the kernel and barriers of `membarrier`.
#![cfg(all(target_os = "linux", not(miri)))]

mod common;

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::thread;

use common::{Nodes, layout, name, reference, write};
use tripoint_ap::AllocationPoint;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Futex, Membarrier};
use tripoint_core::{BarrierPair, BufferKind, Check, CheckLevel, PoolClass, SymmetricFence};
use tripoint_gc::{Ams, Heap, HeapOptions, SweptOptions, Tag};

/// Threads build lists, and each collects the heap of all after some of its lists.
fn build_and_collect<B: BarrierPair>(barrier: B) {
    const THREADS: usize = 3;
    const ROUNDS: usize = 24;
    const LENGTH: usize = 2000;
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let heap = Heap::create(&arena, HeapOptions { barrier, parking: &Futex }).unwrap();
    let nodes = Nodes { header: 0, forgets: AtomicBool::new(false) };
    let pool = Ams::create(&heap, nodes, SweptOptions::default()).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (heap, pool) = (&heap, &pool);
            scope.spawn(move || {
                let mut mutator = heap.register().unwrap();
                // SAFETY: this thread has both, and uses the point while the mutator is running.
                let adjust = |buffer: &tripoint_gc::MutatorBuffer| unsafe { buffer.attend(&mutator) };
                let mut point = AllocationPoint::create_in(pool, BufferKind::Mutator, (), adjust).unwrap();
                let slot = Cell::new(ptr::null_mut());
                // SAFETY: the slot outlives the root, and only this thread uses it while it runs.
                let _root =
                    unsafe { heap.root_table(NonNull::from(&slot).cast(), 1, Tag::default()) }.unwrap();
                for round in 0..ROUNDS {
                    slot.set(ptr::null_mut());
                    for index in 0..LENGTH {
                        let node = loop {
                            let reservation = point.reserve(layout(0, 1)).unwrap();
                            let node = reservation.as_ptr().cast();
                            // SAFETY: so many bytes were reserved.
                            unsafe { write(node, reservation.size(), thread + index, &[slot.get()]) };
                            // SAFETY: a whole node.
                            if let Ok(node) = unsafe { reservation.commit() } {
                                break node;
                            }
                        };
                        slot.set(node.as_ptr());
                    }
                    if round % THREADS == thread {
                        mutator.collect(Duration::MAX).unwrap();
                    } else {
                        mutator.away(thread::yield_now);
                    }
                    let mut node = slot.get();
                    for index in (0..LENGTH).rev() {
                        // SAFETY: the slot keeps all nodes of the list.
                        assert_eq!(unsafe { name(node) }, thread + index);
                        // SAFETY: the slot keeps all nodes of the list.
                        node = unsafe { reference(node, 0) };
                    }
                    assert!(node.is_null());
                }
            });
        }
    });
    assert_eq!(heap.counts().collections.get(), ROUNDS as u64);
    let found = heap.collect(Duration::MAX).unwrap();
    assert_eq!((found.kept, pool.header().total()), (0, 0));
    assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
}

#[test]
fn threads_collect_while_others_build() {
    build_and_collect(SymmetricFence);
    match Membarrier::register() {
        Ok(barrier) => build_and_collect(barrier),
        Err(error) => println!("membarrier is refused here: {error}"),
    }
}
