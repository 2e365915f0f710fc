//! What only Linux can show of watched writes: children, limits, filters, huge pages (design/arena-vm.md `.watch`).

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::thread;

use tripoint_arena_vm::mock::Failing;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Native, Platform, Prefault};
use tripoint_core::internal::Defer;
use tripoint_core::{Arena, Block, Error};
use tripoint_oracle::Party;

use crate::child::in_child;
use crate::common::{GRAIN, small};
use crate::linux::tracts_of;
use crate::old_kernel::without;
use crate::refused_addresses::{LIMIT, refused};
use crate::written::{all, taken, touch, watch_of};

fn page_of(arena: &ArenaVm) -> usize {
    arena.platform().page_size()
}

/// An arena and a block of it that is watched, and nothing of it was written since; `None` if this machine has no
/// watch.
fn watched(options: ArenaVmOptions) -> Option<(ArenaVm, Block)> {
    let (arena, block) = tracts_of(options);
    let page = page_of(&arena);
    (0..block.size() / page).for_each(|index| _ = touch(block, page, index));
    assert_eq!(taken(watch_of(&arena)?, block, page), Some(all(block, page)));
    Some((arena, block))
}

/// The numbers of the open descriptors of this process, without the one that lists them.
fn descriptors() -> BTreeSet<i32> {
    let numbers = |name: fs::DirEntry| name.file_name().to_str().unwrap().parse().unwrap();
    let listed: Vec<i32> =
        fs::read_dir("/proc/self/fd").unwrap().map(|entry| numbers(entry.unwrap())).collect();
    // SAFETY: takes numbers only. The list's own descriptor was closed with it.
    listed.into_iter().filter(|&number| unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0).collect()
}

/// (design/arena-vm.md `.watch.fork`)
#[test]
fn a_child_knows_nothing_until_it_opens_a_watch_of_its_own() {
    let Some((arena, block)) = watched(small()) else { return };
    let page = page_of(&arena);
    let watch = arena.write_watch().unwrap();
    let before = touch(block, page, 1);
    let outcome = in_child(|| {
        touch(block, page, 2);
        assert_eq!(taken(watch, block, page), None);
        let Some(own) = watch_of(&arena) else { return };
        // The kernel protects nothing in a child: all of it counts as written.
        assert_eq!(taken(own, block, page), Some(all(block, page)));
        let written = touch(block, page, 3);
        assert_eq!(taken(own, block, page), Some(BTreeSet::from([written])));
        // So it is in a child of the child.
        let outcome = in_child(|| {
            touch(block, page, 4);
            assert_eq!(taken(own, block, page), None);
            if let Some(own) = watch_of(&arena) {
                assert!(taken(own, block, page).is_some());
            }
        });
        assert_eq!(outcome, Ok(0));
        let written = touch(block, page, 5);
        assert_eq!(taken(own, block, page), Some(BTreeSet::from([written])));
    });
    assert_eq!(outcome, Ok(0));
    assert_eq!(
        taken(watch, block, page),
        Some(BTreeSet::from([before])),
        "a child does not disturb its parent"
    );
    // The child drops its copy, and the parent the arena.
    assert_eq!(in_child(move || drop(arena)), Ok(0));
}

/// A fork makes pages read-only in the parent, too, until they are copied.
#[test]
fn what_a_parent_writes_while_a_child_lives_is_known() {
    let Some((arena, block)) = watched(small()) else { return };
    let page = page_of(&arena);
    let mut ends = [0; 2];
    // SAFETY: the pointer is to two numbers, which the call fills.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    // SAFETY: the child only waits and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut byte = 0u8;
        // SAFETY: closes the child's copy of the writing end, waits for the parent to close its own, and exits.
        unsafe {
            libc::close(ends[1]);
            libc::read(ends[0], (&raw mut byte).cast(), 1);
            libc::_exit(0);
        }
    }
    let watch = arena.write_watch().unwrap();
    let written = BTreeSet::from([0, 7, 9].map(|index| touch(block, page, index)));
    let found = taken(watch, block, page);
    // SAFETY: both ends are this test's.
    unsafe { (libc::close(ends[0]), libc::close(ends[1])) };
    let mut status = 0;
    // SAFETY: the status is a word of this function.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(found, Some(written));
}

