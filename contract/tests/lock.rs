//! Locking the process's memory: code and data do not fault when they are first used. Each
//! test runs in a process of its own, because the lock is for a whole process
//! (design/contract.md `.lock`).
#![cfg(tripoint_kernel)]

mod common;

use core::ptr;
use std::io::Write;
use std::os::fd::AsRawFd;

use common::{armed, contract, in_child};
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_contract::internal::{Kernel, LinuxKernel, lock_memory_on};
use tripoint_contract::linux::Faults;
use tripoint_contract::linux::{LockedMemory, lock_memory};
use tripoint_contract::mock::{Calls, Failing, REFUSED};
use tripoint_contract::{DetectorSet, HotThread};
use tripoint_core::Arena;

const PAGE: usize = 4096;
const PAGES: usize = 300;

/// A library as the loader maps it: a file that is mapped for execution, and that nothing has
/// touched. No page of it is in this process.
fn map_library() -> *const u8 {
    let path = std::env::temp_dir().join(format!("tripoint-lock-{}", std::process::id()));
    let mut file = std::fs::File::create_new(&path).unwrap();
    file.write_all(&vec![0x90; PAGES * PAGE]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let access = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
    let base =
        unsafe { libc::mmap(ptr::null_mut(), PAGES * PAGE, access, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
    assert_ne!(base, libc::MAP_FAILED);
    // SAFETY: the mapping, whose pages may be brought in one by one.
    assert_eq!(unsafe { libc::madvise(base, PAGES * PAGE, libc::MADV_RANDOM) }, 0);
    std::fs::remove_file(path).unwrap();
    base.cast()
}

/// Reads each page once. Returns how many faults that takes.
#[inline(never)]
fn faults_of_reading(base: *const u8) -> u64 {
    let before = LinuxKernel.thread_faults().unwrap();
    for page in 0..PAGES {
        // SAFETY: the first byte of a page of the mapping.
        core::hint::black_box(unsafe { base.add(page * PAGE).read_volatile() });
    }
    let Faults { minor, major } = LinuxKernel.thread_faults().unwrap();
    minor + major - before.minor - before.major
}

fn lock_with(refused: Calls) -> LockedMemory {
    lock_memory_on(&Failing::new(LinuxKernel, refused), &[])
}

/// The faults of code that first runs after `lock` locked what it could.
fn faults_after(lock: impl FnOnce() -> LockedMemory) -> (u64, LockedMemory) {
    // The test's own code has run before.
    let other = map_library();
    assert!(faults_of_reading(other) > 0, "the control: unlocked code faults");
    let library = map_library();
    let locked = lock();
    (faults_of_reading(library), locked)
}

#[test]
fn code_that_is_locked_does_not_fault() {
    let Some(child) = in_child("code_that_is_locked_does_not_fault") else {
        let (faults, locked) = faults_after(|| lock_memory(&[]));
        if !locked.is_whole() {
            tripoint_oracle::skipped!("the limit of locked memory is too small here: {locked}");
            return;
        }
        assert_eq!(faults, 0);
        assert!(locked.code > PAGES * PAGE && locked.data > 0 && locked.refused == 0, "{locked:?}");
        assert!(!locked.to_string().contains("refused"), "{locked}");
        assert!(lock_memory(&[]).is_whole(), "and again");
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

/// If nothing may be locked, code is still brought in, and the outcome says so.
#[test]
fn code_that_cannot_be_locked_is_brought_in() {
    let Some(child) = in_child("code_that_cannot_be_locked_is_brought_in") else {
        let (faults, locked) = faults_after(|| lock_with(Calls::LOCK));
        assert!((locked.code, locked.data, locked.error) == (0, 0, Some(REFUSED)), "{locked:?}");
        if locked.brought_in == 0 {
            tripoint_oracle::skipped!("this kernel brings nothing in");
            return;
        }
        assert_eq!(faults, 0);
        assert!(locked.to_string().contains("raise the limit of locked memory"), "{locked}");
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn what_is_refused_altogether_faults_and_is_said() {
    let Some(child) = in_child("what_is_refused_altogether_faults_and_is_said") else {
        let (faults, locked) = faults_after(|| lock_with(Calls::LOCK | Calls::BRING_IN));
        assert!(faults > 0);
        assert!(locked.refused > PAGES * PAGE && locked.error == Some(REFUSED), "{locked:?}");
        assert!(!locked.is_whole());
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn if_mappings_cannot_be_read_nothing_is_locked() {
    let locked = lock_with(Calls::READ);
    assert_eq!(locked, LockedMemory { error: Some(REFUSED), ..LockedMemory::default() });
    assert!(!locked.is_whole());
}

/// The limit is raised as far as possible; if it cannot be, less is locked, without harm.
#[test]
fn the_limit_is_raised_first() {
    let Some(child) = in_child("the_limit_is_raised_first") else {
        let limit = || {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: valid to write.
            assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) }, 0);
            limit
        };
        let lower = libc::rlimit { rlim_cur: 0, ..limit() };
        // SAFETY: valid to read.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const lower) }, 0);
        let _ = lock_with(Calls::RAISE_LOCK_LIMIT);
        assert_eq!(limit().rlim_cur, 0);
        let _ = lock_memory(&[]);
        assert_eq!(limit().rlim_cur, limit().rlim_max);
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

/// An arena returns memory, which locked pages do not allow: so it locks its own memory.
#[test]
fn arenas_are_left_to_their_own_option() {
    let Some(child) = in_child("arenas_are_left_to_their_own_option") else {
        let options = ArenaVmOptions { reserve: 1 << 30, spare_share: 100, ..Default::default() };
        let arena = ArenaVm::create(options).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(1 << 20, pool).unwrap();
        let _ = lock_memory(&[&arena]);
        // SAFETY: all of the tracts just allocated; nothing uses them.
        unsafe { arena.free_tracts(block, pool) };
        assert!(arena.trim() >= 1 << 20);
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

/// Under a limit of addresses an arena has its range only in part (design/arena-vm.md `.reserve.grow`).
#[test]
fn what_others_have_in_the_range_of_an_arena_is_locked() {
    let Some(child) = in_child("what_others_have_in_the_range_of_an_arena_is_locked") else {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let mapped = statm.split(' ').next().unwrap().parse::<libc::rlim_t>().unwrap() * PAGE as libc::rlim_t;
        let limits = libc::rlimit { rlim_cur: mapped + (400 << 20), rlim_max: mapped + (400 << 20) };
        // SAFETY: the pointer is to a whole `rlimit`, which the call only reads.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limits) }, 0);
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let range = arena.range();
        assert!(arena.reserved() < range.size());
        let place = ptr::without_provenance_mut(range.limit().get() - PAGES * PAGE);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: new addresses, where nothing is.
        assert_eq!(unsafe { libc::mmap(place, PAGE, access, flags, -1, 0) }, place);
        if !lock_memory(&[&arena]).is_whole() {
            tripoint_oracle::skipped!("not everything may be locked here");
            return;
        }
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let theirs = smaps.split_once(&format!("{:x}-", place.addr())).unwrap().1;
        let flags = theirs.lines().find(|line| line.starts_with("VmFlags:")).unwrap();
        assert!(flags.contains(" lo"), "{flags}");
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

/// A process that locks all that it maps faults on no fresh page, and its traps work all the same.
#[test]
fn traps_are_live_in_a_process_that_locks_all_it_maps() {
    let Some(child) = in_child("traps_are_live_in_a_process_that_locks_all_it_maps") else {
        let live = || {
            let arm = || {
                let hot = HotThread { detectors: DetectorSet::FAULT_TRAP, ..HotThread::new("hot") };
                armed(contract(), hot).slot().live()
            };
            std::thread::spawn(arm).join().unwrap()
        };
        let before = live();
        // SAFETY: takes a number.
        if unsafe { libc::mlockall(libc::MCL_FUTURE) } != 0 {
            tripoint_oracle::skipped!("nothing may be locked here");
            return;
        }
        assert_eq!(live(), before);
        return;
    };
    assert!(child.status.success(), "{child:?}");
}
