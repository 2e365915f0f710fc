//! What only Linux can show: page faults, locked pages, and children.

use core::alloc::Layout;
use core::ffi::c_long;
use core::mem::MaybeUninit;

use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Native, Platform, Prefault};
use tripoint_core::{Addr, Arena, Block, Check, CheckLevel, Error};

use crate::child::in_child;
use crate::common::{GRAIN, small};

/// Page faults of this thread so far that needed no disk.
fn minor_faults() -> c_long {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a `rusage`, which the call fills.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) }, 0);
    // SAFETY: filled by the call; zeroed before.
    unsafe { usage.assume_init() }.ru_minflt
}

/// The faults of writing a byte to every page of a block.
pub(crate) fn faults_of_touching(block: Block) -> c_long {
    minor_faults();
    let before = minor_faults();
    for offset in (0..block.size()).step_by(4096) {
        // SAFETY: the test holds the block, and the offset lies in it.
        unsafe { block.base().add(offset).write_volatile(1) };
    }
    minor_faults() - before
}

const PAGES: c_long = 4 * GRAIN as c_long / 4096;

pub(crate) fn tracts_of(options: ArenaVmOptions) -> (ArenaVm, Block) {
    let arena = ArenaVm::create(options).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(4 * GRAIN, pool).unwrap();
    (arena, block)
}

#[test]
fn touching_prefaulted_tracts_never_faults() {
    for prefault in [Prefault::AtFill, Prefault::Size(GRAIN), Prefault::Size(8 * GRAIN)] {
        let (_arena, block) = tracts_of(ArenaVmOptions { prefault, ..small() });
        assert_eq!(faults_of_touching(block), 0, "{prefault:?}");
    }
}

#[test]
fn touching_other_tracts_does() {
    // The control: without prefaulting the same measurement sees every page.
    let (_arena, block) = tracts_of(small());
    assert_eq!(faults_of_touching(block), PAGES);
    assert_eq!(faults_of_touching(block), 0);
}

#[test]
fn warming_up_makes_up_for_it() {
    let (arena, block) = tracts_of(small());
    assert_eq!(arena.prefault(), Ok(arena.sizes().committed));
    assert_eq!(faults_of_touching(block), 0);
}

#[test]
fn trimmed_memory_faults_again_unless_prefaulted() {
    for (prefault, faults) in [(Prefault::None, PAGES), (Prefault::AtFill, 0)] {
        let (arena, block) = tracts_of(ArenaVmOptions { prefault, spare_share: 100, ..small() });
        assert_eq!(faults_of_touching(block), faults);
        let pool = arena.pool_of(block.range().base()).unwrap();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!(arena.trim(), 4 * GRAIN);
        let again = arena.alloc_tracts(4 * GRAIN, pool).unwrap();
        assert_eq!(faults_of_touching(again), faults);
    }
}

#[test]
fn locked_tracts_never_fault() {
    // 64 KiB are locked wherever any limit allows locking at all.
    let arena = ArenaVm::create(ArenaVmOptions { lock: true, grain: 4096, ..small() }).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(8 * 4096, pool).unwrap();
    assert_eq!(faults_of_touching(block), 0);
    // SAFETY: allocated above, freed once, unused.
    unsafe { arena.free_tracts(block, pool) };
    assert_eq!((arena.trim(), arena.sizes().spare), (8 * 4096, 0), "locked memory can be decommitted");
}

#[test]
fn children_inherit_the_arena_or_do_not() {
    for (inherit_on_fork, outcome) in [(true, Ok(0)), (false, Err(libc::SIGSEGV))] {
        let (_arena, block) = tracts_of(ArenaVmOptions { inherit_on_fork, ..small() });
        faults_of_touching(block);
        let touch = || {
            // SAFETY: the parent holds the block; the child has a copy, or dies.
            unsafe { block.base().write_volatile(2) };
        };
        assert_eq!(in_child(touch), outcome);
        // SAFETY: the test holds the block, whose first byte it wrote.
        assert_eq!(unsafe { block.base().read_volatile() }, 1, "the parent's copy is its own");
    }
}

