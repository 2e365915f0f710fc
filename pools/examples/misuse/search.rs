//! A search for programs with one fault that harm other objects: random operations by all ways that a pool has, one fault, and
//! again random operations. It looks from outside: no two live objects overlap, no byte of a live object changes, and every call
//! returns and none panics (design/hardening.md `.search`).

use core::alloc::Layout;
use core::fmt;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::time::Duration;
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};

use tripoint_ap::AllocationPoint;
use tripoint_core::{Addr, Arena, ClientArena, ClientArenaOptions, Error, ManualPool};
use tripoint_pools::{
    Cache, CacheClasses, CacheDescriptor, Depot, Mfs, MfsOptions, Mvff, MvffOptions, Mvt, MvtOptions, Tlsf,
    TlsfOptions, UnitLayout,
};

#[path = "ways.rs"]
mod ways;

use ways::{Many, OfCache, OfDepot, OfPoint, OfPool, OfReturns, OfUnits, Way, trim};

/// The bytes of the arena, and of a grain.
const SIZE: usize = 256 << 10;
const GRAIN: usize = 4096;

/// The programs for each pair of ways in the table of two frees.
pub(crate) const PROGRAMS_OF_ROW: u64 = 20;

/// No call takes longer than this many seconds: one that does hangs.
const PATIENCE: u64 = 20;

/// A pool class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Mfs,
    Mvff,
    Mvt,
    Tlsf,
}

/// What is in front of the pool, besides magazines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// Nothing.
    Bare,
    /// Two caches.
    Caches,
    /// Two caches with a depot.
    Depot,
    /// A point, and for units also caches and returns.
    Points,
}

/// A class, and what is in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(pub(crate) Class, pub(crate) Front);

impl Kind {
    pub(crate) const ALL: [Self; 16] = {
        use Class::{Mfs, Mvff, Mvt, Tlsf};
        use Front::{Bare, Caches, Depot, Points};
        [
            Self(Mfs, Bare),
            Self(Mfs, Caches),
            Self(Mfs, Depot),
            Self(Mfs, Points),
            Self(Mvff, Bare),
            Self(Mvff, Caches),
            Self(Mvff, Depot),
            Self(Mvff, Points),
            Self(Mvt, Bare),
            Self(Mvt, Caches),
            Self(Mvt, Depot),
            Self(Mvt, Points),
            Self(Tlsf, Bare),
            Self(Tlsf, Caches),
            Self(Tlsf, Depot),
            Self(Tlsf, Points),
        ]
    };
}

impl Kind {
    /// Whether the fault harms no other object, by what is promised (design/hardening.md `.req.once`).
    pub(crate) fn promises(self, fault: Option<Fault>) -> bool {
        let divides_fills = self.0 != Class::Mfs && self.1 == Front::Points;
        let is_missed = match fault {
            Some(Fault::Interior) => true,
            Some(Fault::DoubleLater) => matches!(self.0, Class::Mvff | Class::Tlsf),
            _ => false,
        };
        !(divides_fills && is_missed)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let front = match self.1 {
            Front::Bare => "",
            Front::Caches => ", caches",
            Front::Depot => ", depot",
            Front::Points => ", points",
        };
        write!(f, "{:?}{front}", self.0)
    }
}

/// What is done wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Freed twice, by any two ways.
    Double,
    /// Freed twice, with other operations between, while the memory is not allocated again.
    DoubleLater,
    /// The first word is written over after the free.
    Word,
    /// A byte of it.
    Byte,
    /// All of it.
    All,
    /// Memory of no pool is freed.
    Foreign,
    /// A pointer into an object is freed.
    Interior,
    /// Memory of the pool is freed that was never allocated.
    NeverUsed,
}

impl Fault {
    pub(crate) const ALL: [Self; 8] = [
        Self::Double,
        Self::DoubleLater,
        Self::Word,
        Self::Byte,
        Self::All,
        Self::Foreign,
        Self::Interior,
        Self::NeverUsed,
    ];
}

/// What a program does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// So many random operations, and a fault at one of them.
    Fault(Option<Fault>, usize),
    /// Random operations, and an object that is freed by two ways, of these numbers. The next request has to be refused.
    Twice(usize, usize),
}

