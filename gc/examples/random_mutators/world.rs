//! An arena, a heap and its mutators, which meet from time to time and compare all that there is.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Barrier;
use std::thread;

use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Futex, Membarrier, Native};
use tripoint_core::{Arena, BarrierPair, CheckLevel, ClientArena, ClientArenaOptions, SymmetricFence};
use tripoint_gc::{GENERATIONS, GenerationPolicy, Heap, HeapCounts, HeapOptions, Policy, Tag};
use tripoint_oracle::Random;

use crate::common::{Slots, Yield};
use crate::flaw::Flaw;
use crate::graph::{Done, Graph, Habits, Roots};
use crate::nodes::{Points, Pools, Shapes};
use crate::shadow::{SLOTS, Seen, WORDS};

/// How one run differs from others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    memory: Memory,
    shapes: Shapes,
    threads: usize,
    /// The operations of each thread between two meetings, and how many meetings there are.
    phase: usize,
    phases: usize,
    collects: usize,
    most: usize,
    policy: Policy,
    flaw: Option<Flaw>,
}

#[derive(Clone, Copy, Debug)]
enum Memory {
    /// A client arena of that many bytes.
    Client { size: usize, grain: usize },
    /// Virtual memory, of which so much may be committed, on a platform that fails on demand.
    Virtual { grain: usize, commit_limit: usize },
}

impl Config {
    pub(crate) fn draw(random: &mut Random, flaw: Option<Flaw>) -> Self {
        let mut among = |values: &[usize]| values[random.below(values.len())];
        let is_client = flaw.is_some() || among(&[0, 1]) == 0;
        let size = among(&[128 << 10, 160 << 10, 512 << 10, 2 << 20, 8 << 20]);
        let memory = if is_client {
            Memory::Client { size, grain: among(&[1 << 10, 4 << 10]) }
        } else {
            let commit_limit = among(&[usize::MAX, size + (1 << 20)]);
            Memory::Virtual { grain: among(&[4 << 10, 16 << 10, 64 << 10]), commit_limit }
        };
        let threads = if size < 512 << 10 { 1 } else { among(&[1, 2, 3, 4]) };
        let headers = [(); 5].map(|()| among(&[0, 0, 1, 3]));
        let segment_size = among(&[4 << 10, 4 << 10, 16 << 10, 64 << 10]).min(size >> 5);
        let (phase, phases) = (among(&[1 << 9, 1 << 11, 1 << 13]), 1 + among(&[1, 2, 6]));
        let collects = among(&[20, 200, 2000, 20_000]);
        // With the last the arena is full first.
        let most = (size / threads / among(&[800, 400, 50, 50])).min(among(&[100, 1000, 5000, 50_000]));
        let capacity = among(&[usize::MAX, 0, 2 << 10, 16 << 10, 256 << 10]);
        let patience = Duration::from_micros(among(&[0, 0, 1000]) as u64);
        let generation = GenerationPolicy { capacity, mortality: among(&[0, 300, 500, 800]) as u32 };
        let policy = Policy { generations: [generation; GENERATIONS], patience };
        let notes_writes = among(&[0, 1]) == 0 || flaw == Some(Flaw::Barrier);
        let shapes = Shapes { headers, segment_size, notes_writes };
        Self { memory, shapes, threads, phase, phases, collects, most, policy, flaw }
    }

    /// The operations of the run.
    pub(crate) const fn operations(&self) -> usize {
        self.phase * self.phases * self.threads
    }
}

/// What happened in a run, or in all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) seen: Seen,
    pub(crate) done: Done,
    pub(crate) meetings: usize,
    pub(crate) collections: u64,
    pub(crate) by_threshold: u64,
    pub(crate) by_refusal: u64,
    pub(crate) postponed: u64,
    pub(crate) pauses: u64,
    /// The bytes that a second collection freed, after the first.
    pub(crate) beyond_one: usize,
}

