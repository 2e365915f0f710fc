//! Programs that log all of their calls.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;
use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use tripoint::author::{Block, FramePool};
use tripoint::points::Frame;
use tripoint::{
    AllocationPoint, Arena, ArenaVm, ArenaVmOptions, BufferKind, ClientArena, ClientArenaOptions, ManualPool,
    Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, PoolBox, PoolClass, Snc, SncOptions, Store, Tlsf,
    TlsfOptions, UnitLayout, UnitOf,
};
use tripoint_gc::{Ams, Format, Heap, HeapOptions, MutatorBuffer, Scan, SweptOptions};
use tripoint_oracle::{Choices, Layouts, MANUAL, Menu, Operation, Random, STACKS};
use tripoint_telemetry::reader::Fields;
use tripoint_telemetry::{LogReader, LoggedPool, PointLog, PointLogger};

/// The classes of random runs.
pub(super) const CLASSES: [&str; 5] = ["MFS", "MVFF", "TLSF", "MVT", "SNC"];

/// A log, and the number of its events.
pub(super) struct Logged {
    pub(super) log: Vec<u8>,
    pub(super) events: u64,
}

impl Logged {
    /// The names of the kinds of its events.
    pub(super) fn kinds(&self) -> BTreeSet<&'static str> {
        let mut reader = LogReader::open(&*self.log).unwrap();
        core::iter::from_fn(|| reader.next_event().unwrap())
            .map(|event| event.fields.kind().unwrap().name())
            .collect()
    }

    /// The texts of calls on packets: their names, and those of errors.
    pub(super) fn texts(&self) -> BTreeSet<String> {
        let mut reader = LogReader::open(&*self.log).unwrap();
        core::iter::from_fn(|| reader.next_event().unwrap())
            .filter_map(|event| match event.fields {
                Fields::PacketCall { call, error, .. } => Some([call.to_string(), error.to_string()]),
                _ => None,
            })
            .flatten()
            .collect()
    }

    pub(super) fn kinds_include(&self, kinds: &[&str]) -> bool {
        let found = self.kinds();
        kinds.iter().all(|kind| found.contains(kind))
    }
}

/// How many steps a program makes.
#[derive(Clone, Copy)]
pub(super) struct Length(usize);

impl Length {
    pub(super) const SHORT: Self = Self(2_000);
    pub(super) const LONG: Self = Self(150_000);

    pub(super) const fn steps(self) -> usize {
        self.0
    }
}

pub(super) type Log = PointLog<Written>;
type Logger<'l> = PointLogger<fn() -> bool, &'l Log>;
type Pool<'l, P> = LoggedPool<P, fn() -> bool, &'l Log>;

fn always() -> bool {
    true
}

fn logger(log: &Log) -> Logger<'_> {
    PointLogger::new(always, log)
}

pub(super) fn point<'p, P: PoolClass>(pool: &'p P, log: &'p Log) -> AllocationPoint<'p, P, Logger<'p>> {
    AllocationPoint::create_with(pool, BufferKind::Mutator, logger(log)).unwrap()
}

pub(super) fn logged<P: ManualPool>(pool: P, log: &Log) -> Pool<'_, P> {
    LoggedPool::new(pool, always, log)
}

