//! An arena over a platform that refuses calls, against a list of blocks.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;
use std::sync::Mutex;

use tripoint::author::{Block, Platform, PlatformError, PoolId};
use tripoint::{Arena, ArenaVm, ArenaVmOptions, Check, CheckLevel, Error, Prefault};
use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_oracle::Choices;

/// A page of the platform, in bytes: small, so that an arena is, too.
const PAGE: usize = 512;

const GRAIN: usize = 2 * PAGE;

/// The number of pages of a reservation: each is one bit.
const PAGES: usize = 64;

const RESERVE: usize = PAGES * PAGE;

/// The layout of a descriptor; there may be many.
const DESCRIPTOR: Layout = Layout::new::<[u64; 20]>();

/// Allocates, frees, trims, limits and refuses calls as the bytes say: every failure
/// is an error that has a cause, what is allocated keeps its contents, and the
/// counts add up and agree with the platform's (design/arena-vm.md `.req.exact`).
///
/// # Panics
/// If any of that does not hold.
pub fn vm_arena_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let failing = Failing::new(Ground::new());
    let _ = run(&mut choices, &failing);
    assert_eq!(failing.seen(Call::Release), u32::from(failing.seen(Call::Reserve) > 0), "released");
}

fn run(choices: &mut Choices<'_>, failing: &Failing<Ground>) -> Option<()> {
    let (options, refused) = (draw_options(choices)?, choices.byte()?);
    // One creation in eight meets a refusal.
    failing.fail_any(if refused < 32 { 2 + u32::from(refused % 8) } else { 0 });
    let Ok(arena) = ArenaVm::create_on(failing, options) else { return None };
    failing.heal();
    let pools = core::array::from_fn(|_| arena.register().unwrap());
    let mut books = Books { arena: &arena, pools, out: Vec::new(), descriptors: Vec::new(), next_content: 0 };
    while let Some(()) = books.step(choices) {
        books.assert_sums();
    }
    books.finish();
    Some(())
}

fn draw_options(choices: &mut Choices<'_>) -> Option<ArenaVmOptions> {
    let shape = choices.byte()?;
    let guard = shape & 3 == 3;
    let prefault = match shape >> 2 & 3 {
        1 => Prefault::AtFill,
        2 if !guard => Prefault::Size(3 * GRAIN),
        _ => Prefault::None,
    };
    Some(ArenaVmOptions {
        reserve: RESERVE,
        reserve_floor: RESERVE,
        grain: GRAIN,
        spare_share: choices.byte()? % 101,
        prefault,
        guard,
        lock: shape >> 4 & 3 == 1,
        inherit_on_fork: shape >> 6 & 1 == 0,
        commit_limit: if shape >> 7 == 1 { 20 << 10 } else { usize::MAX },
        ..Default::default()
    })
}

type Vm<'f> = ArenaVm<&'f Failing<Ground>>;

/// What is allocated from an arena.
struct Books<'a, 'f> {
    arena: &'a Vm<'f>,
    pools: [PoolId; 2],
    /// Blocks with their owner and the byte they were filled with.
    out: Vec<(Block, PoolId, u8)>,
    descriptors: Vec<NonNull<u8>>,
    next_content: u8,
}

impl Books<'_, '_> {
    fn failing(&self) -> &Failing<Ground> {
        self.arena.platform()
    }

    fn step(&mut self, choices: &mut Choices<'_>) -> Option<()> {
        match choices.byte()? % 16 {
            0..=4 => self.alloc(choices.below(6 * GRAIN)? + 1, choices.which()? % 2),
            5..=7 => self.free(choices.which()?, choices.which()?),
            8 => self.alloc_descriptor(),
            9 => self.free_descriptor(choices.which()?),
            10 => self.dismiss(choices.which()? % 2),
            11 => self.trim_or_prefault(choices.byte()?),
            12 => self.set_limit(choices.below(RESERVE)?),
            13 => self.freeze_or_thaw(choices.byte()?),
            14 => self.refuse(choices.byte()?),
            _ => self.heal(),
        }
        Some(())
    }

    fn heal(&self) {
        self.failing().heal();
        self.arena.check(CheckLevel::Deep).unwrap();
    }

    fn refuse(&self, choice: u8) {
        let call = Call::ALL[usize::from(choice) % Call::ALL.len()];
        match (call, choice / 64) {
            // A refused release leaks, as it has to.
            (Call::Release, _) => {}
            (_, 0) => self.failing().fail_always(call),
            (_, 1) => self.failing().fail(call, 2),
            (_, 2) => self.failing().fail_any(1 + u32::from(choice % 8)),
            _ => self.failing().fail(call, 1),
        }
    }