#[test]
fn descriptors_are_closed_with_the_arena_and_by_exec() {
    let outcome = in_child(|| {
        let before = descriptors();
        let arenas = [0; 3].map(|_| watched(small()));
        let opened: Vec<i32> = descriptors().difference(&before).copied().collect();
        let count = arenas.iter().flatten().count();
        assert_eq!(opened.len(), 2 * count, "two for each arena that is watched");
        for number in opened {
            // SAFETY: takes numbers only.
            assert_eq!(unsafe { libc::fcntl(number, libc::F_GETFD) } & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
        }
        drop(arenas);
        assert_eq!(descriptors(), before);
    });
    assert_eq!(outcome, Ok(0));
}

/// A program that closes all descriptors, as daemons do, ends the watch. That is found out, and the next question opens it
/// anew, whether the numbers are those of other files by then or not. Those are not closed (design/arena-vm.md
/// `.watch.lost`).
#[test]
fn descriptors_that_a_program_closed_are_found_out() {
    for are_used_again in [false, true] {
        let outcome = in_child(|| {
            let before = descriptors();
            let Some((arena, block)) = watched(small()) else { return };
            let page = page_of(&arena);
            let opened: BTreeSet<i32> = descriptors().difference(&before).copied().collect();
            let close_all = || {
                for &number in &opened {
                    // SAFETY: not upheld: the arena has them. This is what the test is about; no other thread is here.
                    unsafe { libc::close(number) };
                }
                let count = if are_used_again { opened.len() } else { 0 };
                (0..count).map(|_| File::open("/dev/null").unwrap()).collect::<Vec<_>>()
            };
            let files = close_all();
            touch(block, page, 1);
            assert_eq!(taken(arena.write_watch().unwrap(), block, page), None);
            let code = if are_used_again { libc::ENOTTY } else { libc::EBADF };
            assert_eq!(arena.last_refusal().unwrap().code, code);
            let watch = arena.write_watch().unwrap();
            assert_eq!(taken(watch, block, page), Some(all(block, page)));
            let written = touch(block, page, 3);
            assert_eq!(taken(watch, block, page), Some(BTreeSet::from([written])));
            drop(files);
            drop(arena);
            assert_eq!(descriptors(), before);
        });
        assert_eq!(outcome, Ok(0));
    }
}

/// The same if the arena is dropped before it is asked again.
#[test]
fn files_with_the_numbers_of_descriptors_that_a_program_closed_stay_open() {
    let outcome = in_child(|| {
        let before = descriptors();
        let Some((arena, _)) = watched(small()) else { return };
        let opened: BTreeSet<i32> = descriptors().difference(&before).copied().collect();
        for &number in &opened {
            // SAFETY: not upheld: the arena has them. This is what the test is about; no other thread is here.
            unsafe { libc::close(number) };
        }
        let files: Vec<File> = opened.iter().map(|_| File::open("/dev/null").unwrap()).collect();
        let all = &before | &opened;
        assert_eq!(descriptors(), all);
        drop(arena);
        assert_eq!(descriptors(), all);
        drop(files);
    });
    assert_eq!(outcome, Ok(0));
}

/// A thread writes all the time while another asks. Returns how many writes came before a question, and were returned
/// neither by it nor by those before; `None` if this machine has no watch. The control forgets a page now and then.
fn lost_in_a_race(forgets: bool) -> Option<usize> {
    let (arena, block) = watched(small())?;
    let (page, pages) = (page_of(&arena), block.size() / page_of(&arena));
    let word = |index: usize| {
        // SAFETY: the word is the first of a page of the block, was written before, and is used as an atomic from here on.
        unsafe { block.base().add(index * page).cast::<AtomicUsize>().as_ref() }
    };
    let (rounds, is_over, party) = (AtomicUsize::new(0), AtomicBool::new(false), Party::new());
    let mut lost = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            let _member = party.enter();
            for round in 1.. {
                word(round % pages).store(round, Ordering::Release);
                rounds.store(round, Ordering::Release);
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let _over = Defer::new(|| is_over.store(true, Ordering::Relaxed));
        let watch = arena.write_watch().unwrap();
        let load_all = || Vec::from_iter((0..pages).map(|index| word(index).load(Ordering::Acquire)));
        // What each page had when it was returned.
        let mut seen = load_all();
        assert!(taken(watch, block, page).is_some());
        for question in 0..200 {
            let before = load_all();
            let found = taken(watch, block, page).unwrap();
            for (index, (seen, before)) in seen.iter_mut().zip(before).enumerate() {
                let is_forgotten = forgets && (question + index) % 7 == 0;
                if found.contains(&(block.range().base().get() + index * page)) && !is_forgotten {
                    *seen = word(index).load(Ordering::Acquire);
                }
                lost += usize::from(before > *seen);
            }
            // So that some pages are written before the next question, and others are not.
            let enough = rounds.load(Ordering::Acquire) + question % (2 * pages);
            party.wait_until(|| rounds.load(Ordering::Acquire) >= enough);
        }
    });
    Some(lost)
}