/// The outcome of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing harmed another object.
    Harmless {
        /// Whether a request was refused because of the fault.
        is_found: bool,
    },
    /// Memory in use was handed out.
    Overlap,
    /// The bytes of a live object changed.
    Changed,
    /// A call panicked.
    Panic,
}

/// A sequence of numbers that a seed determines.
struct Random(u64);

impl Random {
    /// The sequence of one program of a search.
    fn of(seed: u64, program: u64) -> Self {
        let mut random = Self(seed ^ program.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.below(1);
        random
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let mixed = self.0 ^ self.0 >> 29;
        (mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize % limit
    }
}

/// A live object.
#[derive(Clone, Copy)]
struct Live {
    object: NonNull<u8>,
    layout: Layout,
    /// Its first bytes that the program never wrote, and the byte that fills the others.
    blank: usize,
    byte: u8,
    /// Whether a point of a pool of variable size made it: caches do not take it.
    is_points: bool,
}

impl Live {
    fn is_unchanged(&self) -> bool {
        // SAFETY: the program's object, whose bytes it wrote from there on.
        (self.blank..self.layout.size()).all(|at| unsafe { self.object.add(at).read() } == self.byte)
    }
}

/// A program: its ways, and what is alive.
struct Program<'w, 's> {
    ways: &'w mut [Box<dyn Way + 's>],
    random: Random,
    layouts: Vec<Layout>,
    live: BTreeMap<usize, Live>,
    outcome: Outcome,
    /// Whether an address is in memory of the pool.
    owns: &'w dyn Fn(usize) -> bool,
    /// Address and size of what was ever allocated.
    used: BTreeMap<usize, usize>,
}

impl Program<'_, '_> {
    fn is_harmless(&self) -> bool {
        matches!(self.outcome, Outcome::Harmless { .. })
    }

    fn overlaps(&self, base: usize, size: usize) -> bool {
        let before = self.live.range(..base + size).next_back();
        before.is_some_and(|(&addr, live)| base < addr + live.layout.size())
    }

    fn alloc(&mut self) {
        let layout = self.layouts[self.random.below(self.layouts.len())];
        let way = self.random.below(self.ways.len());
        let is_points = self.ways[way].is_point();
        match self.ways[way].alloc(layout) {
            Ok(object) => {
                let base = object.addr().get();
                if self.overlaps(base, layout.size()) {
                    return self.outcome = Outcome::Overlap;
                }
                let byte = self.random.below(256) as u8;
                let blank = if self.random.below(4) == 0 { layout.size() } else { 0 };
                // SAFETY: allocated just now, of this size.
                unsafe { object.add(blank).write_bytes(byte, layout.size() - blank) };
                self.used.insert(base, layout.size());
                self.live.insert(base, Live { object, layout, blank, byte, is_points });
            }
            Err(Error::Damaged) => self.outcome = Outcome::Harmless { is_found: true },
            Err(_) => {}
        }
    }

    fn any(&mut self) -> Option<Live> {
        let count = self.live.len();
        if count == 0 {
            return None;
        }
        let which = self.random.below(count);
        self.live.values().nth(which).copied()
    }

    /// A way that may free an object.
    fn way_for(&mut self, is_points: bool) -> usize {
        loop {
            let way = self.random.below(self.ways.len());
            let is_pools = matches!(self.ways[way].name(), "pool" | "many" | "point");
            let takes = if is_points { is_pools } else { !self.ways[way].is_point() || self.takes_all() };
            if takes {
                return way;
            }
        }
    }

    /// Whether there is no cache, whose blocks have other layouts than a point frees.
    fn takes_all(&self) -> bool {
        self.ways.iter().all(|way| matches!(way.name(), "pool" | "many" | "point"))
    }