    fn alloc(&mut self, size: usize, pool: usize) {
        let before = self.arena.sizes();
        let pool = self.pools[pool];
        match self.arena.alloc_tracts(size, pool) {
            Ok(block) => {
                assert_eq!(block.size(), size.next_multiple_of(GRAIN));
                let apart = |(other, ..): &(Block, PoolId, u8)| !other.range().overlaps(block.range());
                assert!(self.out.iter().all(apart), "blocks do not overlap");
                self.next_content = self.next_content.wrapping_add(1);
                // SAFETY: allocated just now.
                unsafe { block.base().write_bytes(self.next_content, block.size()) };
                self.out.push((block, pool, self.next_content));
            }
            Err(error) => {
                self.assert_cause(error, before.commit_limit);
                assert!(self.arena.sizes().committed <= before.committed + PAGE * PAGES);
            }
        }
    }

    /// Every refusal has the cause that its error names.
    fn assert_cause(&self, error: Error, limit: usize) {
        match error {
            Error::Frozen => assert!(self.arena.is_frozen()),
            Error::CommitLimit => assert!(limit < usize::MAX),
            Error::Limit => {}
            Error::Memory | Error::Resource | Error::ResourceLimit { .. } => {
                assert!(self.arena.last_refusal().is_some())
            }
            unexpected => panic!("{unexpected:?}"),
        }
    }

    /// Frees a block, or one end of it.
    fn free(&mut self, which: usize, part: usize) {
        let Some(which) = which.checked_rem(self.out.len()) else { return };
        let (block, pool, content) = self.out.swap_remove(which);
        assert_kept(block, content);
        let grains = block.size() / GRAIN;
        let (front, back) = block.split_at(part % grains * GRAIN).unwrap();
        if front.size() > 0 {
            self.out.push((front, pool, content));
        }
        // SAFETY: whole grains from the arena, freed once, and unused from here
        // on.
        unsafe { self.arena.free_tracts(back, pool) };
    }

    fn alloc_descriptor(&mut self) {
        match self.arena.alloc_descriptor(DESCRIPTOR) {
            Ok(descriptor) => {
                assert!(!self.descriptors.contains(&descriptor), "descriptors are apart");
                // SAFETY: allocated just now.
                unsafe { descriptor.write_bytes(0x5c, DESCRIPTOR.size()) };
                self.descriptors.push(descriptor);
            }
            Err(error) => self.assert_cause(error, self.arena.sizes().commit_limit),
        }
    }

    fn free_descriptor(&mut self, which: usize) {
        let Some(which) = which.checked_rem(self.descriptors.len()) else { return };
        let descriptor = self.descriptors.swap_remove(which);
        // SAFETY: allocated with this layout, and initialised.
        let bytes = unsafe { core::slice::from_raw_parts(descriptor.as_ptr(), DESCRIPTOR.size()) };
        assert!(bytes.iter().all(|&byte| byte == 0x5c), "descriptors keep their contents");
        // SAFETY: allocated with this layout, freed once, unused from here on.
        unsafe { self.arena.free_descriptor(descriptor, DESCRIPTOR) };
    }

    fn dismiss(&mut self, which: usize) {
        let pool = self.pools[which];
        // SAFETY: the pool was registered before, and all its blocks have been
        // freed.
        unsafe { self.arena.unregister(pool) };
        self.out.retain(|(_, owner, _)| *owner != pool);
        self.pools[which] = self.arena.register().unwrap();
    }

    fn trim_or_prefault(&self, choice: u8) {
        if choice & 1 == 0 {
            let before = self.arena.sizes();
            let trimmed = self.arena.trim();
            assert_eq!(self.arena.sizes().committed, before.committed - trimmed);
            assert!(trimmed <= before.spare);
        } else {
            match self.arena.prefault() {
                Ok(size) => assert_eq!(size, self.arena.sizes().committed),
                Err(error) => assert_eq!(error, Error::Memory),
            }
        }
    }

    fn set_limit(&self, limit: usize) {
        match self.arena.set_commit_limit(limit) {
            Ok(()) => assert_eq!(self.arena.sizes().commit_limit, limit),
            Err(error) => assert_eq!(error, Error::CommitLimit),
        }
        assert!(self.arena.sizes().committed <= self.arena.sizes().commit_limit);
    }

    fn freeze_or_thaw(&self, choice: u8) {
        if choice.is_multiple_of(4) { self.arena.freeze() } else { self.arena.thaw() }
    }

    fn in_use(&self) -> usize {
        self.out.iter().map(|(block, ..)| block.size()).sum()
    }

    fn assert_sums(&self) {
        let sizes = self.arena.sizes();
        assert_eq!(sizes.committed, sizes.own + sizes.spare + self.in_use(), "no byte is lost");
        assert!(sizes.committed <= sizes.committed_high_water && sizes.committed <= sizes.commit_limit);
        for (block, pool, _) in &self.out {
            assert_eq!(self.arena.pool_of(block.range().base()), Some(*pool));
        }
    }

