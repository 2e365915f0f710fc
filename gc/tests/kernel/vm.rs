//! Collections over virtual memory, with waits in the kernel and barriers of `membarrier`.

use core::ptr;
use core::time::Duration;
use std::thread;

use crate::common::{Nodes, Slots, WORD, layout, name, reference, write};
use tripoint_ap::AllocationPoint;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Futex, Membarrier};
use tripoint_core::{BarrierPair, BufferKind, Check, CheckLevel, PoolClass, SymmetricFence};
use tripoint_gc::{
    Heap, HeapOptions, Kind, Leaf, Moved, MovedLeaf, Mutator, MutatorBuffer, Swept, SweptOptions, Tag,
    Traced, WeakSlots,
};

const THREADS: usize = 3;
const ROUNDS: usize = 12;
const LENGTH: usize = 1000;

type TestHeap<'m, B> = Heap<'m, &'m ArenaVm, B>;
type Pool<'m, B, K> = Swept<'m, &'m ArenaVm, B, Nodes, K>;
type Point<'p, 'm, B, K> = AllocationPoint<'p, Pool<'m, B, K>>;

fn pool<'m, B: BarrierPair, K: Kind<Nodes>>(heap: &'m TestHeap<'m, B>) -> Pool<'m, B, K> {
    let nodes = Nodes::new(0);
    Swept::create(heap, nodes, SweptOptions::default()).unwrap()
}

fn point<'p, 'm, B: BarrierPair, K: Kind<Nodes>>(
    pool: &'p Pool<'m, B, K>,
    mutator: &Mutator<'m, &'m ArenaVm, B>,
) -> Point<'p, 'm, B, K> {
    // SAFETY: each thread uses a point while its mutator is running, and drops it before that.
    let attend = |buffer: &MutatorBuffer| unsafe { buffer.attend(mutator) };
    AllocationPoint::create_in(pool, BufferKind::Mutator, (), attend).unwrap()
}

/// Allocates a node that refers to what some slots have when it is made: what it referred to before may have moved.
fn make<B: BarrierPair, K: Kind<Nodes>, const COUNT: usize>(
    point: &mut Point<'_, '_, B, K>,
    name: usize,
    slots: &Slots<4>,
    references: [usize; COUNT],
) -> *mut u8 {
    loop {
        let reservation = point.reserve(layout(0, COUNT)).unwrap();
        let node = reservation.as_ptr().cast();
        // SAFETY: that many bytes were reserved.
        unsafe { write(node, reservation.size(), name, &references.map(|slot| slots.get(slot))) };
        // SAFETY: a whole node.
        if let Ok(node) = unsafe { reservation.commit() } {
            return node.as_ptr();
        }
    }
}

/// What the slots of a thread have.
const LIST: usize = 0;
const LEAF: usize = 1;
const GARBAGE: usize = 2;
const WEAK: usize = 3;

/// The pools of a heap: lists, their leaves, and nodes with weak references.
struct Pools<'a, 'm, B: BarrierPair, K: Kind<Nodes>, L: Kind<Nodes>> {
    lists: &'a Pool<'m, B, K>,
    leaves: &'a Pool<'m, B, L>,
    weak: &'a Pool<'m, B, WeakSlots>,
}

impl<'m, B: BarrierPair, K: Kind<Nodes>, L: Kind<Nodes>> Pools<'_, 'm, B, K, L> {
    /// Builds lists of nodes with a leaf each, with weak references to the last node and to one that is garbage, and
    /// collects after some of them. Each list has to be as it was made.
    fn build_lists(&self, heap: &'m TestHeap<'m, B>, thread: usize) {
        let mut mutator = heap.register().unwrap();
        // They are dropped before the mutator.
        let (mut lists, mut leaves) = (point(self.lists, &mutator), point(self.leaves, &mutator));
        let mut weak = point(self.weak, &mutator);
        let slots = Slots::<4>::default();
        // SAFETY: the slots outlive the root, and only this thread uses them while it runs.
        let _root = unsafe { heap.root_table(slots.base(), 4, Tag::default()) }.unwrap();
        for round in 0..ROUNDS {
            slots.set(LIST, ptr::null_mut());
            for index in 0..LENGTH {
                slots.set(LEAF, make(&mut leaves, thread + index, &slots, []));
                slots.set(LIST, make(&mut lists, thread + index, &slots, [LIST, LEAF]));
            }
            slots.set(GARBAGE, make(&mut lists, 7, &slots, []));
            slots.set(WEAK, make(&mut weak, 8, &slots, [LIST, GARBAGE]));
            for slot in [GARBAGE, LEAF] {
                slots.set(slot, ptr::null_mut());
            }
            let collects = round % THREADS == thread;
            if collects {
                mutator.collect(Duration::MAX).unwrap();
            } else {
                mutator.away(thread::yield_now);
            }
            // SAFETY: the slot keeps the node, which has two references.
            let [to_list, to_garbage] = [0, 1].map(|index| unsafe { reference(slots.get(WEAK), index) });
            assert_eq!(to_list, slots.get(LIST), "a weak reference follows its node");
            assert!(!collects || to_garbage.is_null(), "a weak reference to a node that is free");
            let mut node = slots.get(LIST);
            for index in (0..LENGTH).rev() {
                // SAFETY: the slot keeps all nodes of the list, and their leaves.
                let (leaf, next) = unsafe { (reference(node, 1), reference(node, 0)) };
                // SAFETY: the slot keeps all nodes of the list, and their leaves.
                assert_eq!(unsafe { [name(node), name(leaf)] }, [thread + index; 2]);
                node = next;
            }
            assert!(node.is_null());
        }
    }
}

/// Threads build lists, and each collects the heap of all after some of its lists. Then all is freed.
fn build_and_collect<B: BarrierPair, K: Kind<Nodes>, L: Kind<Nodes>>(barrier: B) {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let heap = Heap::create(&arena, HeapOptions { barrier, parking: Some(&Futex) }).unwrap();
    let (lists, leaves, weak) = (pool::<B, K>(&heap), pool::<B, L>(&heap), pool::<B, WeakSlots>(&heap));
    let pools = Pools { lists: &lists, leaves: &leaves, weak: &weak };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pools, heap) = (&pools, &heap);
            scope.spawn(move || pools.build_lists(heap, thread));
        }
    });
    assert_eq!(heap.counts().collections.get(), ROUNDS as u64);
    let mut stopped = heap.stop(Duration::MAX).unwrap();
    let all = stopped.census(&mut []).all;
    let found = stopped.collect();
    assert!(all.objects > 0 && all.bytes >= all.objects * 2 * WORD);
    assert_eq!((found.kept, found.freed >= all.bytes), (0, true));
    assert_eq!(stopped.census(&mut []).all.objects, 0);
    drop(stopped);
    assert_eq!([lists.header().total(), leaves.header().total(), weak.header().total()], [0; 3]);
    assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
}

#[test]
fn threads_collect_while_others_build() {
    build_and_collect::<_, Traced, Leaf>(SymmetricFence);
    build_and_collect::<_, Moved, MovedLeaf>(SymmetricFence);
    match Membarrier::register() {
        Ok(barrier) => {
            build_and_collect::<_, Traced, MovedLeaf>(barrier);
            build_and_collect::<_, Moved, Leaf>(barrier);
        }
        Err(error) => println!("membarrier is refused here: {error}"),
    }
}
