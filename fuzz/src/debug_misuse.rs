//! Misuse of a pool through its raw interface, under the debug pool
//! (design/debug.md): it finds all that it promises to find, reports nothing
//! else, and the pool goes on.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;

use tripoint::author::Block;
use tripoint::debug::{DebugOptions, DebugPool, DebugReport, Fault};
use tripoint::{
    Addr, Arena, Check, CheckLevel, ManualPool, Mfs, MfsOptions, Mvff, MvffOptions, PoolClass, Store, Tlsf,
    TlsfOptions, UnitLayout,
};
use tripoint_oracle::{Choices, Oracle};

use crate::manual::{ARENA_SIZE, GRAIN};
use crate::memory::with_arena;

/// The byte that the debug pool fills freed memory with: writing it there changes
/// nothing.
const FREED: u8 = 0xdd;

/// How many of the objects freed last are remembered, to free them again.
const FREED_MAX: usize = 16;

thread_local! {
    /// The last report that a debug pool made.
    static LAST: Cell<Option<DebugReport>> = const { Cell::new(None) };
}

/// Allocates, frees and misuses as the bytes say.
///
/// # Panics
/// If a fault is not found, or a fault is reported that was not committed.
pub fn debug_misuse(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some((class, held)) = choices.which().zip(choices.below(65)) else { return };
    let options = DebugOptions { held, hook: Some(|report| LAST.set(Some(*report))) };
    with_arena(ARENA_SIZE, GRAIN, |arena| match class % 3 {
        0 => {
            let options_below =
                MvffOptions { extend_by: 2 * GRAIN, fill_size: 512, spare: 8 << 10, bin_blocks: 0 };
            live(
                DebugPool::create(Mvff::create(arena, options_below).unwrap(), options).unwrap(),
                held,
                &mut choices,
            );
        }
        1 => {
            let options_below =
                TlsfOptions { extend_by: 2 * GRAIN, fill_size: 512, spare: 8 << 10, bin_blocks: 0 };
            live(
                DebugPool::create(Tlsf::create(arena, options_below).unwrap(), options).unwrap(),
                held,
                &mut choices,
            );
        }
        _ => {
            let unit = UnitLayout::new(Layout::from_size_align(128, 16).unwrap()).unwrap();
            let options_below = MfsOptions { extend_by: 2 * GRAIN, fill_size: 512 };
            let pool = Mfs::create(arena, unit, options_below).unwrap();
            live(DebugPool::create(pool, options).unwrap(), held, &mut choices);
        }
    });
}

fn live<P: ManualPool>(pool: DebugPool<P>, held: usize, choices: &mut Choices<'_>) {
    let mut life = Life {
        pool: &pool,
        holds: held != 0,
        fenced: Oracle::default(),
        others: Oracle::default(),
        freed: Vec::new(),
        overrun: Vec::new(),
        written: Vec::new(),
        faults: 0,
    };
    while let Some(()) = life.step(choices) {
        life.assert_counted();
    }
    life.compare();
    life.fenced.clear(&pool);
    life.others.clear(&pool);
    life.compare();
}

/// A pool, what is live in it, and the faults committed so far.
struct Life<'p, P: ManualPool> {
    pool: &'p DebugPool<P>,
    /// Whether freed objects are held back.
    holds: bool,
    /// Objects with fences.
    fenced: Oracle,
    /// Objects of allocation points, which have none.
    others: Oracle,
    /// Objects freed last.
    freed: Vec<(NonNull<u8>, Layout)>,
    /// Objects lost because their fence was damaged.
    overrun: Vec<Block>,
    /// Objects written to after they were freed.
    written: Vec<Block>,
    /// Faults reported at once.
    faults: usize,
}