/// (design/arena-vm.md `.watch.race`)
#[test]
fn what_is_written_while_it_is_asked_for_is_returned_then_or_next() {
    assert!(lost_in_a_race(false).is_none_or(|lost| lost == 0));
    assert!(
        lost_in_a_race(true).is_none_or(|lost| lost > 0),
        "the race does not find what it is there to find"
    );
}

#[test]
fn too_few_descriptors_are_named_and_none_is_lost() {
    let outcome = in_child(|| {
        let (arena, block) = tracts_of(small());
        if watch_of(&tracts_of(small()).0).is_none() {
            return;
        }
        let before = descriptors();
        for spare in 0..2 {
            let most = before.iter().max().unwrap() + 1 + spare;
            // The numbers below are all taken, so that the limit is what is lacking.
            let taken_up: Vec<File> = (0..most)
                .filter(|number| !before.contains(number))
                .take(most as usize - before.len() - spare as usize)
                .map(|_| File::open("/dev/null").unwrap())
                .collect();
            let limits = libc::rlimit { rlim_cur: most as libc::rlim_t, rlim_max: 4096 };
            // SAFETY: the pointer is to a whole `rlimit`, which the call only reads.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) }, 0);
            assert_eq!(arena.write_watch().unwrap_err(), Error::Resource);
            let refusal = arena.last_refusal().unwrap();
            assert_eq!((refusal.call, refusal.code), ("open_watch", libc::EMFILE));
            assert!(refusal.advice().contains("ulimit -n"));
            drop(taken_up);
            let limits = libc::rlimit { rlim_cur: 1024, rlim_max: 4096 };
            // SAFETY: the pointer is to a whole `rlimit`, which the call only reads.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) }, 0);
            assert_eq!(descriptors(), before);
        }
        let watch = arena.write_watch().unwrap();
        assert!(taken(watch, block, page_of(&arena)).is_some(), "what was refused is tried again");
    });
    assert_eq!(outcome, Ok(0));
}

/// What the default filters of containers do, and kernels that lack a call.
#[test]
fn without_a_call_the_watch_is_refused() {
    let flags = (libc::O_CLOEXEC | libc::O_NONBLOCK | 1) as u32;
    // UFFDIO_API, UFFDIO_REGISTER, PAGEMAP_SCAN
    let requests = [0xc018_aa3f, 0xc020_aa00, 0xc060_6610].map(|request| (libc::SYS_ioctl, 1, request));
    let calls = [(libc::SYS_userfaultfd, 0, flags), (libc::SYS_madvise, 2, libc::MADV_WIPEONFORK as u32)];
    for (call, argument, value) in calls.into_iter().chain(requests) {
        without(call, argument, value, || {
            let (arena, _) = tracts_of(small());
            assert_eq!(arena.write_watch().unwrap_err(), Error::Resource);
            assert_eq!(arena.last_refusal().unwrap().call, "open_watch");
            // Memory is decommitted as ever.
            assert_eq!(arena.trim(), 0);
        });
    }
}

