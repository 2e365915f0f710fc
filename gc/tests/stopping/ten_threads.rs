//! Ten threads with a pool of each class (design/gc.md `.req.kept`, `.req.freed`, `.req.postpone`). Seven of them build and
//! collect. One runs and never gives way, one is away all the time, and one holds reservations while it is away.
//!
//! Threads wait for each other by messages. A thread that fails drops its ends of the channels, so that the others fail, too,
//! and none waits forever.

use core::ptr;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use crate::common::{Nodes, PointIn, Slots, Yield, grain, layout, make_with, name, point, reference, write};
use tripoint_core::{
    Arena, BarrierPair, CheckLevel, ClientArena, ClientArenaOptions, PoolClass, SymmetricFence,
};
use tripoint_gc::{
    Cause, Heap, HeapOptions, Leaf, Moved, Mutator, Policy, Postponed, Swept, SweptOptions, Tag, Traced,
    WeakSlots,
};

const ALL: Duration = Duration::MAX;
const WORKERS: usize = 7;
/// The lists that a worker builds in each part of the test, and their lengths.
const LISTS: usize = if cfg!(miri) { 2 } else { 16 };
const LENGTH: usize = if cfg!(miri) { 5 } else { 60 };

type Pool<'m, A, B, K> = Swept<'m, A, B, Nodes, K>;

/// A pool of each class.
struct Pools<'m, A: Arena, B: BarrierPair> {
    amc: Pool<'m, A, B, Moved>,
    ams: Pool<'m, A, B, Traced>,
    lo: Pool<'m, A, B, Leaf>,
    awl: Pool<'m, A, B, WeakSlots>,
}

impl<'m, A: Arena + Clone + 'm, B: BarrierPair> Pools<'m, A, B> {
    fn create(heap: &'m Heap<'m, A, B>) -> Self {
        let nodes = || Nodes::new(0);
        let options = SweptOptions { segment_size: 4 << 10 };
        Self {
            amc: Swept::create(heap, nodes(), options).unwrap(),
            ams: Swept::create(heap, nodes(), options).unwrap(),
            lo: Swept::create(heap, nodes(), options).unwrap(),
            awl: Swept::create(heap, nodes(), options).unwrap(),
        }
    }
}

/// The points of a thread in all pools, and a root.
struct Thread<'a, 'm, A: Arena, B: BarrierPair> {
    amc: PointIn<'a, 'm, A, B, Moved>,
    ams: PointIn<'a, 'm, A, B, Traced>,
    lo: PointIn<'a, 'm, A, B, Leaf>,
    awl: PointIn<'a, 'm, A, B, WeakSlots>,
    /// It is dropped after its points.
    mutator: Mutator<'m, A, B>,
    slots: &'a Slots<SLOTS>,
}

/// The first slot has a list, and the others what is being made.
const SLOTS: usize = 5;

/// The numbers of the references of a node of a list.
const NEXT: usize = 0;
const FIXED: usize = 1;
const LEAF: usize = 2;
const WEAK: usize = 3;

/// Runs `test` as a thread of the heap.
fn as_thread<'m, A: Arena + Clone + 'm, B: BarrierPair>(
    heap: &'m Heap<'m, A, B>,
    pools: &Pools<'m, A, B>,
    test: impl FnOnce(Thread<'_, 'm, A, B>),
) {
    let (slots, mutator) = (Slots::<SLOTS>::default(), heap.register().unwrap());
    // SAFETY: the slots outlive the root, and only this thread uses them.
    let _root = unsafe { heap.root_table(slots.base(), SLOTS, Tag::default()) }.unwrap();
    let (amc, ams) = (point(&pools.amc, &mutator), point(&pools.ams, &mutator));
    let (lo, awl) = (point(&pools.lo, &mutator), point(&pools.awl, &mutator));
    test(Thread { amc, ams, lo, awl, mutator, slots: &slots });
}

impl<A: Arena, B: BarrierPair> Thread<'_, '_, A, B> {
    /// Builds a list whose names begin with `first`, in place of the one before.
    fn build(&mut self, first: usize) {
        let slots = self.slots;
        slots.set(0, ptr::null_mut());
        for index in 0..LENGTH {
            let name = first + index;
            slots.set(1, make_with(&mut self.ams, name, 1, |_| slots.get(0)).unwrap());
            slots.set(2, make_with(&mut self.lo, name, 0, |_| ptr::null_mut()).unwrap());
            // What is kept by the list, and what nothing keeps.
            slots.set(3, make_with(&mut self.lo, name, 0, |_| ptr::null_mut()).unwrap());
            slots.set(4, make_with(&mut self.awl, name, 2, |index| slots.get(2 + index)).unwrap());
            let node = make_with(&mut self.amc, name, 4, |index| match index {
                NEXT => slots.get(0),
                FIXED => slots.get(1),
                LEAF => slots.get(2),
                _ => slots.get(4),
            });
            slots.set(0, node.unwrap());
            (1..SLOTS).for_each(|slot| slots.set(slot, ptr::null_mut()));
        }
    }

