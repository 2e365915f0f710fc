//! What programs may do wrong with the objects of a pool. Each fault is committed on
//! purpose in a pool of each class, and its outcome is recorded.
//!
//! There is a heap of random objects, then one fault, then ordinary operations, during
//! which an oracle knows what is alive. Equal seeds do equal things
//! (design/hardening.md `.misuse`).

use core::alloc::Layout;
use core::fmt;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use tripoint_core::{ClientArena, ClientArenaOptions, Error, ManualPool, Result};
use tripoint_pools::{
    Cache, CacheClasses, CacheDescriptor, DebugOptions, DebugPool, Mfs, MfsOptions, Mvff, MvffOptions, Mvt,
    MvtOptions, Tlsf, TlsfOptions, UnitLayout,
};

#[path = "subject.rs"]
mod subject;

use subject::{Subject, class_cache, plain, unit_cache, watched};

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    DoubleFree,
    DoubleFreeLater,
    Foreign,
    OtherPool,
    Interior,
    Smaller,
    Larger,
    WordAfterFree,
    ByteAfterFree,
    SecondWordAfterFree,
    AllAfterFree,
    OverrunByte,
    OverrunBlock,
    Underrun,
}

impl Fault {
    pub(crate) const ALL: [Self; 14] = [
        Self::DoubleFree,
        Self::DoubleFreeLater,
        Self::Foreign,
        Self::OtherPool,
        Self::Interior,
        Self::Smaller,
        Self::Larger,
        Self::WordAfterFree,
        Self::ByteAfterFree,
        Self::SecondWordAfterFree,
        Self::AllAfterFree,
        Self::OverrunByte,
        Self::OverrunBlock,
        Self::Underrun,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::DoubleFree => "double free",
            Self::DoubleFreeLater => "double free, 20 frees later",
            Self::Foreign => "foreign pointer",
            Self::OtherPool => "object of another pool",
            Self::Interior => "interior pointer",
            Self::Smaller => "half the size at free",
            Self::Larger => "twice the size at free",
            Self::WordAfterFree => "write after free, word 0",
            Self::ByteAfterFree => "write after free, a byte of word 0",
            Self::SecondWordAfterFree => "write after free, word 1",
            Self::AllAfterFree => "write after free, everything",
            Self::OverrunByte => "overrun, 1 byte",
            Self::OverrunBlock => "overrun, two words",
            Self::Underrun => "underrun, 8 bytes",
        }
    }

    /// Whether a sealing class can tell the fault from the arguments of the free.
    pub(crate) const fn is_wrong_free(self) -> bool {
        matches!(
            self,
            Self::DoubleFree
                | Self::DoubleFreeLater
                | Self::Foreign
                | Self::OtherPool
                | Self::Interior
                | Self::Smaller
                | Self::Larger
        )
    }
}

/// The subject of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Mfs,
    MfsCache,
    Mvff,
    Mvt,
    Tlsf,
    CacheOfTlsf,
    DebugMfs,
    DebugMvff,
    DebugTlsf,
}

impl Class {
    pub(crate) const ALL: [Self; 9] = [
        Self::Mfs,
        Self::MfsCache,
        Self::Mvff,
        Self::Mvt,
        Self::Tlsf,
        Self::CacheOfTlsf,
        Self::DebugMfs,
        Self::DebugMvff,
        Self::DebugTlsf,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mfs => "Mfs",
            Self::MfsCache => "MfsCache",
            Self::Mvff => "Mvff",
            Self::Mvt => "Mvt",
            Self::Tlsf => "Tlsf",
            Self::CacheOfTlsf => "Cache<Tlsf>",
            Self::DebugMfs => "DebugPool<Mfs>",
            Self::DebugMvff => "DebugPool<Mvff>",
            Self::DebugTlsf => "DebugPool<Tlsf>",
        }
    }

    pub(crate) const fn is_debug(self) -> bool {
        matches!(self, Self::DebugMfs | Self::DebugMvff | Self::DebugTlsf)
    }

    /// Whether all objects have one size, so that a free ignores the size it is given.
    pub(crate) const fn has_units(self) -> bool {
        matches!(self, Self::Mfs | Self::MfsCache)
    }
}

/// The outcome of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Operations until it was reported; zero if the first one after the fault reports it.
    pub(crate) found: Option<usize>,
    /// Operations until memory in use was handed out.
    pub(crate) overlap: Option<usize>,
    /// Whether a deep check right after the fault finds it.
    pub(crate) deep: bool,
    /// Whether a deep check at the end finds it.
    pub(crate) deep_later: bool,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.overlap, self.found) {
            (Some(_), _) => write!(f, "OVERLAP")?,
            (None, Some(0)) => write!(f, "at once")?,
            (None, Some(found)) => write!(f, "{found}")?,
            (None, None) => write!(f, "never")?,
        }
        if self.found != Some(0) && (self.deep || self.deep_later) {
            write!(f, ", {}", if self.deep { "D" } else { "D later" })?;
        }
        Ok(())
    }
}

/// A sequence of numbers that a seed determines.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % limit
    }
}

/// The size of objects in a pool of units.
const UNIT: usize = 48;