/// A filter that is set up when the watch is open already.
#[test]
fn a_call_that_is_refused_later_makes_writes_unknown() {
    without(libc::SYS_ioctl, 1, 0xdead, || {
        let Some((arena, block)) = watched(small()) else { return };
        without(libc::SYS_ioctl, 1, 0xc060_6610, move || {
            touch(block, page_of(&arena), 1);
            assert_eq!(taken(arena.write_watch().unwrap(), block, page_of(&arena)), None);
        });
    });
}

/// `read(2)` into memory that is watched works, and is a write.
#[test]
fn what_the_kernel_writes_is_known() {
    let Some((arena, block)) = watched(small()) else { return };
    let page = page_of(&arena);
    let mut ends = [0; 2];
    // SAFETY: the pointer is to two numbers, which the call fills.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    // SAFETY: the numbers are those of two fresh descriptors, each of which gets one owner.
    let (mut reading, writing) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
    std::io::Write::write_all(&mut &writing, &[9; 100]).unwrap();
    drop(writing);
    // SAFETY: the test holds the block, whose pages were written; the slice is within its fourth page.
    let bytes = unsafe { core::slice::from_raw_parts_mut(block.base().add(3 * page).as_ptr(), 100) };
    reading.read_exact(bytes).unwrap();
    assert_eq!(bytes, [9; 100]);
    let found = taken(arena.write_watch().unwrap(), block, page);
    assert_eq!(found, Some(BTreeSet::from([block.range().base().get() + 3 * page])));
}

#[test]
fn a_process_without_privilege_has_a_watch_too() {
    let outcome = in_child(|| {
        // SAFETY: takes a number only, and binds this child.
        assert!(unsafe { libc::setuid(65_534) } == 0 || unsafe { libc::getuid() } != 0);
        // SAFETY: takes numbers only. After a change of user the files in /proc are root's, until this.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }, 0);
        let Some((arena, block)) = watched(small()) else { return };
        let written = touch(block, page_of(&arena), 1);
        let found = taken(arena.write_watch().unwrap(), block, page_of(&arena));
        assert_eq!(found, Some(BTreeSet::from([written])));
    });
    assert_eq!(outcome, Ok(0));
}

/// Locked, populated and huge pages are watched as others are.
#[test]
fn options_for_memory_do_not_hide_writes() {
    let huge = ArenaVmOptions {
        huge_pages: true,
        grain: 2 << 20,
        reserve: 32 << 20,
        reserve_floor: 32 << 20,
        ..ArenaVmOptions::default()
    };
    let locked = ArenaVmOptions { lock: true, grain: 4096, ..small() };
    let options = [ArenaVmOptions { prefault: Prefault::Size(6 * GRAIN), ..small() }, huge, locked];
    for options in options {
        let arena = match ArenaVm::create(options) {
            Ok(arena) => arena,
            Err(error) => {
                tripoint_oracle::skipped!("{error}");
                continue;
            }
        };
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(16 * page_of(&arena), pool).unwrap();
        let page = page_of(&arena);
        (0..block.size() / page).for_each(|index| _ = touch(block, page, index));
        let Some(watch) = watch_of(&arena) else { return };
        assert_eq!(taken(watch, block, page), Some(all(block, page)));
        for round in 0..3 {
            let written = BTreeSet::from([touch(block, page, round), touch(block, page, 15 - round)]);
            assert_eq!(taken(watch, block, page), Some(written), "{options:?}");
        }
        // Populating counts as writing.
        assert!(arena.prefault().is_ok());
        let written = touch(block, page, 5);
        assert!(taken(watch, block, page).unwrap().contains(&written));
        // Huge pages that are watched may be refused: that is an error, and no write is lost.
        let _ = arena.merge();
        let written = touch(block, page, 6);
        assert!(taken(watch, block, page).unwrap().contains(&written));
    }
}