/// What a log has written, also while an arena has the log as its hook forever.
#[derive(Clone, Default)]
pub(super) struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes a log of what `program` does.
pub(super) fn logged_by(program: impl FnOnce(&'static Log)) -> Logged {
    let written = Written::default();
    let log: &'static Log = Box::leak(Box::new(PointLog::begin(written.clone()).unwrap()));
    program(log);
    let events = log.end().unwrap();
    Logged { log: core::mem::take(&mut *written.0.lock().unwrap()), events }
}

/// Runs a program in an arena of this many bytes, all of whose calls are logged.
pub(super) fn log_of(bytes: usize, program: impl FnOnce(&ClientArena<'_>, &Log)) -> Logged {
    logged_by(|log| run_in_arena(bytes, log, program))
}

pub(super) fn run_in_arena(bytes: usize, log: &Log, program: impl FnOnce(&ClientArena<'_>, &Log)) {
    let mut memory = Box::new_uninit_slice(bytes);
    let options = ClientArenaOptions { grain: Some(4096), event_hook: Some(log) };
    program(&ClientArena::create(&mut memory, options).unwrap(), log);
}

/// A log of one arena after another.
pub(super) fn two_arenas() -> Logged {
    logged_by(|log| (0..2).for_each(|_| run_in_arena(256 << 10, log, |_, _| ())))
}

#[expect(dead_code, reason = "an object of a certain size")]
struct Order {
    number: u64,
    price: u64,
    quantity: [u64; 3],
}

/// Orders come and go, in boxes of a point; levels of prices are lists that grow; and each message has a frame for what
/// lasts as long as it.
fn order_book_in<A: Arena>(arena: &A, log: &Log, seed: u64, Length(steps): Length) {
    let mut random = Random::new(seed);
    let orders = logged(Mfs::create(arena, UnitOf::<Order>::new(), MfsOptions::default()).unwrap(), log);
    let levels = logged(Mvff::create(arena, MvffOptions::default()).unwrap(), log);
    let scratch = Snc::create(arena, SncOptions { extend_by: 4096, ..SncOptions::default() }).unwrap();
    let (mut point, mut frames) = (point(&orders, log), point(&scratch, log));
    let (mut book, mut lists) = (Vec::new(), Vec::new());
    for number in 0..steps as u64 {
        frames.scope(|frame| {
            let length = 1 + random.below(40);
            let words = frame.slice(length, |index| index as u64).unwrap();
            frame.scope(|inner| _ = inner.alloc([words[0]; 9]).unwrap());
        });
        let order = Order { number, price: random.number(), quantity: [0; 3] };
        match random.below(8) {
            0..=3 if book.len() < 3000 => book.push(point.boxed(order).unwrap()),
            4 if !book.is_empty() => point.free_box(book.swap_remove(random.below(book.len()))),
            5 if !book.is_empty() => drop(book.swap_remove(random.below(book.len()))),
            6 => drop(point.reserve(Layout::new::<Order>()).unwrap()),
            _ if random.once_in(2) || lists.is_empty() => {
                let length = 1 + random.below(60);
                let layout = Layout::array::<u64>(length).unwrap();
                lists.push((levels.alloc(layout).unwrap(), layout));
            }
            _ => {
                let (list, layout) = lists.swap_remove(random.below(lists.len()));
                // SAFETY: allocated in this pool with this layout, freed once, and not used any more.
                unsafe { levels.free(list, layout) };
            }
        }
        if random.once_in(100) {
            point.tripper().trip();
        }
    }
    for (list, layout) in lists {
        // SAFETY: allocated in this pool with this layout, freed once, and not used any more.
        unsafe { levels.free(list, layout) };
    }
}

pub(super) fn order_book(seed: u64, length: Length) -> Logged {
    log_of(8 << 20, |arena, log| order_book_in(arena, log, seed, length))
}

/// The order book in an arena of the system's memory.
pub(super) fn order_book_of_the_system(seed: u64, length: Length) -> Logged {
    logged_by(|log| {
        let sizes = ArenaVmOptions { reserve: 1 << 30, commit_limit: 64 << 20, ..ArenaVmOptions::default() };
        let arena = ArenaVm::create(ArenaVmOptions { event_hook: Some(log), ..sizes }).unwrap();
        order_book_in(&arena, log, seed, length);
    })
}

/// Frames that were pushed while the point had no memory begin at one place, which is none.
pub(super) fn frames_without_memory() -> Logged {
    log_of(256 << 10, |arena, log| {
        let options = SncOptions { extend_by: 4096, fill_size: 4096 };
        let pool = Snc::create(arena, options).unwrap();
        let mut point = point(&pool, log);
        let mut pushed = || {
            let frame = point.push();
            // SAFETY: no collector reads the object.
            unsafe { point.reserve(Layout::new::<[u64; 300]>()).unwrap().commit() }.unwrap();
            point.empty();
            frame
        };
        let [_lowest, second, _highest] = [(); 3].map(|()| pushed());
        // SAFETY: of this point, no earlier one was popped, and nothing uses the objects.
        unsafe { point.pop(second) };
    })
}

/// The layouts of random runs.
const LAYOUTS: Layouts = Layouts::Below { size: 6000, align_log: 9, edges: &[4096, 16] };

const UNIT: Layout = match Layout::from_size_align(48, 16) {
    Ok(unit) => unit,
    Err(_) => panic!("a layout"),
};

/// Operations of the conformance suite on a pool of this class and on two points of it, in an arena that they use up.
pub(super) fn random_run(class: &str, seed: u64, Length(steps): Length) -> Logged {
    let mut random = Random::new(seed);
    let bytes: Vec<_> = (0..steps * 4).map(|_| random.number() as u8).collect();
    let mut choices = Choices::new(&bytes);
    log_of(256 << 10, |arena, log| match class {
        "MFS" => {
            let options = MfsOptions { extend_by: 8192, ..MfsOptions::default() };
            let pool = Mfs::create(arena, UnitLayout::new(UNIT).unwrap(), options).unwrap();
            let layouts = Layouts::OneOf(&[UNIT]);
            manual_run(&logged(pool, log), log, &mut choices, layouts);
        }
        "MVFF" => {
            let options = MvffOptions { extend_by: 4096, fill_size: 4096, ..MvffOptions::default() };
            manual_run(&logged(Mvff::create(arena, options).unwrap(), log), log, &mut choices, LAYOUTS);
        }
        "TLSF" => {
            let options = TlsfOptions { fill_size: 2048, spare: 8192, ..TlsfOptions::default() };
            manual_run(&logged(Tlsf::create(arena, options).unwrap(), log), log, &mut choices, LAYOUTS);
        }
        "MVT" => {
            let options = MvtOptions { mean_size: 100, max_size: 4096, ..MvtOptions::default() };
            manual_run(&logged(Mvt::create(arena, options).unwrap(), log), log, &mut choices, LAYOUTS);
        }
        _ => {
            let options = SncOptions { extend_by: 4096, fill_size: 8192 };
            stack_run(&Snc::create(arena, options).unwrap(), log, &mut choices);
        }
    })
}

fn manual_run<P: ManualPool>(pool: &P, log: &Log, choices: &mut Choices<'_>, layouts: Layouts) {
    let mut points = [point(pool, log), point(pool, log)];
    let mut live = Vec::<(NonNull<u8>, Layout)>::new();
    let menu = Menu { kinds: MANUAL, layouts };
    while let Some(operation) = menu.draw(choices) {
        match operation {
            Operation::Alloc(layout) => live.extend(pool.alloc(layout).ok().map(|object| (object, layout))),
            Operation::Free(which) | Operation::FreeMany { object: which, .. } if !live.is_empty() => {
                let (object, layout) = live.swap_remove(which % live.len());
                if which % 3 == 0 {
                    // SAFETY: of this pool, with this layout, freed once, and not used any more.
                    unsafe { points[which % 2].free(object, layout) };
                } else {
                    // SAFETY: of this pool, with this layout, freed once, and not used any more.
                    unsafe { pool.free(object, layout) };
                }
            }
            Operation::Resize { object, size } if !live.is_empty() => {
                let index = object % live.len();
                let (object, from) = live[index];
                let Ok(to) = Layout::from_size_align(size, from.align()) else { continue };
                // SAFETY: of this pool, with this layout, and not freed.
                if let Some(resized) = unsafe { pool.resize(object, from, to) } {
                    live[index] = (resized, to);
                }
            }
            Operation::Reserve { point, layout, commit, between } => {
                let point = &mut points[point];
                let tripper = point.tripper();
                if let Ok(reservation) = point.reserve(layout) {
                    (0..between.trips).for_each(|_| tripper.trip());
                    if commit {
                        // SAFETY: no collector reads the object.
                        live.push((unsafe { reservation.commit() }.unwrap(), layout));
                    }
                }
            }
            Operation::Batch { point, capacity, pushed, commit, .. } => {
                let Ok(mut batch) = points[point].batch::<[u64; 6]>(capacity) else { continue };
                while batch.len() < pushed && batch.push([0; 6]).is_ok() {}
                if commit && !batch.is_empty() {
                    let layout = Layout::array::<[u64; 6]>(batch.len()).unwrap();
                    live.push((PoolBox::into_raw(batch.commit_boxed()).cast(), layout));
                }
            }
            Operation::EmptyPoint(which) => points[which % 2].empty(),
            Operation::Trip(which) => points[which % 2].tripper().trip(),
            _ => {}
        }
    }
    for (object, layout) in live {
        // SAFETY: of this pool, with this layout, freed once, and not used any more.
        unsafe { pool.free(object, layout) };
    }
}

fn stack_run<P: FramePool>(pool: &P, log: &Log, choices: &mut Choices<'_>) {
    let mut points = [point(pool, log), point(pool, log)];
    let mut frames: [Vec<Frame>; 2] = [Vec::new(), Vec::new()];
    let menu = Menu { kinds: STACKS, layouts: LAYOUTS };
    while let Some(operation) = menu.draw(choices) {
        match operation {
            Operation::Reserve { point, layout, commit, .. } => {
                if let Ok(reservation) = points[point].reserve(layout)
                    && commit
                {
                    // SAFETY: no collector reads the object.
                    _ = unsafe { reservation.commit() };
                }
            }
            Operation::Batch { point, capacity, pushed, .. } => {
                let Ok(mut batch) = points[point].batch::<[u64; 6]>(capacity) else { continue };
                while batch.len() < pushed && batch.push([0; 6]).is_ok() {}
                // SAFETY: no collector reads the objects.
                _ = unsafe { batch.commit_raw() };
            }
            Operation::Push(which) => frames[which % 2].push(points[which % 2].push()),
            Operation::Pop { point, frame } => {
                let (point, frames) = (&mut points[point % 2], &mut frames[point % 2]);
                let Some(at) = frame.checked_rem(frames.len()) else { continue };
                let Some(frame) = frames.drain(at..).next() else { continue };
                // SAFETY: of this point, no earlier one was popped since, and nothing uses the objects.
                unsafe { point.pop(frame) };
            }
            Operation::EmptyPoint(which) => points[which % 2].empty(),
            Operation::Trip(which) => points[which % 2].tripper().trip(),
            _ => {}
        }
    }
}

/// Four threads with a point each pass boxes on to one another, trip each other's points, and make points while others
/// allocate.
pub(super) fn threads(seed: u64, Length(steps): Length) -> Logged {
    const THREADS: usize = 4;
    log_of(16 << 20, |arena, log| {
        let options = MvffOptions { extend_by: 16 << 10, fill_size: 4096, ..MvffOptions::default() };
        let pool = logged(Mvff::create(arena, options).unwrap(), log);
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..THREADS).map(|_| mpsc::channel::<PoolBox<'_, [u64], _>>()).unzip();
        let trippers = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for (thread, received) in receivers.into_iter().enumerate() {
                let (next, pool, trippers) = (senders[(thread + 1) % THREADS].clone(), &pool, &trippers);
                let mut random = Random::new(seed + thread as u64);
                scope.spawn(move || {
                    let mut own = point(pool, log);
                    trippers.lock().unwrap().push(own.tripper());
                    for step in 0..steps / THREADS {
                        let length = 1 + random.below(60);
                        let boxed = own.boxed_slice_of(length);
                        // Its receiver may be over.
                        _ = next.send(boxed);
                        if let Ok(object) = received.try_recv() {
                            if random.once_in(2) { drop(object) } else { own.free_box(object) }
                        }
                        if random.once_in(50) {
                            let trippers = trippers.lock().unwrap();
                            trippers[random.below(trippers.len())].trip();
                        }
                        if step % 97 == 0 {
                            drop(point(pool, log));
                        }
                    }
                });
            }
            drop(senders);
        });
        drop(trippers);
    })
}

/// A slice in a box.
trait BoxedSlice<'p, P: ManualPool> {
    fn boxed_slice_of(&mut self, length: usize) -> PoolBox<'p, [u64], P>;
}

