//! A random program with one fault, and what became of it.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use tripoint_core::Error;

use super::GRAIN;
use super::kinds::Fault;
use super::ways::Way;

/// What a program does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// That many random operations, and a fault at one of them.
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
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of one program of a search.
    pub(crate) fn of(seed: u64, program: u64) -> Self {
        let mut random = Self(seed ^ program.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.below(1);
        random
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
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
pub(crate) struct Program<'w, 's> {
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

impl<'w, 's> Program<'w, 's> {
    pub(crate) fn new(
        ways: &'w mut [Box<dyn Way + 's>],
        layouts: Vec<Layout>,
        owns: &'w dyn Fn(usize) -> bool,
        random: Random,
    ) -> Self {
        let outcome = Outcome::Harmless { is_found: false };
        Self { ways, random, layouts, live: BTreeMap::new(), outcome, owns, used: BTreeMap::new() }
    }

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

    /// That many random operations, or fewer if one does harm.
    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            if self.is_harmless() {
                self.step();
            }
        }
    }

    /// Commits the fault. Returns `None` if the program has nothing to commit it on.
    fn commit(&mut self, fault: Fault, foreign: NonNull<u8>) -> Option<()> {
        match fault {
            Fault::Double => self.free_twice(0),
            Fault::DoubleLater => self.free_twice(30),
            Fault::Word | Fault::Byte | Fault::All => self.write_after_free(fault, foreign.addr().get()),
            Fault::Foreign => {
                let layout = self.layouts[0];
                let way = self.way_for(false);
                self.ways[way].free(foreign, layout);
                Some(())
            }
            Fault::Interior => self.free_inside(),
            Fault::NeverUsed => self.free_never_used(),
        }
    }

    /// Has no way keep memory that was allocated and that the program does not have.
    fn return_what_is_taken_ahead(&mut self) {
        self.ways.iter_mut().filter(|way| way.takes_ahead()).for_each(|way| way.tend(0));
    }

    /// Frees an object twice, with less than `limit` operations between.
    fn free_twice(&mut self, limit: usize) -> Option<()> {
        let live = self.free()?;
        let between = if limit == 0 { 0 } else { self.random.below(limit) };
        self.steps(between);
        // Memory that another object has by now: only that object's owner could tell. Magazines and points have objects, too.
        if between != 0 {
            self.return_what_is_taken_ahead();
        }
        let base = live.object.addr().get();
        if !self.is_harmless() || self.overlaps(base, live.layout.size()) {
            return None;
        }
        let way = self.way_for(live.is_points);
        self.ways[way].free(live.object, live.layout);
        Some(())
    }

    fn write_after_free(&mut self, fault: Fault, foreign: usize) -> Option<()> {
        let live = self.free()?;
        let (from, count) = match fault {
            Fault::Word => (0, size_of::<usize>()),
            Fault::Byte => (self.random.below(size_of::<usize>()), 1),
            _ => (0, live.layout.size()),
        };
        let word = [0, usize::MAX, 0x4141_4141, foreign][self.random.below(4)];
        for at in from..from + count {
            let byte = word.to_ne_bytes()[at % size_of::<usize>()];
            // SAFETY: none: this is the fault. It stays in the freed object.
            unsafe { live.object.add(at).write_volatile(byte) };
        }
        Some(())
    }

    fn free_inside(&mut self) -> Option<()> {
        let live = self.any().filter(|live| !live.is_points)?;
        let inside = 16 * (1 + self.random.below(live.layout.size().div_ceil(16).max(2) - 1));
        if inside >= live.layout.size() {
            return None;
        }
        let way = self.way_for(false);
        // SAFETY: inside the object.
        self.ways[way].free(unsafe { live.object.add(inside) }, live.layout);
        Some(())
    }

    fn free_never_used(&mut self) -> Option<()> {
        let last = self.used.last_key_value().map(|(&base, &size)| base + size)?;
        let any = self.any()?;
        // What a magazine holds was allocated.
        self.return_what_is_taken_ahead();
        let base = last.next_multiple_of(GRAIN) - 16 * (1 + self.random.below(GRAIN / 32));
        let size = any.layout.size();
        if base < last || !(self.owns)(base) || !(self.owns)(base + size) {
            return None;
        }
        let way = self.way_for(false);
        let there = NonNull::new(any.object.as_ptr().map_addr(|_| base))?;
        self.ways[way].free(there, any.layout);
        Some(())
    }

    /// Frees an object by two ways, one right after the other. `None` if there is none that both take.
    pub(crate) fn run_twice(mut self, first: usize, second: usize) -> Option<Outcome> {
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
        self.steps(200);
        match self.outcome {
            Outcome::Harmless { .. } => Some(Outcome::Harmless { is_found }),
            harmful => Some(harmful),
        }
    }

    /// Runs the program. `None` if the fault found nothing to be committed on.
    pub(crate) fn run(
        mut self,
        fault: Option<Fault>,
        operations: usize,
        foreign: NonNull<u8>,
    ) -> Option<Outcome> {
        let before = 20 + self.random.below(operations / 2);
        for _ in 0..before {
            self.step();
        }
        if self.outcome != (Outcome::Harmless { is_found: false }) {
            return Some(Outcome::Panic); // refused, or worse, without a fault
        }
        if let Some(fault) = fault {
            self.commit(fault, foreign)?;
        }
        self.steps(operations - before);
        if self.is_harmless() && !self.live.values().all(Live::is_unchanged) {
            self.outcome = Outcome::Changed;
        }
        Some(self.outcome)
    }
}