#[test]
fn memory_that_is_locked_by_the_process_is_watched_or_refused() {
    let outcome = in_child(|| {
        // SAFETY: takes flags only, and binds this child.
        if unsafe { libc::mlockall(libc::MCL_FUTURE | libc::MCL_CURRENT) } != 0 {
            tripoint_oracle::skipped!("this process may not lock its memory");
            return;
        }
        let Some((arena, block)) = watched(ArenaVmOptions { spare_share: 0, ..small() }) else { return };
        let page = page_of(&arena);
        let written = touch(block, page, 1);
        assert_eq!(taken(arena.write_watch().unwrap(), block, page), Some(BTreeSet::from([written])));
        let pool = arena.pool_of(block.range().base()).unwrap();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!(arena.alloc_tracts(4 * GRAIN, pool), Ok(block));
        let written = touch(block, page, 1);
        assert!(taken(arena.write_watch().unwrap(), block, page).unwrap().contains(&written));
    });
    assert_eq!(outcome, Ok(0));
}

/// The number of mappings of this process.
fn mapping_count() -> usize {
    fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// What is decommitted while writes are watched merges with its neighbours, as without (design/arena-vm.md
/// `.mappings`).
#[test]
fn watching_adds_no_mappings() {
    let outcome = in_child(|| {
        let options = ArenaVmOptions { grain: 4096, spare_share: 0, ..small() };
        let counts = [false, true].map(|is_watched| {
            let arena = ArenaVm::create(options).unwrap();
            let pool = arena.register().unwrap();
            let blocks: Vec<Block> = (0..200).map(|_| arena.alloc_tracts(4096, pool).unwrap()).collect();
            if is_watched && watch_of(&arena).is_none() {
                return None;
            }
            let before = mapping_count();
            for blocks in blocks.chunks(4) {
                for &block in &blocks[..3] {
                    // SAFETY: allocated above, freed once, unused.
                    unsafe { arena.free_tracts(block, pool) };
                }
            }
            let with_holes = mapping_count();
            let again: Vec<Block> = (0..150).map(|_| arena.alloc_tracts(4096, pool).unwrap()).collect();
            let without_holes = mapping_count();
            for &block in &again {
                // SAFETY: allocated above, freed once, unused.
                unsafe { arena.free_tracts(block, pool) };
            }
            for blocks in blocks.chunks(4) {
                // SAFETY: allocated above, freed once, unused.
                unsafe { arena.free_tracts(blocks[3], pool) };
            }
            Some([with_holes, without_holes, mapping_count()].map(|count| count.saturating_sub(before)))
        });
        // The lists of this test may take a mapping or two.
        let is_as_few = |[plain, watched]: [usize; 2]| watched <= plain + 3;
        if let [Some(plain), Some(watched)] = counts {
            assert!((0..3).all(|index| is_as_few([plain[index], watched[index]])), "{counts:?}");
        }
    });
    assert_eq!(outcome, Ok(0));
}

/// An arena that was refused addresses gets more of them later (design/arena-vm.md `.reserve.grow`). In a child, where no
/// other thread maps anything.
#[test]
fn addresses_that_are_reserved_later_are_watched() {
    let outcome = in_child(|| {
        let failing = Failing::new(Native::new());
        failing.limit_reserve(LIMIT);
        let arena = ArenaVm::create_on(&failing, refused()).unwrap();
        let (pool, page) = (arena.register().unwrap(), failing.page_size());
        let Some(watch) = watch_of(&arena) else { return };
        let before = arena.reserved();
        let block = arena.alloc_tracts(LIMIT / 2, pool).unwrap();
        assert!(arena.reserved() > before + LIMIT / 4, "most of the block is in what was reserved for it");
        assert_eq!(taken(watch, block, page), Some(all(block, page)), "all counts as written at first");
        let last = touch(block, page, block.size() / page - 1);
        assert_eq!(taken(watch, block, page), Some(BTreeSet::from([last])));
    });
    assert_eq!(outcome, Ok(0));
}