impl Totals {
    /// Each of them with its name.
    pub(crate) fn list(&self) -> [(&'static str, u64); 20] {
        let Self { seen, done, .. } = self;
        [
            ("nodes made", done.made as u64),
            ("nodes compared", seen.read as u64),
            ("nodes moved", seen.moved as u64),
            ("nodes that a word nailed", seen.nailed as u64),
            ("nodes freed", seen.freed as u64),
            ("weak references cleared", seen.cleared as u64),
            ("objects to be finalized", seen.finalizable as u64),
            ("objects that were taken", done.taken as u64),
            ("reservations held over a collection", done.held as u64),
            ("dependencies found stale", done.stale as u64),
            ("nodes refused", done.refused as u64),
            ("collections", self.collections),
            ("collections because one was due", self.by_threshold),
            ("collections because memory was refused", self.by_refusal),
            ("collections compared to the byte", (done.compared + self.meetings) as u64),
            ("collections of young generations followed", done.young as u64),
            ("meetings of all threads", self.meetings as u64),
            ("stops postponed", self.postponed),
            ("pauses of threads", self.pauses),
            ("bytes that a second collection freed", self.beyond_one as u64),
        ]
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.add_thread(other.seen, other.done);
        self.meetings += other.meetings;
        self.collections += other.collections;
        self.by_threshold += other.by_threshold;
        self.by_refusal += other.by_refusal;
        self.postponed += other.postponed;
        self.pauses += other.pauses;
        self.beyond_one += other.beyond_one;
    }

    fn add_thread(&mut self, seen: Seen, done: Done) {
        self.seen.read += seen.read;
        self.seen.moved += seen.moved;
        self.seen.nailed += seen.nailed;
        self.seen.freed += seen.freed;
        self.seen.cleared += seen.cleared;
        self.seen.finalizable += seen.finalizable;
        self.done.made += done.made;
        self.done.refused += done.refused;
        self.done.held += done.held;
        self.done.taken += done.taken;
        self.done.stale += done.stale;
        self.done.compared += done.compared;
        self.done.young += done.young;
    }

    fn add_heap(&mut self, counts: &HeapCounts) {
        self.collections += counts.collections.get();
        self.by_threshold += counts.by_threshold.get();
        self.by_refusal += counts.by_refusal.get();
        self.postponed += counts.postponed.get();
        self.pauses += counts.pauses.get();
    }
}

/// An arena that refuses memory now and then.
trait Moody: Arena {
    /// Changes what is refused from now on.
    fn turn(&self, random: &mut Random);

    /// Refuses nothing that it has.
    fn calm(&self) {
        self.thaw();
    }
}

impl Moody for &ClientArena<'_> {
    fn turn(&self, random: &mut Random) {
        if random.once_in(2) { self.freeze() } else { self.thaw() }
    }
}

impl Moody for &ArenaVm<Failing<Native>> {
    fn turn(&self, random: &mut Random) {
        match random.below(6) {
            0 => self.freeze(),
            1 => self.platform().fail(Call::Commit, 1 + random.below(8) as u32),
            2 => self.platform().fail_always(Call::Commit),
            3 => self.platform().fail(Call::Decommit, 1 + random.below(4) as u32),
            // A limit below what is in use is refused.
            4 => drop(self.set_commit_limit(self.sizes().committed + (random.below(64) << 10))),
            _ => self.calm(),
        }
    }

    fn calm(&self) {
        self.thaw();
        self.platform().heal();
        self.set_commit_limit(usize::MAX).unwrap();
    }
}

/// Runs what `config` says.
pub(crate) fn run(config: &Config, random: &mut Random) -> Totals {
    match config.memory {
        Memory::Client { size, grain } => {
            let mut memory = Box::new_uninit_slice(size);
            let options = ClientArenaOptions { grain: Some(grain), event_hook: None };
            let arena = ClientArena::create(&mut memory, options).unwrap();
            run_in(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }, config, random)
        }
        Memory::Virtual { grain, commit_limit } => {
            let options = ArenaVmOptions { grain, commit_limit, reserve: 64 << 20, ..Default::default() };
            let arena = ArenaVm::create_on(Failing::new(Native::default()), options).unwrap();
            match Membarrier::register() {
                Ok(barrier) if random.once_in(2) => {
                    run_in(&arena, HeapOptions { barrier, parking: Some(&Futex) }, config, random)
                }
                _ => run_in(
                    &arena,
                    HeapOptions { barrier: SymmetricFence, parking: Some(&Futex) },
                    config,
                    random,
                ),
            }
        }
    }
}

fn run_in<'r, A: Moody + Clone + Send + 'r, B: BarrierPair>(
    arena: A,
    options: HeapOptions<'r, B>,
    config: &Config,
    random: &mut Random,
) -> Totals {
    let heap = Heap::create(arena, options).unwrap();
    heap.set_policy(config.policy);
    let pools = Pools::create(&heap, config.shapes).unwrap();
    pools.amc.format().forgets.store(config.flaw == Some(Flaw::Mark), Ordering::Relaxed);
    pools.awl.format().forgets.store(config.flaw == Some(Flaw::Weak), Ordering::Relaxed);
    let world = World {
        heap: &heap,
        pools: &pools,
        config,
        barrier: Barrier::new(config.threads),
        bytes: AtomicUsize::new(0),
        objects: AtomicUsize::new(0),
        kept: [const { AtomicUsize::new(0) }; 2],
        beyond_one: AtomicUsize::new(0),
    };
    let mut totals = Totals::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..config.threads)
            .map(|thread| {
                let (world, random) = (&world, random.split());
                scope.spawn(move || world.mutate(thread == 0, random))
            })
            .collect();
        for thread in threads {
            let (seen, done) = thread.join().unwrap();
            totals.add_thread(seen, done);
        }
    });
    totals.beyond_one = world.beyond_one.into_inner();
    totals.meetings = config.phases + 1;
    totals.add_heap(heap.counts());
    assert_eq!(pools.total(), 0, "a segment without objects was not returned");
    totals
}