    /// Takes a live object out, and frees it.
    fn free(&mut self) -> Option<Live> {
        let live = self.any()?;
        if !live.is_unchanged() {
            self.outcome = Outcome::Changed;
            return None;
        }
        self.live.remove(&live.object.addr().get());
        let way = self.way_for(live.is_points);
        self.ways[way].free(live.object, live.layout);
        Some(live)
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0 => {
                let (way, which) = (self.random.below(self.ways.len()), self.random.below(64));
                self.ways[way].tend(which);
            }
            1..20 => _ = self.free(),
            _ => self.alloc(),
        }
    }

    /// Commits the fault. Returns false if the program has nothing to commit it on.
    fn commit(&mut self, fault: Fault, foreign: NonNull<u8>) -> bool {
        match fault {
            Fault::Double | Fault::DoubleLater => {
                let Some(live) = self.free() else { return false };
                let between = if fault == Fault::Double { 0 } else { self.random.below(30) };
                for _ in 0..between {
                    if self.is_harmless() {
                        self.step();
                    }
                }
                // Memory that another object has by now: only that object's owner could tell. Magazines and points have objects, too.
                if between != 0 {
                    self.ways.iter_mut().filter(|way| way.takes_ahead()).for_each(|way| way.tend(0));
                }
                let base = live.object.addr().get();
                if !self.is_harmless() || self.overlaps(base, live.layout.size()) {
                    return false;
                }
                let way = self.way_for(live.is_points);
                self.ways[way].free(live.object, live.layout);
            }
            Fault::Word | Fault::Byte | Fault::All => {
                let Some(live) = self.free() else { return false };
                let (from, count) = match fault {
                    Fault::Word => (0, size_of::<usize>()),
                    Fault::Byte => (self.random.below(size_of::<usize>()), 1),
                    _ => (0, live.layout.size()),
                };
                let word = [0, usize::MAX, 0x4141_4141, foreign.addr().get()][self.random.below(4)];
                for at in from..from + count {
                    let byte = word.to_ne_bytes()[at % size_of::<usize>()];
                    // SAFETY: none: this is the fault. It stays in the freed object.
                    unsafe { live.object.add(at).write_volatile(byte) };
                }
            }
            Fault::Foreign => {
                let layout = self.layouts[0];
                let way = self.way_for(false);
                self.ways[way].free(foreign, layout);
            }
            Fault::Interior => {
                let Some(live) = self.any().filter(|live| !live.is_points) else { return false };
                let inside = 16 * (1 + self.random.below(live.layout.size().div_ceil(16).max(2) - 1));
                if inside >= live.layout.size() {
                    return false;
                }
                let way = self.way_for(false);
                // SAFETY: inside the object.
                self.ways[way].free(unsafe { live.object.add(inside) }, live.layout);
            }
            Fault::NeverUsed => {
                let Some(last) = self.used.last_key_value().map(|(&base, &size)| base + size) else {
                    return false;
                };
                let Some(any) = self.any() else { return false };
                // What a magazine holds was allocated.
                self.ways.iter_mut().filter(|way| way.takes_ahead()).for_each(|way| way.tend(0));
                let base = last.next_multiple_of(GRAIN) - 16 * (1 + self.random.below(GRAIN / 32));
                let size = any.layout.size();
                if base < last || !(self.owns)(base) || !(self.owns)(base + size) {
                    return false;
                }
                let way = self.way_for(false);
                let there = any.object.as_ptr().map_addr(|_| base);
                if let Some(there) = NonNull::new(there) {
                    self.ways[way].free(there, any.layout);
                }
            }
        }
        true
    }

    /// Frees an object by two ways, one right after the other. `None` if there is none that both take.
    fn run_twice(mut self, first: usize, second: usize) -> Option<Outcome> {
        for _ in 0..120 {
            self.step();
        }
        let is_points = self.ways[first].is_point() || self.ways[second].is_point();
        let live = self.any().filter(|live| live.is_points == is_points || self.takes_all())?;
        self.live.remove(&live.object.addr().get());
        self.ways[first].free(live.object, live.layout);
        self.ways[second].free(live.object, live.layout);
        // Its next request, or that of the pool if it only frees, or takes from a magazine.
        let asked = if matches!(self.ways[second].name(), "returns" | "many" | "point") { 0 } else { second };
        let is_found = self.ways[asked].alloc(live.layout) == Err(Error::Damaged);
        for _ in 0..200 {
            if self.is_harmless() {
                self.step();
            }
        }
        match self.outcome {
            Outcome::Harmless { .. } => Some(Outcome::Harmless { is_found }),
            harmful => Some(harmful),
        }
    }