#[test]
fn what_is_not_committed_is_not_memory() {
    let arena = ArenaVm::create(ArenaVmOptions { spare_share: 0, ..small() }).unwrap();
    let pool = arena.register().unwrap();
    let blocks = [0; 2].map(|_| arena.alloc_tracts(GRAIN, pool).unwrap());
    // SAFETY: allocated above, freed once; only a child touches it once more.
    unsafe { arena.free_tracts(blocks[0], pool) };
    let (decommitted, reserved) = (blocks[0].base(), blocks[1].limit());
    for (place, outcome) in
        [(decommitted, Err(libc::SIGSEGV)), (reserved, Err(libc::SIGSEGV)), (blocks[1].base(), Ok(0))]
    {
        let touch = || {
            // SAFETY: not upheld if the page is not committed: the child is
            // expected to die of it.
            unsafe { place.write_volatile(2) };
        };
        assert_eq!(in_child(touch), outcome);
    }
}

/// (design/arena-vm.md `.guard`)
#[test]
fn who_runs_past_the_end_meets_a_guard() {
    for (guard, outcome) in [(true, Err(libc::SIGSEGV)), (false, Ok(0))] {
        let arena = ArenaVm::create(ArenaVmOptions { guard, ..small() }).unwrap();
        let pools = [0; 2].map(|_| arena.register().unwrap());
        let overrun = |block: Block| {
            let limit = block.limit();
            // SAFETY: not upheld if there is a guard: the child is expected to die
            // of it. Without one a copy of the other pool's memory is written.
            in_child(|| unsafe { limit.write_volatile(2) })
        };
        let first = arena.alloc_tracts(4 * GRAIN, pools[0]).unwrap();
        let second = arena.alloc_tracts(4 * GRAIN, pools[1]).unwrap();
        assert_eq!(overrun(first), outcome);
        // A part that is kept gets a guard of its own before others follow it.
        let (kept, freed) = first.split_at(2 * GRAIN).unwrap();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(freed, pools[0]) };
        let third = arena.alloc_tracts(GRAIN, pools[1]).unwrap();
        assert_eq!(overrun(kept), outcome);
        let between = third.range().base().get() - kept.range().limit().get();
        assert_eq!(between, if guard { GRAIN } else { 0 }, "as close as may be");
        if guard {
            assert_eq!(overrun(third), outcome);
        }
        // What guards take is not committed, and comes back.
        let sizes = arena.sizes();
        assert_eq!(sizes.committed - sizes.spare - sizes.own, 7 * GRAIN);
        for (block, pool) in [(kept, pools[0]), (second, pools[1]), (third, pools[1])] {
            // SAFETY: allocated above, freed once, unused.
            unsafe { arena.free_tracts(block, pool) };
        }
        arena.trim();
        assert_eq!(arena.sizes().committed, arena.sizes().own);
        assert_eq!(arena.alloc_tracts(GRAIN, pools[0]).unwrap().base(), first.base());
        arena.check(CheckLevel::Deep).unwrap();
    }
}

/// The kernel's mappings that lie in an arena: permissions and flags of each.
fn mappings<P: Platform>(arena: &ArenaVm<P>) -> Vec<(String, String)> {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut inside = false;
    let mut permissions = String::new();
    let mut found = Vec::new();
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        if let Some(start) =
            first.split_once('-').and_then(|(start, _)| usize::from_str_radix(start, 16).ok())
        {
            inside = arena.contains(Addr::new(start));
            permissions = second.to_string();
        } else if inside && first == "VmFlags:" {
            found.push((permissions.clone(), line.to_string()));
        }
    }
    found
}

