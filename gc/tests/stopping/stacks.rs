//! Stacks and registers as roots: what a thread has in its variables is kept, wherever it gives way.

use core::hint::black_box;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::thread;

use crate::common::{Point, TestHeap, TestMutator, WORD, make, name, point, pool, with_heap};
use tripoint_core::Error;
use tripoint_gc::Traced;

const ALL: Duration = Duration::MAX;

/// Calls `test` with a point of a mutator whose stack is a root from here on; not at all where registers
/// cannot be read.
fn with_stack(
    heap: &TestHeap<'_>,
    test: fn(&TestHeap<'_>, &mut TestMutator<'_>, &mut Point<'_, '_, Traced>),
) {
    let pool = pool::<Traced>(heap, 0);
    let mut mutator = heap.register().unwrap();
    let mut point = point(&pool, &mutator);
    let mut cold_end = 0_usize;
    // SAFETY: the mutator stays on this thread, and the root is dropped first, at the end of this function.
    match unsafe { heap.root_stack(&mutator, NonNull::from(&mut cold_end)) } {
        Ok(_root) => below(|| test(heap, &mut mutator, &mut point)),
        Err(error) => tripoint_oracle::skipped!("{error}"),
    }
}

/// A function of its own: its frame is below that of its caller.
#[inline(never)]
fn below<R>(call: impl FnOnce() -> R) -> R {
    let result = call();
    black_box(());
    result
}

/// Makes nodes that only an array in the caller's frame refers to.
#[inline(never)]
fn nodes(point: &mut Point<'_, '_, Traced>) -> [*mut u8; 8] {
    let nodes = core::array::from_fn(|index| make(point, index, &[]).unwrap());
    point.empty();
    nodes
}

fn check(nodes: &[*mut u8; 8]) {
    for (index, &node) in nodes.iter().enumerate() {
        // SAFETY: the node was kept; whether it was is what is tested.
        assert_eq!(unsafe { name(node) }, index);
    }
}

const SIZE: usize = 8 * 2 * WORD;

#[test]
fn variables_keep_objects_while_their_thread_collects() {
    with_heap(256 << 10, |heap| {
        with_stack(heap, |_, mutator, point| {
            let nodes = nodes(point);
            assert_eq!(mutator.collect(ALL).unwrap().kept, SIZE);
            let mut stopped = mutator.stop(ALL).unwrap();
            assert_eq!(below(|| stopped.collect().kept), SIZE);
            drop(stopped);
            check(black_box(&nodes));
        });
    });
}

#[test]
fn variables_keep_objects_while_their_thread_is_away() {
    with_heap(256 << 10, |heap| {
        with_stack(heap, |heap, mutator, point| {
            let nodes = nodes(point);
            let kept = mutator.away(|| {
                let from_other = || heap.collect(ALL).unwrap().kept;
                [
                    heap.collect(ALL).unwrap().kept,
                    thread::scope(|scope| scope.spawn(from_other).join().unwrap()),
                ]
            });
            assert_eq!(kept, [SIZE, SIZE]);
            check(black_box(&nodes));
        });
    });
}

/// Runs `work` again and again while another thread collects the heap a few times. `work` may collect as well, so what
/// ends it is the end of the other thread.
fn while_another_collects(heap: &TestHeap<'_>, mut work: impl FnMut()) {
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            for _ in 0..5 {
                heap.collect(ALL).unwrap();
            }
        });
        while !other.is_finished() {
            work();
            thread::yield_now();
        }
    });
}

#[test]
fn variables_keep_objects_while_their_thread_gives_way() {
    with_heap(256 << 10, |heap| {
        with_stack(heap, |heap, mutator, point| {
            let nodes = nodes(point);
            while_another_collects(heap, || mutator.poll());
            check(black_box(&nodes));
            // In the slow path of reserve.
            while_another_collects(heap, || {
                make(point, 100, &[ptr::null_mut()]).unwrap();
                point.empty();
            });
            check(black_box(&nodes));
            // And while it waits to collect the heap itself.
            while_another_collects(heap, || {
                assert!(mutator.collect(ALL).unwrap().kept >= SIZE);
            });
            check(black_box(&nodes));
        });
    });
}

/// Without a root for the stack, what variables refer to is freed.
#[test]
fn variables_of_a_stack_that_is_no_root_keep_nothing() {
    with_heap(256 << 10, |heap| {
        let pool = pool::<Traced>(heap, 0);
        let mut mutator = heap.register().unwrap();
        let mut point = point(&pool, &mutator);
        let nodes = nodes(&mut point);
        assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
        black_box(&nodes);
    });
}