    /// Once nothing is refused, all that was lost to refusals is available
    /// again.
    fn finish(&mut self) {
        self.heal();
        self.arena.thaw();
        self.arena.set_commit_limit(usize::MAX).unwrap();
        while !self.out.is_empty() {
            self.free(0, 0);
        }
        while !self.descriptors.is_empty() {
            self.free_descriptor(0);
        }
        self.arena.trim();
        self.heal();
        self.assert_sums();
        let sizes = self.arena.sizes();
        assert_eq!((sizes.spare, sizes.committed), (0, sizes.own));
        self.alloc(1, 0);
        assert_eq!(self.out.len(), 1, "usable once nothing is refused");
    }
}

fn assert_kept(block: Block, content: u8) {
    // SAFETY: the block is allocated, and was filled.
    let bytes = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), block.size()) };
    // All bytes are the same if each equals the next.
    assert!(bytes[0] == content && bytes[1..] == bytes[..bytes.len() - 1], "blocks keep their contents");
}

#[repr(C, align(4096))]
struct Pages([u8; RESERVE]);

thread_local! {
    /// What the platform of a thread reserves, used again by every input: fresh pages
    /// would cost more time than the search itself.
    static RESERVATION: Cell<Option<Box<Pages>>> = Cell::new(Some(Box::new(Pages([0; RESERVE]))));
}

/// A platform with room for one reservation, which checks that the arena does its
/// duties.
#[derive(Debug)]
struct Ground(Mutex<State>);

/// One bit for each page.
#[derive(Debug, Default)]
struct State {
    base: Option<NonNull<u8>>,
    committed: u64,
    locked: u64,
}

// SAFETY: the pages are an allocation of the platform's own, which any thread may
// use.
unsafe impl Send for State {}

impl Ground {
    fn new() -> Self {
        Self(Mutex::default())
    }

    /// Checks the duties of every call, and returns the bits of the pages.
    fn update(&self, base: NonNull<u8>, size: usize, change: impl FnOnce(&mut State, u64)) {
        let mut state = self.0.lock().unwrap();
        let start = state.base.expect("reserved").addr().get();
        let offset = base.addr().get().checked_sub(start).expect("within the reservation");
        assert!(size > 0 && offset + size <= RESERVE, "within the reservation, and not nothing");
        assert!(offset.is_multiple_of(PAGE) && size.is_multiple_of(PAGE), "whole pages");
        let bits = (u64::MAX >> (PAGES - size / PAGE)) << (offset / PAGE);
        change(&mut state, bits);
    }
}

// SAFETY: a reservation is an allocation of its own, zeroed, valid from its reserve
// to its release; contents change only in `decommit`, to zero. The page size is a
// constant power of two.
unsafe impl Platform for Ground {
    fn name(&self) -> &'static str {
        "ground"
    }

    fn page_size(&self) -> usize {
        PAGE
    }

    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError> {
        assert!(size == RESERVE && align <= align_of::<Pages>());
        let mut pages = RESERVATION.take().expect("reserved once");
        pages.0.fill(0);
        let pages = NonNull::from(Box::leak(pages)).cast();
        let mut state = self.0.lock().unwrap();
        assert!(state.base.replace(pages).is_none(), "reserved once");
        Ok(pages)
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize, _align: usize) -> Result<(), PlatformError> {
        self.update(base, size, |state, bits| {
            assert_eq!(bits, u64::MAX, "all of it");
            state.base = None;
        });
        // SAFETY: leaked by `reserve`, and released once.
        RESERVATION.set(Some(unsafe { Box::from_raw(base.cast::<Pages>().as_ptr()) }));
        Ok(())
    }

    unsafe fn commit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.update(base, size, |state, bits| state.committed |= bits);
        Ok(())
    }

    unsafe fn decommit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.update(base, size, |state, bits| {
            assert_eq!(state.locked & bits, 0, "locked pages are not decommitted");
            state.committed &= !bits;
        });
        // SAFETY: pages of the reservation that no code uses.
        unsafe { base.write_bytes(0, size) };
        Ok(())
    }

    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.update(base, size, |state, bits| assert_eq!(state.committed & bits, bits, "committed"));
        Ok(())
    }

    unsafe fn populate_in_use(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: this `populate` only looks at the bits of the pages, and
        // touches no memory.
        unsafe { self.populate(base, size) }
    }

    unsafe fn advise_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.update(base, size, |_, _| {});
        Ok(())
    }

    unsafe fn lock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.update(base, size, |state, bits| {
            assert_eq!(state.committed & bits, bits, "committed");
            state.locked |= bits;
        });
        Ok(())
    }

    unsafe fn unlock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.update(base, size, |state, bits| state.locked &= !bits);
        Ok(())
    }

    unsafe fn no_inherit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        self.update(base, size, |_, _| {});
        Ok(())
    }
}