/// The sizes of objects elsewhere are below this.
const SIZE_LIMIT: usize = 512;

const ALIGN: usize = 16;

/// The bytes of the arena.
const SIZE: usize = 1 << 20;

fn layout_of(size: usize) -> Layout {
    Layout::from_size_align(size, ALIGN).expect("a small layout")
}

/// A subject, another pool of the same class in the same arena, and the live objects.
struct Life<'s> {
    subject: &'s dyn Subject,
    other: &'s dyn Subject,
    units: bool,
    random: Random,
    live: BTreeMap<usize, (NonNull<u8>, usize)>,
    /// Base and size of live memory that is not the subject's.
    others: Vec<(usize, usize)>,
}

/// Why a life ended.
enum End {
    /// The fault was reported.
    Reported,
    /// Memory in use was handed out.
    Overlapped,
}

impl Life<'_> {
    fn size(&mut self) -> usize {
        if self.units { UNIT } else { 1 + self.random.below(SIZE_LIMIT - 1) }
    }

    fn overlaps(&self, object: NonNull<u8>, size: usize) -> bool {
        let base = object.addr().get();
        let before = self.live.range(..base + size).next_back();
        before.is_some_and(|(&addr, &(_, size))| base < addr + size)
            || self.others.iter().any(|&(addr, others)| base < addr + others && addr < base + size)
    }

    fn alloc(&mut self) -> Result<(), End> {
        let size = self.size();
        match self.subject.alloc(layout_of(size)) {
            Ok(object) if self.overlaps(object, size) => Err(End::Overlapped),
            Ok(object) => {
                // Half of the objects are not written to: what was there before stays.
                if self.random.below(2) == 0 {
                    // SAFETY: allocated just now, of this size, and not shared.
                    unsafe { object.write_bytes(self.random.below(256) as u8, size) };
                }
                self.live.insert(object.addr().get(), (object, size));
                Ok(())
            }
            Err(Error::Damaged) => Err(End::Reported),
            Err(_) => Ok(()),
        }
    }

    /// One of the live objects.
    fn any(&mut self) -> (NonNull<u8>, usize) {
        let which = self.random.below(self.live.len());
        *self.live.values().nth(which).expect("there are objects")
    }

    /// Takes a live object out.
    fn take(&mut self) -> (NonNull<u8>, usize) {
        let (object, size) = self.any();
        self.live.remove(&object.addr().get());
        (object, size)
    }

    fn free(&mut self) {
        let (object, size) = self.take();
        self.subject.free(object, layout_of(size));
    }

    fn step(&mut self) -> Result<(), End> {
        if self.subject.has_reported() {
            return Err(End::Reported);
        }
        if self.live.len() < 100 || self.live.len() < 300 && self.random.below(2) == 0 {
            self.alloc()?;
        } else {
            self.free();
        }
        Ok(())
    }

    /// Commits a fault on purpose.
    fn commit(&mut self, fault: Fault, foreign: NonNull<u8>) {
        let write = |object: NonNull<u8>, offset: isize, size: usize| {
            for index in 0..size {
                // SAFETY: none: this is the fault. It stays in the arena's memory, because
                // objects have others around them.
                unsafe {
                    let byte = object.offset(offset + index as isize);
                    byte.write_volatile(!byte.read_volatile());
                }
            }
        };
        match fault {
            Fault::DoubleFree | Fault::DoubleFreeLater => {
                let (object, size) = self.take();
                self.subject.free(object, layout_of(size));
                for _ in 0..if fault == Fault::DoubleFree { 0 } else { 20 } {
                    self.free();
                }
                self.subject.free(object, layout_of(size));
            }
            Fault::Foreign => {
                self.others.push((foreign.addr().get(), UNIT));
                self.subject.free(foreign, layout_of(UNIT));
            }
            Fault::OtherPool => {
                let object = self.other.alloc(layout_of(UNIT)).expect("there is memory");
                self.others.push((object.addr().get(), UNIT));
                self.subject.free(object, layout_of(UNIT));
            }
            Fault::Interior => {
                let (object, size) = loop {
                    let (object, size) = self.any();
                    if size >= 2 * ALIGN {
                        break (object, size);
                    }
                };
                // SAFETY: inside the object.
                self.subject.free(unsafe { object.add(ALIGN) }, layout_of(size));
            }
            Fault::Smaller | Fault::Larger => {
                let (object, size) = loop {
                    let (object, size) = self.any();
                    if size >= UNIT {
                        break (object, size);
                    }
                };
                self.live.remove(&object.addr().get());
                let said = if fault == Fault::Smaller { size / 2 } else { 2 * size };
                self.subject.free(object, layout_of(said));
            }
            Fault::WordAfterFree
            | Fault::ByteAfterFree
            | Fault::SecondWordAfterFree
            | Fault::AllAfterFree => {
                let (object, size) = self.take();
                self.subject.free(object, layout_of(size));
                let word = size_of::<usize>();
                let (offset, count) = match fault {
                    Fault::WordAfterFree => (0, word),
                    Fault::ByteAfterFree => (self.random.below(word), 1),
                    Fault::SecondWordAfterFree => (word, word),
                    _ => (0, size),
                };
                write(object, offset as isize, count);
            }
            Fault::OverrunByte | Fault::OverrunBlock => {
                let (object, size) = self.any();
                write(
                    object,
                    size as isize,
                    if fault == Fault::OverrunByte { 1 } else { 2 * size_of::<usize>() },
                );
            }
            Fault::Underrun => {
                // Behind another object: behind the last one, nothing would be hit.
                let object = loop {
                    let (object, _) = self.any();
                    let base = object.addr().get();
                    let before = self.live.range(..base).next_back();
                    if before.is_some_and(|(&addr, &(_, size))| base - (addr + size) < 64) {
                        break object;
                    }
                };
                write(object, -8, 8);
            }
        }
    }

    fn live(mut self, fault: Fault, operations: usize) -> Outcome {
        // A foreign pointer leads to memory that exists, and looks like an object's.
        let mut foreign = vec![0_u128; 64];
        let (allocations, frees) = if cfg!(miri) { (60, 12) } else { (250, 80) };
        for _ in 0..allocations {
            let _ = self.alloc();
        }
        for _ in 0..frees {
            self.free();
        }
        self.commit(fault, NonNull::from(&mut foreign[8]).cast());
        let mut outcome =
            Outcome { found: None, overlap: None, deep: !self.subject.is_whole(), deep_later: false };
        for operation in 0..operations {
            // The first request reports what is known by then.
            let step = if operation == 0 { self.alloc() } else { Ok(()) };
            match step.and_then(|()| self.step()) {
                Ok(()) => {}
                Err(End::Reported) => {
                    outcome.found = Some(operation);
                    return outcome;
                }
                Err(End::Overlapped) => {
                    outcome.overlap = Some(operation);
                    return outcome;
                }
            }
        }
        outcome.deep_later = !self.subject.is_whole();
        outcome
    }
}

