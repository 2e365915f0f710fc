//! The size of a core: memory that was used, not addresses that were reserved, also after
//! a decommit (design/arena-vm.md `.dump`).
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

mod child;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::{AddrRange, Arena};

use child::in_child;

const MIB: usize = 1 << 20;

/// An empty directory of the test's own.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("core-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Whether the kernel writes a core into the working directory of the process that
/// crashes. Otherwise there is nothing to measure: a program or another place gets it.
fn dumps_here() -> bool {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let here = pattern.starts_with(|first: char| first != '|' && first != '/');
    if !here {
        tripoint_oracle::skipped!("cores go to {pattern}");
    }
    here
}

/// The size of the core of a child that runs `before_the_crash` and aborts; `None` if it
/// may not write one.
fn core_size(name: &str, before_the_crash: impl FnOnce()) -> Option<u64> {
    let place = scratch(name);
    let outcome = in_child(|| {
        std::env::set_current_dir(&place).unwrap();
        let most = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the pointer is to a whole `rlimit`, which the call only reads.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const most) };
        before_the_crash();
        // SAFETY: ends the child and has no duties.
        unsafe { libc::abort() };
    });
    assert_eq!(outcome, Err(libc::SIGABRT));
    let core = fs::read_dir(&place).unwrap().next().map(|file| file.unwrap().metadata().unwrap().len());
    fs::remove_dir_all(&place).unwrap();
    if core.is_none() {
        tripoint_oracle::skipped!("no core may be written (ulimit -Hc)");
    }
    core
}

#[test]
fn a_crash_after_a_decommit_writes_what_was_used() {
    if !dumps_here() {
        return;
    }
    let size = core_size("arena", || {
        let arena = ArenaVm::create(ArenaVmOptions { spare_share: 0, ..Default::default() }).unwrap();
        assert_eq!(arena.reserved(), 2 << 40);
        let pool = arena.register().unwrap();
        let blocks: Vec<_> = (0..32).map(|_| arena.alloc_tracts(MIB, pool).unwrap()).collect();
        for (index, block) in blocks.into_iter().enumerate() {
            // SAFETY: allocated above; every second is freed once, and unused then.
            unsafe {
                block.base().write_bytes(1, block.size());
                if index % 2 == 0 {
                    arena.free_tracts(block, pool);
                }
            }
        }
        assert_eq!(arena.sizes().spare, 0);
        // The arena has to exist when the child crashes.
        core::mem::forget(arena);
    });
    if let Some(size) = size {
        println!("a core of {} MiB with 16 MiB in use of 2 TiB", size >> 20);
        assert!((16 * MIB as u64..512 * MIB as u64).contains(&size), "{size}");
    }
}

/// The control: memory that is given back by advice, and then closed, makes the kernel take
/// the whole reservation for written.
#[test]
fn the_measurement_sees_a_reservation_that_is_dumped() {
    const RESERVED: usize = 4 << 30;
    const PART: usize = 64 << 10;
    if !dumps_here() {
        return;
    }
    let size = core_size("control", || {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new addresses; part of them is opened, written, given back and closed.
        unsafe {
            let base = libc::mmap(core::ptr::null_mut(), RESERVED, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(base, PART, libc::PROT_READ | libc::PROT_WRITE), 0);
            base.write_bytes(1, PART);
            assert_eq!(libc::madvise(base, PART, libc::MADV_DONTNEED), 0);
            assert_eq!(libc::mprotect(base, PART, libc::PROT_NONE), 0);
        }
    });
    if let Some(size) = size {
        assert!(size >= RESERVED as u64, "{size}");
    }
}

/// The bytes of an arena's mappings, by whether they are accessible and whether a debugger that dumps the process leaves them
/// out.
fn mappings_of(range: AddrRange) -> BTreeMap<(bool, bool), usize> {
    let text = fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut sums, mut current) = (BTreeMap::new(), None);
    for line in text.lines() {
        let word = line.split(' ').next().unwrap();
        if let Some((base, end)) = word.split_once('-') {
            let [base, end] = [base, end].map(|hex| usize::from_str_radix(hex, 16).unwrap());
            let size = end.min(range.limit().get()).saturating_sub(base.max(range.base().get()));
            current = Some((size, line.contains(" rw-p ")));
        } else if let Some(flags) = line.strip_prefix("VmFlags:") {
            let (size, is_accessible) = current.unwrap();
            *sums.entry((is_accessible, flags.contains(" dd"))).or_default() += size;
        }
    }
    sums.retain(|_, size| *size > 0);
    sums
}

#[test]
fn debuggers_leave_out_addresses_and_dump_memory() {
    let arena = ArenaVm::create(ArenaVmOptions { spare_share: 0, ..Default::default() }).unwrap();
    let pool = arena.register().unwrap();
    let all_as_expected = |least: usize| {
        let found = mappings_of(arena.range());
        let memory = found[&(true, false)];
        assert!((least..least + 16 * MIB).contains(&memory), "{found:?}");
        assert_eq!(found.keys().collect::<Vec<_>>(), [&(false, true), &(true, false)], "{found:?}");
    };
    let [first, second] = [(); 2].map(|()| arena.alloc_tracts(32 * MIB, pool).unwrap());
    all_as_expected(64 * MIB);
    // SAFETY: allocated above, and freed once.
    unsafe { arena.free_tracts(first, pool) };
    all_as_expected(32 * MIB);
    let again = arena.alloc_tracts(32 * MIB, pool).unwrap();
    all_as_expected(64 * MIB);
    for block in [second, again] {
        // SAFETY: allocated above, and freed once.
        unsafe { arena.free_tracts(block, pool) };
    }
}