    /// Compares the list with what was built. If everything was collected since, no weak reference to a dead node is
    /// left, and if nothing was, all are.
    fn compare(&self, first: usize, collected: Option<bool>) {
        let mut node = self.slots.get(0);
        for index in (0..LENGTH).rev() {
            let expected = first + index;
            // SAFETY: the slot keeps the list, and each node of it a node of each pool; whether it does is what is
            // tested.
            unsafe {
                assert_eq!(name(node), expected, "a node was lost");
                let [next, fixed, leaf, weak] = [NEXT, FIXED, LEAF, WEAK].map(|index| reference(node, index));
                assert_eq!([fixed, leaf, weak].map(|node| name(node)), [expected; 3], "a node was lost");
                assert_eq!(reference(fixed, 0), next, "a reference was not changed as another was");
                assert_eq!(reference(weak, 0), leaf, "a weak reference to a node that is kept");
                let dead = reference(weak, 1);
                assert!(dead.is_null() || name(dead) == expected, "a weak reference to another node");
                assert!(collected.is_none_or(|collected| dead.is_null() == collected), "a weak reference");
                node = next;
            }
        }
        assert!(node.is_null());
    }
}

/// What a thread waits for, and by what it says that it is there.
struct Ends {
    go: Receiver<()>,
    here: Sender<u32>,
}

/// The other ends.
struct Side {
    go: Sender<()>,
    here: Receiver<u32>,
}

fn ends() -> (Side, Ends) {
    let ((go, told), (here, heard)) = (channel(), channel());
    (Side { go, here: heard }, Ends { go: told, here })
}

impl Ends {
    /// Says that this thread is here, and waits until the test goes on.
    fn meet(&self, number: u32) {
        self.here.send(number).unwrap();
        self.go.recv().unwrap();
    }
}

impl Side {
    fn wait(&self) -> u32 {
        self.here.recv().expect("a thread has failed")
    }

    fn go_on(&self) {
        self.go.send(()).unwrap();
    }
}

/// Builds lists in two parts: in the first, nothing can be collected. It is away while it waits.
fn work<A: Arena, B: BarrierPair>(mut thread: Thread<'_, '_, A, B>, number: usize, ends: &Ends) {
    let own = thread.mutator.number();
    let first = |list: usize| (number * 1000 + list) * 1000;
    for part in 0..2 {
        for list in 0..LISTS {
            thread.build(first(part * LISTS + list));
            if list % 4 == 0 {
                thread.mutator.poll();
            }
            if part == 1 && list % WORKERS == number {
                thread.mutator.collect(ALL).unwrap();
                thread.compare(first(part * LISTS + list), Some(true));
            }
            thread.compare(first(part * LISTS + list), (part == 0).then_some(false));
        }
        thread.mutator.away(|| ends.meet(own));
        let last = first(part * LISTS + LISTS - 1);
        thread.compare(last, (part == 1).then_some(true));
    }
    (0..SLOTS).for_each(|slot| thread.slots.set(slot, ptr::null_mut()));
}

/// Runs and does not give way, in the first part. In the second it is away.
fn never_poll<A: Arena, B: BarrierPair>(mut thread: Thread<'_, '_, A, B>, ends: &Ends) {
    thread.build(1);
    let own = thread.mutator.number();
    ends.meet(own);
    thread.compare(1, Some(false));
    thread.mutator.away(|| ends.meet(own));
    thread.compare(1, Some(true));
}

/// Is away all the time.
fn be_away<A: Arena, B: BarrierPair>(mut thread: Thread<'_, '_, A, B>, ends: &Ends) {
    thread.build(1);
    let own = thread.mutator.number();
    thread.mutator.away(|| ends.meet(own));
    thread.compare(1, Some(true));
}

/// Is away all the time with a reservation in each pool.
fn hold<A: Arena, B: BarrierPair>(thread: Thread<'_, '_, A, B>, ends: &Ends) {
    let Thread { mut amc, mut ams, mut lo, mut awl, mut mutator, slots } = thread;
    let before = make_with(&mut amc, 1, 0, |_| ptr::null_mut()).unwrap();
    slots.set(0, before);
    let held = (
        amc.reserve(layout(0, 0)).unwrap(),
        ams.reserve(layout(0, 0)).unwrap(),
        awl.reserve(layout(0, 0)).unwrap(),
        lo.reserve(layout(0, 0)).unwrap(),
    );
    for object in [held.0.as_ptr(), held.1.as_ptr(), held.2.as_ptr(), held.3.as_ptr()] {
        // SAFETY: a size and a name were reserved.
        unsafe { write(object.cast(), layout(0, 0).size(), 2, &[]) };
    }
    let own = mutator.number();
    mutator.away(|| ends.meet(own));
    // SAFETY: the slot keeps the node.
    assert_eq!(unsafe { name(slots.get(0)) }, 1);
    assert_ne!(slots.get(0), before, "the node in front of a reservation has moved");
    // SAFETY: each is a whole node.
    let exact = unsafe { [held.0.commit().is_err(), held.1.commit().is_err(), held.2.commit().is_err()] };
    assert_eq!(exact, [true; 3], "what may have references that no collection saw is not committed");
    // SAFETY: it is a whole node.
    let leaf = unsafe { held.3.commit() }.unwrap().as_ptr();
    // SAFETY: it was just committed.
    assert_eq!(unsafe { name(leaf) }, 2);
}