impl<'p, P: ManualPool> BoxedSlice<'p, P> for AllocationPoint<'p, P, Logger<'p>> {
    fn boxed_slice_of(&mut self, length: usize) -> PoolBox<'p, [u64], P> {
        let mut batch = self.batch::<u64>(length).unwrap();
        while batch.push(0).is_ok() {}
        batch.commit_boxed()
    }
}

/// Objects without references.
struct Granules;

const GRANULE: usize = 16;

// SAFETY: every granule is an object, and none has references.
unsafe impl Format for Granules {
    unsafe fn skip(&self, _object: NonNull<u8>) -> usize {
        GRANULE
    }

    unsafe fn scan(&self, _objects: Block, _scan: &mut Scan<'_>) {}
}

/// Two mutators allocate in one pool of a heap, which has memory for all of it.
pub(super) fn mutators(steps: usize) -> Logged {
    log_of(16 << 20, |arena, log| {
        let heap = Heap::create(arena, HeapOptions::default()).unwrap();
        let _parked = heap.park();
        let pool: Ams<'_, _, _, Granules> = Ams::create(&heap, Granules, SweptOptions::default()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mutator = heap.register().unwrap();
                    // SAFETY: this thread has the mutator, and uses the point while the mutator is running.
                    let attend = |buffer: &MutatorBuffer| unsafe { buffer.attend(&mutator) };
                    let made = AllocationPoint::create_in(&pool, BufferKind::Mutator, logger(log), attend);
                    let mut point = made.unwrap();
                    for _ in 0..steps {
                        let objects = point.reserve(Layout::new::<[u8; 64 * GRANULE]>()).unwrap();
                        // SAFETY: objects of this format may have any contents.
                        unsafe { objects.commit() }.unwrap();
                    }
                });
            }
        });
    })
}