/// Commits a fault in a class, and then runs that many operations.
pub(crate) fn run(class: Class, fault: Fault, seed: u64, operations: usize) -> Outcome {
    // Zeroed: an earlier run in the same memory left its seals there.
    let mut memory = Box::new_uninit_slice(SIZE);
    // SAFETY: memory of that many bytes, borrowed exclusively.
    unsafe { memory.as_mut_ptr().cast::<u8>().write_bytes(0, SIZE) };
    // Miri walks the whole table of tracts whenever it is borrowed: a short one.
    let grain = if cfg!(miri) { 32 << 10 } else { 4096 };
    let options = ClientArenaOptions { grain: Some(grain), ..ClientArenaOptions::default() };
    let arena = &ClientArena::create(&mut memory, options).expect("there is room");
    let units = class.has_units() || class == Class::DebugMfs;
    let life = |subject: &dyn Subject, other: &dyn Subject| {
        Life { subject, other, units, random: Random(seed), live: BTreeMap::new(), others: Vec::new() }
            .live(fault, operations)
    };
    let mfs = |size| {
        let unit = UnitLayout::new(layout_of(size)).expect("a small unit");
        Mfs::create(arena, unit, MfsOptions::default()).expect("a pool")
    };
    let mvff = || Mvff::create(arena, MvffOptions::default()).expect("a pool");
    let mvt = || Mvt::create(arena, MvtOptions::default()).expect("a pool");
    let tlsf = || Tlsf::create(arena, TlsfOptions::default()).expect("a pool");
    match class {
        Class::Mfs => life(&plain(&mfs(UNIT)), &plain(&mfs(UNIT))),
        Class::MfsCache => {
            let (pool, other) = (mfs(UNIT), mfs(UNIT));
            life(&unit_cache(&pool.cache()), &unit_cache(&other.cache()))
        }
        Class::Mvff => life(&plain(&mvff()), &plain(&mvff())),
        Class::Mvt => life(&plain(&mvt()), &plain(&mvt())),
        Class::Tlsf => life(&plain(&tlsf()), &plain(&tlsf())),
        Class::CacheOfTlsf => {
            let (pool, other) = (tlsf(), tlsf());
            let classes = CacheClasses::geometric(SIZE_LIMIT, 16).expect("few classes");
            let descriptor = CacheDescriptor::new(classes);
            let cache = Cache::create(&pool, &descriptor).expect("a cache");
            life(&class_cache(&cache), &plain(&other))
        }
        Class::DebugMfs => {
            let pools = [(); 2]
                .map(|()| debug(mfs(UNIT + DebugPool::<Mfs<&ClientArena<'_>, UnitLayout>>::FENCE_SIZE)));
            life(&watched(&pools[0]), &watched(&pools[1]))
        }
        Class::DebugMvff => {
            let pools = [(); 2].map(|()| debug(mvff()));
            life(&watched(&pools[0]), &watched(&pools[1]))
        }
        Class::DebugTlsf => {
            let pools = [(); 2].map(|()| debug(tlsf()));
            life(&watched(&pools[0]), &watched(&pools[1]))
        }
    }
}

fn debug<P: ManualPool>(pool: P) -> DebugPool<P> {
    DebugPool::create(pool, DebugOptions::default()).expect("a pool not yet used")
}