impl<P: ManualPool> Life<'_, P> {
    fn step(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        match choices.byte()? % 16 {
            0..=4 => {
                let _ = self.fenced.alloc(self.pool, layout(choices)?);
            }
            5..=6 => {
                let _ = self.others.point(self.pool, layout(choices)?, choices.below(4)?);
            }
            7 => {
                if let Some(addr) = self.others.live().pick(true, choices.which()?) {
                    self.others.free(self.pool, addr);
                }
            }
            8 => drop(self.free(choices)?),
            9 => self.write_after_free(choices)?,
            10 => self.free_again(choices)?,
            11 => self.free_foreign(layout(choices)?),
            12 => self.free_inside(choices)?,
            13 => self.free_as_another(choices)?,
            14 => self.overrun(choices)?,
            _ => self.compare(),
        }
        Some(())
    }

    /// Frees an object correctly.
    fn free(&mut self, choices: &mut Choices<'_>) -> Option<Option<Block>> {
        let Some(addr) = self.fenced.live().pick(true, choices.which()?) else { return Some(None) };
        let object = *self.fenced.live().get(addr)?;
        self.fenced.free(self.pool, addr);
        self.freed.push((object.block.base(), object.layout?));
        if self.freed.len() > FREED_MAX {
            self.freed.remove(0);
        }
        Some(Some(object.block))
    }

    /// Frees an object and writes to it while it is held back: an inspection
    /// shows that at once, and it is reported when the object leaves.
    fn write_after_free(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let (offset, value) = (choices.which()?, choices.byte()?);
        let Some(block) = self.free(choices)? else { return Some(()) };
        if self.holds && value != FREED {
            let offset = offset % block.size();
            // SAFETY: a fault, but the debug pool hands that memory to no client.
            unsafe { block.base().add(offset).write(value) };
            self.written.push(block);
            let at = Addr::new(block.range().base().get() + offset);
            assert!(self.shows(block, |fault| fault == Fault::UsedAfterFree { at }), "a write after free");
        }
        Some(())
    }

    fn free_again(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let which = choices.which()?;
        let Some(at) = which.checked_rem(self.freed.len()) else { return Some(()) };
        let (object, layout) = self.freed[at];
        let addr = object.addr().get();
        let is_live = self.fenced.live().covers(addr) || self.others.live().covers(addr);
        let is_lost = self.overrun.iter().any(|block| block.range().contains(Addr::new(addr)));
        if !is_live && !is_lost {
            let header = self.pool.header();
            let is_pools = header.arena().pool_of(Addr::new(addr)) == Some(header.id());
            let expected = if is_pools { Fault::DoubleFree } else { Fault::Foreign };
            self.assert_reports(object, layout, |fault| fault == expected);
        }
        Some(())
    }

    fn free_foreign(&mut self, layout: Layout) {
        let mut outside = [0_u64; 4];
        self.assert_reports(NonNull::from(&mut outside).cast(), layout, |fault| fault == Fault::Foreign);
    }

    fn free_inside(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let (which, offset) = (choices.which()?, choices.which()?);
        let Some(addr) = self.fenced.live().pick(true, which) else { return Some(()) };
        let object = *self.fenced.live().get(addr)?;
        let offset = 1 + offset % (object.block.size() - 1);
        // SAFETY: inside the object.
        let inside = unsafe { object.block.base().add(offset) };
        self.assert_reports(inside, object.layout?, |fault| fault == Fault::Interior);
        Some(())
    }

    fn free_as_another(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let (which, wrong) = (choices.which()?, layout(choices)?);
        let Some(addr) = self.fenced.live().pick(true, which) else { return Some(()) };
        let object = *self.fenced.live().get(addr)?;
        let right = object.layout?;
        if wrong != right {
            let expected = Fault::WrongLayout { allocated: right.size(), align: right.align() };
            self.assert_reports(object.block.base(), wrong, |fault| fault == expected);
        }
        Some(())
    }

    /// Writes behind an object: an inspection shows that at once, it is reported when
    /// the object is freed, and then the object is lost.
    fn overrun(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        let (which, from, count, value) =
            (choices.which()?, choices.which()?, choices.which()?, choices.byte()?);
        let Some(addr) = self.fenced.live().pick(true, which) else { return Some(()) };
        let object = *self.fenced.live().get(addr)?;
        let layout = object.layout?;
        let (_, fence) = object.block.split_at(layout.size())?;
        let (_, fence) = fence.split_at(from % fence.size())?;
        let (damage, _) = fence.split_at(1 + count % fence.size())?;
        // SAFETY: the memory belongs to the object and is initialised, although
        // it is not the client's.
        let bytes = unsafe { core::slice::from_raw_parts_mut(damage.base().as_ptr(), damage.size()) };
        let changes = bytes.iter().any(|&byte| byte != value);
        bytes.fill(value);
        if changes {
            let is_overrun = |fault| matches!(fault, Fault::Overrun { .. });
            assert!(self.shows(object.block, is_overrun), "a write behind an object");
            self.fenced.remove(addr);
            self.assert_reports(object.block.base(), layout, is_overrun);
            self.overrun.push(object.block);
        }
        Some(())
    }

    /// Frees what must not be freed: there is one report of it.
    fn assert_reports(&mut self, object: NonNull<u8>, layout: Layout, expected: impl Fn(Fault) -> bool) {
        let before = self.pool.reports().count();
        // SAFETY: a debug pool looks before it touches; nothing here is in a fill.
        unsafe { self.pool.free(object, layout) };
        assert_eq!(self.pool.reports().count(), before + 1, "one fault, one report");
        let report = LAST.get().unwrap();
        assert!(report.object == Addr::of(object.as_ptr()) && expected(report.fault), "{report}");
        self.faults += 1;
    }

    /// Whether an inspection shows this fault of this object.
    fn shows(&self, block: Block, expected: impl Fn(Fault) -> bool) -> bool {
        let mut shown = false;
        self.pool.inspect(&mut |report| {
            shown |= report.object == block.range().base() && expected(report.fault);
        });
        shown
    }

    /// Only faults were reported; objects that were written to are reported when
    /// they leave, whenever that is.
    fn assert_counted(&self) {
        let count = self.pool.reports().count();
        assert!((self.faults..=self.faults + self.written.len()).contains(&count), "{count} reports");
    }

    /// An inspection shows what is wrong now, and nothing else.
    fn compare(&self) {
        let (mut overrun, mut held) = (Vec::new(), Vec::new());
        self.pool.inspect(&mut |report| match report.fault {
            Fault::Overrun { .. } => overrun.push(report.object),
            Fault::UsedAfterFree { .. } => held.push(report.object),
            _ => panic!("{report}"),
        });
        assert_eq!(overrun.len(), self.overrun.len(), "as many fences are damaged");
        assert!(held.iter().all(|&addr| self.written.iter().any(|block| block.range().base() == addr)));
        let left: Vec<_> =
            self.written.iter().filter(|block| !held.contains(&block.range().base())).collect();
        let lost: usize = self.overrun.iter().chain(left.iter().copied()).map(|block| block.size()).sum();
        let sizes = self.pool.sizes();
        let live = self.fenced.live_size() + self.others.live_size();
        assert_eq!(sizes.total, sizes.free + live + lost, "only what was misused is lost");
        assert_eq!(self.pool.reports().count(), self.faults + left.len(), "who left was reported");
        let is_clean = overrun.is_empty() && held.is_empty() && self.pool.reports().count() == 0;
        assert_eq!(self.pool.check(CheckLevel::Deep).is_ok(), is_clean);
    }
}

/// A layout that most classes serve.
fn layout(choices: &mut Choices<'_>) -> Option<Layout> {
    Layout::from_size_align(choices.below(112)?, 1 << choices.below(6)?).ok()
}