/// Two mutators allocate in one pool of a heap that has roots and frozen segments. Each collects now and then, at once or a step
/// further, also between a reserve and its commit, which fails then.
pub(super) fn collected(steps: usize) -> Logged {
    const FROZEN: usize = 4096;
    let mut words = vec![0_usize; 16];
    let mut memory = vec![0_u64; FROZEN / size_of::<u64>()];
    let words = NonNull::from(words.as_mut_slice()).cast::<usize>();
    let base = NonNull::from(memory.as_mut_slice()).cast::<u8>();
    log_of(16 << 20, |arena, log| {
        let heap = Heap::create(arena, HeapOptions::default()).unwrap();
        // SAFETY: the words outlive the root, and no thread writes them.
        let root = unsafe { heap.root_ambiguous(words, 16) }.unwrap();
        // SAFETY: the memory is that of a vector, which has that many bytes.
        let block = unsafe { Block::new(base, FROZEN) };
        // SAFETY: the memory outlives the segment, does not change, and has no references.
        let mut frozen = unsafe { heap.register_frozen(block, 64..1024) }.unwrap();
        // SAFETY: the memory outlives the call, does not change, and has no references.
        assert!(unsafe { heap.register_frozen(block, 64..1024) }.is_err(), "it is one already");
        // SAFETY: whole objects of this format lie up to there, and have no references.
        unsafe { frozen.update(2048) }.unwrap();
        let pool: Ams<'_, _, _, Granules> = Ams::create(&heap, Granules, SweptOptions::default()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut mutator = heap.register().unwrap();
                    // SAFETY: this thread has the mutator, and uses the point while the mutator is running.
                    let attend = |buffer: &MutatorBuffer| unsafe { buffer.attend(&mutator) };
                    let made = AllocationPoint::create_in(&pool, BufferKind::Mutator, logger(log), attend);
                    let mut point = made.unwrap();
                    for step in 1..=steps {
                        let objects = point.reserve(Layout::new::<[u8; 20 * GRANULE]>()).unwrap();
                        let collects = step % 50 == 0;
                        if collects {
                            mutator.collect(Duration::MAX).unwrap();
                        } else if step % 50 == 25 {
                            mutator.step(Duration::MAX, || false).unwrap();
                        } else if step % 5 == 0 {
                            mutator.poll();
                        }
                        // SAFETY: objects of this format may have any contents.
                        let stands = unsafe { objects.commit() }.is_ok();
                        assert!(!(stands && collects), "a flip came between the reserve and the commit");
                    }
                });
            }
        });
        drop((frozen, root));
    })
}

/// A log that begins after its arena was created.
pub(super) fn without_the_arena() -> Logged {
    logged_by(|log| {
        let mut memory = Box::new_uninit_slice(64 << 10);
        let arena = ClientArena::create(&mut memory, ClientArenaOptions::default()).unwrap();
        let pool = Mvff::create(&arena, MvffOptions::default()).unwrap();
        drop(point(&pool, log).alloc(1_u64));
    })
}

/// A log of a program that has one point without a logger.
pub(super) fn with_an_unlogged_point() -> Logged {
    log_of(256 << 10, |arena, log| {
        let pool = logged(Mvff::create(arena, MvffOptions::default()).unwrap(), log);
        let (mut first, mut second) = (point(&pool, log), AllocationPoint::create(&pool).unwrap());
        first.alloc(1_u64).unwrap();
        second.alloc([0_u64; 300]).unwrap();
        first.alloc(2_u64).unwrap();
    })
}