    /// Runs the program. `None` if the fault found nothing to be committed on.
    fn run(mut self, fault: Option<Fault>, operations: usize, foreign: NonNull<u8>) -> Option<Outcome> {
        let before = 20 + self.random.below(operations / 2);
        for _ in 0..before {
            self.step();
        }
        if self.outcome != (Outcome::Harmless { is_found: false }) {
            return Some(Outcome::Panic); // refused, or worse, without a fault
        }
        if let Some(fault) = fault
            && !self.commit(fault, foreign)
        {
            return None;
        }
        for _ in before..operations {
            if self.is_harmless() {
                self.step();
            }
        }
        if self.is_harmless() && !self.live.values().all(Live::is_unchanged) {
            self.outcome = Outcome::Changed;
        }
        Some(self.outcome)
    }
}

/// Runs one program of a search.
pub(crate) fn run(kind: Kind, plan: Plan, seed: u64, program: u64) -> Option<Outcome> {
    let mut random = Random::of(seed, program);
    // Zeroed: an earlier program in the same memory left its seals there.
    let mut memory = Box::new_uninit_slice(SIZE);
    // SAFETY: memory of so many bytes, borrowed exclusively.
    unsafe { memory.as_mut_ptr().cast::<u8>().write_bytes(0, SIZE) };
    let options = ClientArenaOptions { grain: Some(GRAIN), ..ClientArenaOptions::default() };
    let arena = &ClientArena::create(&mut memory, options).expect("there is room");
    let count = 1 + random.below(3);
    let sizes: Vec<usize> = (0..count).map(|_| 16 * (1 + random.below(8)) - random.below(16)).collect();
    let layout = |size: usize| Layout::from_size_align(size, 8).expect("a small layout");
    let waiting = [0, 3, 2048][random.below(3)];
    let extend_by = [GRAIN, 4 * GRAIN][random.below(2)];
    let kinds = random.below(64);
    match kind.0 {
        Class::Mfs => {
            // As blocks of caches have it: whole granules.
            let size = sizes[0].next_multiple_of(16);
            let unit = Layout::from_size_align(size + 8, 16).expect("a small layout");
            let unit = UnitLayout::new(unit).expect("a small unit");
            let options = MfsOptions { extend_by, fill_size: [256, 2048][kinds % 2] };
            let pool = Mfs::create(arena, unit, options).expect("a pool");
            let layouts = vec![layout(size)];
            let caches = [pool.cache(), pool.cache()];
            let mut ways = ways_of::<Mfs<_, _>>(&pool, None, trim);
            if kind.1 != Front::Bare && kind.1 != Front::Depot {
                ways.push(Box::new(OfUnits("cache A", &caches[0])));
                ways.push(Box::new(OfUnits("cache B", &caches[1])));
                ways.push(Box::new(OfReturns(pool.returns())));
            }
            if kind.1 == Front::Points {
                let point = AllocationPoint::create(&pool).expect("a point");
                ways.push(Box::new(OfPoint { point, has_units: true }));
            }
            if kind.1 == Front::Depot {
                return with_caches(&pool, kind.1, layouts, random, plan, trim);
            }
            drive(&pool, ways, layouts, random, plan)
        }
        Class::Mvff => {
            let options = MvffOptions { extend_by, bin_blocks: waiting, ..MvffOptions::default() };
            let pool = Mvff::create(arena, options).expect("a pool");
            of_any_size(&pool, kind.1, sizes.into_iter().map(layout).collect(), random, plan)
        }
        Class::Mvt => {
            let pool =
                Mvt::create(arena, MvtOptions { max_size: 1024, ..MvtOptions::default() }).expect("a pool");
            of_any_size(&pool, kind.1, sizes.into_iter().map(layout).collect(), random, plan)
        }
        Class::Tlsf => {
            let options = TlsfOptions { extend_by, bin_blocks: waiting, ..TlsfOptions::default() };
            let pool = Tlsf::create(arena, options).expect("a pool");
            of_any_size(&pool, kind.1, sizes.into_iter().map(layout).collect(), random, plan)
        }
    }
}