#[test]
fn several_threads_have_stacks_of_their_own() {
    with_heap(1 << 20, |heap| {
        let done = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    with_stack(heap, |_, mutator, point| {
                        for _ in 0..20 {
                            let nodes = nodes(point);
                            mutator.poll();
                            let kept = mutator.collect(ALL).unwrap().kept;
                            assert!(kept >= SIZE, "{kept} bytes");
                            mutator.away(thread::yield_now);
                            check(black_box(&nodes));
                        }
                    });
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(done.load(Ordering::Relaxed), 3);
    });
}

#[test]
fn a_cold_end_that_cannot_be_one_is_refused() {
    with_heap(64 << 10, |heap| {
        let mutator = heap.register().unwrap();
        let mut words = [0_usize; 2];
        let refused = |cold_end: *mut usize| {
            // SAFETY: it is refused, because it is in no frame that is above this one, or not aligned.
            let root = unsafe { heap.root_stack(&mutator, NonNull::new(cold_end).unwrap()) };
            assert!(matches!(root.map(drop), Err(Error::Parameter(_))), "{cold_end:p}");
        };
        refused(ptr::without_provenance_mut(WORD));
        refused(words.as_mut_ptr().wrapping_byte_add(1));
    });
}

/// A heap knows where the stack of its own mutator ends, because it stops that.
#[test]
fn the_stack_of_a_mutator_of_another_heap_is_refused() {
    with_heap(64 << 10, |heap| {
        let mutator = heap.register().unwrap();
        let mut cold_end = 0_usize;
        let other = tripoint_gc::Heap::create(*heap.arena(), tripoint_gc::HeapOptions::default()).unwrap();
        // SAFETY: the mutator stays on this thread, and if there is a root it is dropped at once.
        let root = unsafe { other.root_stack(&mutator, NonNull::from(&mut cold_end)) };
        assert_eq!(
            root.map(drop),
            Err(Error::Parameter(
                "a stack is a root of the heap that its mutator is registered with: pass one of that"
            ))
        );
    });
}

/// The address of an object is in no memory, only in a register that calls preserve.
#[cfg(all(target_arch = "x86_64", unix, not(miri)))]
mod registers {
    use super::*;
    use core::arch::asm;

    const KEY: usize = usize::MAX / 3;

    /// The address of a new object, hidden.
    #[inline(never)]
    fn hidden(point: &mut Point<'_, '_, Traced>) -> usize {
        let node = make(point, 7, &[]).unwrap();
        point.empty();
        node.addr() ^ KEY
    }

    /// Overwrites what earlier calls have left on the stack.
    #[inline(never)]
    fn clear() {
        black_box(&mut [0_usize; 4096]);
    }

    struct Caller<'a, 'm>(&'a mut TestMutator<'m>, usize);

    extern "sysv64" fn collect(caller: &mut Caller<'_, '_>) {
        caller.1 = caller.0.collect(ALL).unwrap().kept;
    }

    /// Collects the heap while `hidden`, changed by `key`, is in a register, and returns what was kept.
    #[inline(never)]
    fn kept(mutator: &mut TestMutator<'_>, hidden: usize, key: usize) -> usize {
        let mut caller = Caller(mutator, 0);
        // SAFETY: this calls a function with the ABI that it has, with its argument, on an aligned stack. The register
        // that is changed is an operand.
        unsafe {
            asm!(
                "xor r12, r13",
                "xor r13d, r13d",
                "call {collect}",
                "xor r12d, r12d",
                collect = sym collect,
                in("rdi") &raw mut caller,
                inout("r12") hidden => _,
                inout("r13") key => _,
                clobber_abi("sysv64"),
            );
        }
        caller.1
    }

    #[test]
    fn a_register_keeps_an_object() {
        with_heap(64 << 10, |heap| {
            with_stack(heap, |_, mutator, point| {
                let hidden = hidden(point);
                clear();
                assert_eq!(kept(mutator, hidden, KEY), 2 * WORD);
                clear();
                assert_eq!(kept(mutator, hidden, 0), 0, "nothing else referred to it");
            });
        });
    }
}

#[test]
fn a_stack_is_a_root_until_it_is_dropped() {
    with_heap(64 << 10, |heap| {
        with_stack(heap, |_, _, point| {
            black_box(nodes(point));
        });
        let mut mutator = heap.register().unwrap();
        let mut cold_end = 0_usize;
        for _ in 0..2 {
            // SAFETY: the mutator stays on this thread, and the root is dropped at once.
            drop(unsafe { heap.root_stack(&mutator, NonNull::from(&mut cold_end)) });
        }
        assert_eq!(mutator.collect(ALL).unwrap().kept, 0);
    });
}