/// Runs the test in an arena. `patience` ends soon.
fn ten_threads<A: Arena + Clone + Send, B: BarrierPair>(
    arena: A,
    options: HeapOptions<'_, B>,
    patience: Duration,
    forgets: bool,
) {
    let heap = Heap::create(arena, options).unwrap();
    let policy = Policy { patience, ..Policy::with_capacity(8 << 10) };
    let patient = Policy { patience: ALL, ..policy };
    heap.set_policy(policy);
    let pools = Pools::create(&heap);
    pools.awl.format().forgets.store(forgets, Ordering::Relaxed);
    thread::scope(|scope| {
        let (heap, pools) = (&heap, &pools);
        let start = |run: fn(Thread<'_, '_, A, B>, &Ends)| {
            let (side, ends) = ends();
            scope.spawn(move || as_thread(heap, pools, |thread| run(thread, &ends)));
            side
        };
        let parked = heap.park();
        let (running, away, holding) = (start(never_poll), start(be_away), start(hold));
        let number = running.wait();
        away.wait();
        holding.wait();
        drop(parked);

        let workers = [0, 1, 2, 3, 4, 5, 6].map(|number| {
            let (side, ends) = ends();
            scope.spawn(move || as_thread(heap, pools, |thread| work(thread, number, &ends)));
            side
        });
        // In the first part they find collections due, which are postponed.
        workers.iter().for_each(|worker| _ = worker.wait());
        let counts = heap.counts();
        assert_eq!(counts.collections.get(), 0, "a mutator runs and does not give way");
        let postponed = counts.postponed.get();
        assert!(postponed > 0, "no collection was due");
        // Now all but one are away, so that it is known which is late.
        for _ in 0..3 {
            let found = heap.collect(patience);
            let Err(Postponed::Late(late)) = found else { panic!("{found:?}") };
            assert_eq!((late.number, late.seen_at.unwrap().file()), (number, file!()));
        }
        assert_eq!((counts.postponed.get(), counts.collections.get()), (postponed + 3, 0));

        running.go_on();
        assert_eq!(running.wait(), number, "it is away from here on");
        heap.set_policy(patient);
        workers.iter().for_each(Side::go_on);
        workers.iter().for_each(|worker| _ = worker.wait());
        assert_eq!(counts.postponed.get(), postponed + 3, "all give way");
        assert!(counts.collections.get() > counts.by_threshold.get(), "some were asked for");
        assert_eq!(heap.collect(ALL).unwrap().cause, Cause::Requested);
        workers.iter().chain([&running, &away, &holding]).for_each(Side::go_on);
    });
    assert_eq!(heap.collect(ALL).unwrap().kept, 0, "no root is left");
    let Pools { amc, ams, lo, awl } = &pools;
    let totals = [amc.header().total(), ams.header().total(), lo.header().total(), awl.header().total()];
    assert_eq!(totals, [0; 4], "all segments are returned");
    assert_eq!(heap.arena().check(CheckLevel::Deep), Ok(()));
}

fn in_a_client_arena(forgets: bool) {
    let mut memory = Box::new_uninit_slice(if cfg!(miri) { 1 << 20 } else { 8 << 20 });
    let options = ClientArenaOptions { grain: Some(grain(memory.len())), event_hook: None };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    // Each wait says that it took a nanosecond.
    let patience = Duration::from_nanos(if cfg!(miri) { 3 } else { 100 });
    ten_threads(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }, patience, forgets);
}

#[test]
fn ten_threads_in_a_client_arena() {
    in_a_client_arena(false);
}

/// The twin: weak references that are not passed on are not cleared.
#[test]
#[cfg_attr(miri, ignore = "a node that was freed is read, on purpose")]
#[should_panic(expected = "a thread has failed")]
fn a_format_that_forgets_weak_references_is_found() {
    in_a_client_arena(true);
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn ten_threads_in_virtual_memory() {
    use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Futex, Membarrier};

    let arena = ArenaVm::create(ArenaVmOptions { grain: 4 << 10, ..ArenaVmOptions::default() }).unwrap();
    let patience = Duration::from_micros(100);
    ten_threads(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Futex) }, patience, false);
    match Membarrier::register() {
        Ok(barrier) => ten_threads(&arena, HeapOptions { barrier, parking: Some(&Futex) }, patience, false),
        Err(error) => tripoint_oracle::skipped!("membarrier is refused here: {error}"),
    }
}