fn ways_of<'s, P: ManualPool>(
    pool: &'s P,
    classes: Option<CacheClasses>,
    trim: fn(&P),
) -> Vec<Box<dyn Way + 's>> {
    vec![Box::new(OfPool { pool, classes, trim }), Box::new(Many { pool, classes, taken: None })]
}

fn of_any_size<P: ManualPool>(
    pool: &P,
    front: Front,
    layouts: Vec<Layout>,
    random: Random,
    plan: Plan,
) -> Option<Outcome> {
    match front {
        Front::Bare => drive(pool, ways_of(pool, None, |_| ()), layouts, random, plan),
        Front::Points => {
            let mut ways = ways_of(pool, None, |_| ());
            let point = AllocationPoint::create(pool).expect("a point");
            ways.push(Box::new(OfPoint { point, has_units: false }));
            drive(pool, ways, layouts, random, plan)
        }
        Front::Caches | Front::Depot => with_caches(pool, front, layouts, random, plan, |_| ()),
    }
}

fn with_caches<P: ManualPool>(
    pool: &P,
    front: Front,
    layouts: Vec<Layout>,
    mut random: Random,
    plan: Plan,
    trim: fn(&P),
) -> Option<Outcome> {
    let largest = layouts.iter().map(|layout| layout.size().next_multiple_of(16)).max().unwrap_or(16);
    let classes = if P::CLASS == "MFS" {
        let class = tripoint_pools::CacheClass { size: layouts[0].size(), count: 8 };
        CacheClasses::new(&[class]).expect("a class")
    } else {
        CacheClasses::linear(largest.max(32), 4 + random.below(20)).expect("few classes")
    };
    let depot = Depot::new(pool, classes, [2048, 32 << 10][random.below(2)]);
    let descriptors = [(); 2].map(|()| CacheDescriptor::new(classes));
    let make = |descriptor| match front {
        Front::Depot => Cache::with_depot(&depot, descriptor),
        _ => Cache::create(pool, descriptor),
    };
    let caches = [make(&descriptors[0]).expect("a cache"), make(&descriptors[1]).expect("a cache")];
    let mut ways = ways_of(pool, Some(classes), trim);
    ways.push(Box::new(OfCache("cache A", &caches[0])));
    ways.push(Box::new(OfCache("cache B", &caches[1])));
    if front == Front::Depot {
        ways.push(Box::new(OfDepot(&depot)));
    }
    drive(pool, ways, layouts, random, plan)
}

fn drive<P: ManualPool>(
    pool: &P,
    mut ways: Vec<Box<dyn Way + '_>>,
    layouts: Vec<Layout>,
    random: Random,
    plan: Plan,
) -> Option<Outcome> {
    let mut foreign = vec![0_u128; 64];
    let owns = |addr| pool.header().arena().pool_of(Addr::new(addr)) == Some(pool.header().id());
    let has_point = ways.iter().any(|way| way.name() == "point");
    // What a point is about to allocate counts as in use (design/hardening.md `.fill`).
    if has_point && matches!(plan, Plan::Fault(Some(Fault::NeverUsed), _)) {
        return None;
    }
    let program = Program {
        ways: &mut ways,
        random,
        layouts,
        live: BTreeMap::new(),
        outcome: Outcome::Harmless { is_found: false },
        owns: &owns,
        used: BTreeMap::new(),
    };
    match plan {
        Plan::Fault(fault, operations) => {
            program.run(fault, operations, NonNull::from(&mut foreign[8]).cast())
        }
        Plan::Twice(first, second) => program.run_twice(first, second),
    }
}

/// What became of the programs of a search with one kind of pool and one fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) programs: u64,
    pub(crate) found: u64,
    pub(crate) overlaps: u64,
    pub(crate) changed: u64,
    pub(crate) panics: u64,
    /// The number of the first program that harmed another object.
    pub(crate) first: Option<u64>,
}