#[test]
fn commits_next_to_each_other_make_one_mapping() {
    let arena = ArenaVm::create(small()).unwrap();
    let pool = arena.register().unwrap();
    for _ in 0..20 {
        arena.alloc_tracts(GRAIN, pool).unwrap();
        arena.alloc_descriptor(Layout::from_size_align(512, 64).unwrap()).unwrap();
    }
    let writable = mappings(&arena).iter().filter(|(permissions, _)| permissions == "rw-p").count();
    assert!((1..=2).contains(&writable), "the table with the descriptors, and the tracts: {writable}");
}

#[test]
fn the_kernel_is_told_what_holds_for_the_whole_range() {
    let plain = ArenaVm::create(small()).unwrap();
    assert!(mappings(&plain).iter().all(|(_, flags)| !flags.contains(" dc") && !flags.contains(" hg")));
    let alone = ArenaVm::create(ArenaVmOptions { inherit_on_fork: false, ..small() }).unwrap();
    assert!(mappings(&alone).iter().all(|(_, flags)| flags.contains(" dc")));
    let options = ArenaVmOptions { huge_pages: true, reserve: 16 << 20, reserve_floor: 16 << 20, ..small() };
    let huge = ArenaVm::create(options).unwrap();
    assert!(mappings(&huge).iter().any(|(_, flags)| flags.contains(" hg")));
    let pool = huge.register().unwrap();
    let first = huge.alloc_tracts(GRAIN, pool).unwrap();
    assert_eq!(first.base().addr().get() % (2 << 20), 0, "grain zero can begin a huge page");
}

#[test]
#[cfg(target_pointer_width = "64")]
fn aligning_a_reservation_leaves_nothing_behind() {
    // What is left behind each time would use up all addresses well before the end.
    const SIZE: usize = 1 << 40;
    let platform = Native::new();
    for round in 0..1000 {
        let size = SIZE >> (round % 2);
        let base = platform.reserve(size, SIZE).unwrap();
        // SAFETY: reserved above, released once, unused.
        unsafe { platform.release(base, size, SIZE) }.unwrap();
    }
}

/// Also if this was asked for later, and refused at first.
#[test]
fn an_arena_that_children_are_not_to_have_stays_theirs_no_more() {
    let failing = Failing::new(Native::new());
    let arena = ArenaVm::create_on(&failing, ArenaVmOptions { spare_share: 0, ..small() }).unwrap();
    let pool = arena.register().unwrap();
    let reopened = || {
        let block = arena.alloc_tracts(GRAIN, pool).unwrap();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        let block = arena.alloc_tracts(GRAIN, pool).unwrap();
        // SAFETY: the parent holds the block; the child has a copy, or dies.
        in_child(|| unsafe { block.base().write_volatile(2) })
    };
    failing.fail(Call::NoInherit, 1);
    assert_eq!(arena.keep_from_children(), Err(Error::Resource));
    assert_eq!(reopened(), Ok(0));
    arena.keep_from_children().unwrap();
    assert_eq!(reopened(), Err(libc::SIGSEGV));
}

/// (design/arena-vm.md `.linux`)
#[test]
fn what_was_advised_holds_for_memory_that_was_closed_and_opened_again() {
    let options = ArenaVmOptions {
        inherit_on_fork: false,
        huge_pages: true,
        spare_share: 0,
        reserve: 16 << 20,
        reserve_floor: 16 << 20,
        ..small()
    };
    let (arena, block) = tracts_of(options);
    let pool = arena.pool_of(block.range().base()).unwrap();
    // SAFETY: allocated above, freed once, unused.
    unsafe { arena.free_tracts(block, pool) };
    assert_eq!(arena.alloc_tracts(4 * GRAIN, pool), Ok(block));
    let open: Vec<_> =
        mappings(&arena).into_iter().filter(|(permissions, _)| permissions == "rw-p").collect();
    assert!(open.iter().all(|(_, flags)| flags.contains(" dc")), "{open:?}");
    assert!(open.iter().any(|(_, flags)| flags.contains(" hg")), "{open:?}");
    // SAFETY: the parent holds the block; the child dies.
    let touch = || unsafe { block.base().write_volatile(2) };
    assert_eq!(in_child(touch), Err(libc::SIGSEGV));
}