/// What the threads of a run share.
struct World<'a, 'm, A: Arena, B: BarrierPair> {
    heap: &'m Heap<'m, A, B>,
    pools: &'a Pools<'m, A, B>,
    config: &'a Config,
    barrier: Barrier,
    /// What is live, by the shadows of all threads.
    bytes: AtomicUsize,
    objects: AtomicUsize,
    /// What is kept, by the heap: bytes and objects.
    kept: [AtomicUsize; 2],
    beyond_one: AtomicUsize,
}

impl<'m, A: Moody + Clone + 'm, B: BarrierPair> World<'_, 'm, A, B> {
    /// One thread.
    fn mutate(&self, is_first: bool, mut random: Random) -> (Seen, Done) {
        let Config { threads, phase, phases, collects, most, flaw, .. } = *self.config;
        let habits = Habits { collects, most, is_alone: threads == 1, is_first, flaw };
        let mutator = self.heap.register().unwrap();
        let (roots, hidden) = (Roots::default(), Slots::<1>::default());
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _exact = unsafe { self.heap.root_table(roots.slots.base(), SLOTS, Tag::default()) }.unwrap();
        // SAFETY: the slots outlive the root, and only this thread uses them.
        let _weak = unsafe { self.heap.root_weak(roots.weak.base(), SLOTS, Tag::default()) }.unwrap();
        // SAFETY: the words outlive the root, and only this thread uses them.
        let _words = unsafe { self.heap.root_ambiguous(NonNull::from(&roots.words).cast(), WORDS) }.unwrap();
        // SAFETY: the slot outlives the root, and only this thread uses it.
        let _hidden = unsafe { self.heap.root_table(hidden.base(), 1, Tag::default()) }.unwrap();
        let points = Points::create(self.pools, &mutator);
        let mut graph = Graph::new(points, mutator, &roots, random.split(), habits);
        // From here on memory may be refused.
        self.barrier.wait();
        for _ in 0..phases {
            if flaw == Some(Flaw::Sweep) {
                hidden.set(0, roots.slots.get(0));
            }
            for _ in 0..phase {
                graph.operate();
                if is_first && random.once_in(500) {
                    self.heap.arena().turn(&mut random);
                }
            }
            self.meet(&mut graph, is_first);
        }
        graph.end();
        self.meet(&mut graph, is_first);
        (graph.seen(), graph.done)
    }

    /// Waits for all threads, and compares what the heap has with the shadows of all.
    fn meet(&self, graph: &mut Graph<'_, 'm, A, B>, is_first: bool) {
        if is_first {
            self.heap.arena().calm();
        }
        graph.empty();
        graph.mutator.away(|| {
            self.barrier.wait();
            if is_first {
                self.collect_twice();
            }
            self.barrier.wait();
        });
        graph.notice();
        let live = graph.shadow.live();
        self.bytes.fetch_add(live.bytes, Ordering::Relaxed);
        self.objects.fetch_add(live.objects, Ordering::Relaxed);
        self.barrier.wait();
        if is_first {
            let live = [self.bytes.swap(0, Ordering::Relaxed), self.objects.swap(0, Ordering::Relaxed)];
            let kept = [&self.kept[0], &self.kept[1]].map(|kept| kept.load(Ordering::Relaxed));
            assert_eq!(kept, live, "what is kept beyond two collections is reachable");
        }
    }

    fn collect_twice(&self) {
        let mut stopped = self.heap.stop(Duration::MAX).unwrap();
        stopped.collect();
        let second = stopped.collect();
        let all = stopped.census(&mut []).all;
        assert_eq!(all.bytes, second.kept, "what is kept is in objects, as no point has memory");
        self.kept[0].store(all.bytes, Ordering::Relaxed);
        self.kept[1].store(all.objects, Ordering::Relaxed);
        self.beyond_one.fetch_add(second.freed, Ordering::Relaxed);
        drop(stopped);
        assert_eq!(self.pools.check(), Ok(()));
        assert_eq!(self.heap.arena().check(CheckLevel::Deep), Ok(()));
    }
}