impl Counts {
    pub(crate) const fn harmful(&self) -> u64 {
        self.overlaps + self.changed + self.panics
    }

    /// Adds the counts of another fault.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.programs += other.programs;
        self.found += other.found;
        self.overlaps += other.overlaps;
        self.changed += other.changed;
        self.panics += other.panics;
        self.first = self.first.or(other.first);
    }

    fn add(&mut self, number: u64, outcome: Outcome) {
        self.programs += 1;
        match outcome {
            Outcome::Harmless { is_found } => self.found += u64::from(is_found),
            Outcome::Overlap => self.overlaps += 1,
            Outcome::Changed => self.changed += 1,
            Outcome::Panic => self.panics += 1,
        }
        if !matches!(outcome, Outcome::Harmless { .. }) {
            self.first = self.first.or(Some(number));
        }
    }
}

/// Runs programs until so many committed their fault, or so many times as many did not. A call that hangs ends the process.
pub(crate) fn search(
    kind: Kind,
    fault: Option<Fault>,
    programs: u64,
    seed: u64,
    operations: usize,
) -> Counts {
    let (progress, watched) = channel::<u64>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut last = None;
            loop {
                match watched.recv_timeout(Duration::from_secs(PATIENCE)) {
                    Ok(number) => last = Some(number),
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!("HANG: {kind}, {fault:?}, seed {seed}, program {last:?}");
                        std::process::abort();
                    }
                }
            }
        });
        let mut counts = Counts::default();
        for number in 0.. {
            if counts.programs == programs || number > 20 * programs {
                break;
            }
            let _ = progress.send(number);
            let outcome =
                catch_unwind(AssertUnwindSafe(|| run(kind, Plan::Fault(fault, operations), seed, number)));
            if let Some(outcome) = outcome.unwrap_or(Some(Outcome::Panic)) {
                counts.add(number, outcome);
            }
        }
        drop(progress);
        counts
    })
}

/// The names of the ways of a kind of pool, in their order.
pub(crate) fn names(kind: Kind) -> Vec<&'static str> {
    let caches = ["cache A", "cache B"].as_slice();
    let others: &[&[&str]] = match kind {
        Kind(_, Front::Bare) => &[],
        Kind(Class::Mfs, Front::Points) => &[caches, &["returns", "point"]],
        Kind(_, Front::Points) => &[&["point"]],
        Kind(Class::Mfs, Front::Caches) => &[caches, &["returns"]],
        Kind(_, Front::Caches) => &[caches],
        Kind(_, Front::Depot) => &[caches, &["depot"]],
    };
    ["pool", "many"].into_iter().chain(others.concat()).collect()
}

/// How a double free is found, by the way of the first free and that of the second: a row of the table in design/hardening.md
/// `.twice`. A pair counts if the next request was refused in each of so many programs.
pub(crate) fn row_of_two_frees(kind: Kind, programs: u64, seed: u64) -> String {
    let names = names(kind);
    let (mut at_once, mut others) = (0, Vec::new());
    for (first, second) in
        (0..names.len()).flat_map(|first| (0..names.len()).map(move |second| (first, second)))
    {
        let counts = count_two_frees(kind, [first, second], programs, seed);
        if counts.found == programs && counts.harmful() == 0 {
            at_once += 1;
        } else {
            let Counts { programs, found, .. } = counts;
            let pair = [names[first], names[second]].join(", then ");
            others.push(format!("{pair}: {found} of {programs}, {} harmful", counts.harmful()));
        }
    }
    let others = if others.is_empty() { "-".to_owned() } else { others.join("; ") };
    format!("| {kind} | {} | {at_once} of {} | {others} |", names.join(", "), names.len() * names.len())
}

/// Runs so many programs that free an object by these two ways.
fn count_two_frees(kind: Kind, [first, second]: [usize; 2], programs: u64, seed: u64) -> Counts {
    let mut counts = Counts::default();
    for number in 0..20 * programs {
        if counts.programs == programs {
            break;
        }
        if let Some(outcome) = run(kind, Plan::Twice(first, second), seed, number) {
            counts.add(number, outcome);
        }
    }
    counts
}
