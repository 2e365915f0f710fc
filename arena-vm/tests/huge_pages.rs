//! Arenas on explicit huge pages of this machine (design/arena-vm.md `.explicit`). `verify/huge-pages` sets them aside,
//! mounts a file system of them, and runs this; without them each test says that it was skipped.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

mod child;

use core::ffi::CStr;
use std::env;
use std::ffi::CString;
use std::fs;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, HugePageSize, HugePages, MappedFile, Placement, Prefault};
use tripoint_core::{Arena, Block, ClientArena, ClientArenaOptions, Error, NodeSet, Resource, Written};
use tripoint_packets::{PacketPool, PacketPoolOptions};

use child::in_child;

const HUGE: usize = 2 << 20;
const POOL: HugePages = HugePages { size: HugePageSize::TwoMiB, mount: None };

/// The tests take pages of one pool, so one at a time.
static POOL_IN_USE: Mutex<()> = Mutex::new(());

/// How many pages of a size are free.
fn free(size: HugePageSize) -> usize {
    let path = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/free_hugepages", size.bytes() >> 10);
    fs::read_to_string(path).map_or(0, |text| text.trim().parse().unwrap())
}

/// Says that a test needs something that is not here; fails if the script has provided for it.
fn skip(what: &str) {
    assert!(env::var_os("TRIPOINT_HUGE_PAGES").is_none(), "{what}");
    tripoint_oracle::skipped!("{what}: run verify/huge-pages as root");
}

/// The pool for one test; `None` if it has fewer than `count` pages.
fn with_pages(size: HugePageSize, count: usize) -> Option<MutexGuard<'static, ()>> {
    let pool = POOL_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    if free(size) >= count {
        return Some(pool);
    }
    skip("too few huge pages are free");
    None
}

/// The directory of huge pages of 2 MiB that the script has mounted, limited to 8 of them.
fn mount() -> Option<&'static CStr> {
    let Some(path) = env::var_os("TRIPOINT_HUGETLBFS") else {
        skip("no hugetlbfs is mounted");
        return None;
    };
    let path = CString::new(path.into_encoded_bytes()).unwrap();
    Some(Box::leak(path.into_boxed_c_str()))
}

fn on(pages: HugePages) -> ArenaVmOptions {
    let grain = pages.size.bytes();
    ArenaVmOptions {
        explicit_huge_pages: Some(pages),
        grain,
        commit_limit: 16 * grain,
        inherit_on_fork: false,
        spare_share: 0,
        ..Default::default()
    }
}

fn faults() -> i64 {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a `rusage`, which the call fills.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) }, 0);
    // SAFETY: filled by the call; zeroed before.
    let usage = unsafe { usage.assume_init() };
    usage.ru_minflt + usage.ru_majflt
}

/// The faults of writing a byte to each 4 KiB of a block.
fn faults_of_touching(block: Block) -> i64 {
    faults();
    let before = faults();
    for offset in (0..block.size()).step_by(4096) {
        // SAFETY: the test holds the block, and the offset lies in it.
        unsafe { block.base().add(offset).write_volatile(1) };
    }
    faults() - before
}

/// Takes `count` pages and gives them back: none faults, and the report and the pool agree.
fn take_and_give_back(pages: HugePages, count: usize) {
    let (size, before) = (pages.size.bytes(), free(pages.size));
    let arena = ArenaVm::create(on(pages)).unwrap();
    assert_eq!(free(pages.size), before, "nothing is taken before it is needed");
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(count * size, pool).unwrap();
    assert_eq!(free(pages.size), before - count);
    assert_eq!(faults_of_touching(block), 0);
    let report = arena.page_report().unwrap();
    let on_huge: usize = report.rows().filter(|&(_, page, _)| page == size).map(|(_, _, bytes)| bytes).sum();
    assert_eq!((on_huge, report.transparent()), (count * size, 0), "{report}");
    assert_eq!(report.total() - on_huge, arena.sizes().own, "tables are on small pages");
    // SAFETY: allocated above, freed once, unused.
    unsafe { arena.free_tracts(block, pool) };
    assert_eq!((free(pages.size), arena.sizes().spare), (before, 0));
    let again = arena.alloc_tracts(size, pool).unwrap();
    // SAFETY: the test holds the block, which was committed anew.
    assert_eq!(unsafe { again.base().read_volatile() }, 0);
    drop(arena);
    assert_eq!(free(pages.size), before);
}

#[test]
fn pages_of_2_mib_come_from_the_pool() {
    let Some(_pool) = with_pages(HugePageSize::TwoMiB, 8) else { return };
    take_and_give_back(POOL, 8);
}

#[test]
fn pages_of_1_gib_come_from_the_pool() {
    let Some(_pool) = with_pages(HugePageSize::OneGiB, 1) else { return };
    take_and_give_back(HugePages { size: HugePageSize::OneGiB, mount: None }, 1);
}

#[test]
fn pages_come_from_a_mount_and_its_limit_holds() {
    let Some(_pool) = with_pages(HugePageSize::TwoMiB, 12) else { return };
    let Some(mount) = mount() else { return };
    let pages = HugePages { mount: Some(mount), ..POOL };
    take_and_give_back(pages, 8);
    let arena = ArenaVm::create(on(pages)).unwrap();
    let pool = arena.register().unwrap();
    assert_eq!(
        arena.alloc_tracts(9 * HUGE, pool),
        Err(Error::Resource),
        "pages are free, but not for this mount"
    );
    let advice = arena.last_refusal().unwrap().to_string();
    assert!(advice.contains("limits of the mount"), "{advice}");
    arena.alloc_tracts(8 * HUGE, pool).unwrap();
    let other = HugePages { size: HugePageSize::OneGiB, mount: Some(mount) };
    assert!(matches!(ArenaVm::create(on(other)), Err(Error::Parameter(_))), "of another size");
}

/// Also without room on it: an error when it is mapped, and not a signal when it is written to.
#[test]
fn an_arena_lives_in_a_file_of_huge_pages() {
    let Some(_pool) = with_pages(HugePageSize::TwoMiB, 12) else { return };
    let Some(mount) = mount() else { return };
    let path = format!("{}/shared", mount.to_str().unwrap());
    let file = fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    fs::remove_file(path).unwrap();
    file.set_len(16 * HUGE as u64).unwrap();
    // SAFETY: the test alone has the file, and does not make it shorter.
    let map = |pages| unsafe { MappedFile::create(file.as_raw_fd(), pages * HUGE) };
    let refusal = map(9).unwrap_err();
    assert!(refusal.call == "map_file" && refusal.to_string().contains("huge pages as well"), "{refusal}");
    let before = free(HugePageSize::TwoMiB);
    let mut mapped = map(8).unwrap();
    assert!(before - free(HugePageSize::TwoMiB) <= 8);
    let arena = ClientArena::create(mapped.memory(), ClientArenaOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(7 * HUGE, pool).unwrap();
    let faults = faults_of_touching(block);
    assert!(faults <= 8, "{faults} faults: huge pages of a file are mapped again at most once");
}

#[test]
fn too_few_pages_are_refused_with_the_kernels_own_number() {
    let Some(_pool) = with_pages(HugePageSize::TwoMiB, 2) else { return };
    let before = free(HugePageSize::TwoMiB);
    let size = (before + 3) * HUGE;
    let options = ArenaVmOptions { commit_limit: 2 * size, prefault: Prefault::Size(size), ..on(POOL) };
    let error = ArenaVm::create(options).unwrap_err();
    let lacking = Error::ResourceLimit { resource: Resource::HugePages2MiB, size, limit: before * HUGE };
    assert_eq!(error, lacking);
    assert!(error.to_string().contains("3 lacking): as root, add"), "{error}");
    assert_eq!(free(HugePageSize::TwoMiB), before, "nothing was taken");
}

#[test]
fn everything_is_there_from_the_start_and_nothing_faults_later() {
    let Some(_pool) = with_pages(HugePageSize::TwoMiB, 8) else { return };
    let nodes = NodeSet::of(&[0]).unwrap();
    let options =
        ArenaVmOptions { prefault: Prefault::Size(8 * HUGE), placement: Placement::Bind(nodes), ..on(POOL) };
    let arena = ArenaVm::create(options).unwrap();
    arena.prefault().unwrap();
    arena.freeze();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(8 * HUGE, pool).unwrap();
    assert_eq!(faults_of_touching(block), 0);
    assert_eq!(arena.page_report().unwrap().bytes(0, HUGE), 8 * HUGE);
}

/// A pool of packets lies whole on huge pages of one node, and its use causes no fault.
#[test]
fn packets_on_huge_pages_of_a_node_are_used_without_a_fault() {
    let Some(_pool) = with_pages(HugePageSize::TwoMiB, 10) else { return };
    let placement = Placement::Bind(NodeSet::of(&[0]).unwrap());
    let options = ArenaVmOptions { prefault: Prefault::Size(10 * HUGE), placement, ..on(POOL) };
    let arena = ArenaVm::create(options).unwrap();
    let options = PacketPoolOptions { count: 8192, headroom: 256, ..Default::default() };
    let packets = PacketPool::<_, 2048>::create(&arena, options).unwrap();
    let (mut cache, mut ring) = (packets.cache().unwrap(), packets.ring().unwrap());
    arena.freeze();
    let region = packets.region();
    assert_eq!((region.base().addr().get() % HUGE, region.size()), (0, 8 * HUGE), "whole huge pages");
    let mut taken = Vec::with_capacity(8192);
    let mut use_all = || {
        taken.extend(core::iter::from_fn(|| cache.take()));
        let count = taken.len();
        for mut packet in taken.drain(..) {
            packet.extend_from_slice(&[7; 1500]).unwrap();
            let submission = ring.submit(packet).unwrap();
            ring.complete_into(&mut cache, submission.offset).unwrap();
        }
        count
    };
    // The first time the test's own list faults.
    assert_eq!(use_all(), 8192);
    let before = faults();
    assert_eq!((0..3).map(|_| use_all()).sum::<usize>(), 3 * 8192);
    assert_eq!(faults() - before, 0);
    assert_eq!(arena.page_report().unwrap().bytes(0, HUGE), 10 * HUGE);
}

/// A copy would take pages at the first write, and end the process if there were none.
#[test]
fn children_have_no_copy_and_the_parent_writes_without_a_fault() {
    let Some(_pool) = with_pages(HugePageSize::TwoMiB, 4) else { return };
    let options = ArenaVmOptions { commit_limit: (free(HugePageSize::TwoMiB) + 1) * HUGE, ..on(POOL) };
    let arena = ArenaVm::create(options).unwrap();
    let pool = arena.register().unwrap();
    // All pages that there are.
    let block = arena.alloc_tracts(free(HugePageSize::TwoMiB) * HUGE, pool).unwrap();
    faults_of_touching(block);
    // SAFETY: the parent holds the block; the child has no copy, and dies.
    assert_eq!(in_child(|| unsafe { block.base().write_volatile(2) }), Err(libc::SIGSEGV));
    let pipe = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn();
    let mut child = pipe.unwrap();
    assert_eq!(faults_of_touching(block), 0, "while a child lives");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// The kernel populates what is mapped after `mlockall`: it must not take more pages than were asked for.
#[test]
fn a_process_that_locks_its_memory_takes_no_more_pages() {
    let Some(_pool) = with_pages(HugePageSize::TwoMiB, 8) else { return };
    let outcome = in_child(|| {
        // SAFETY: takes flags only, and binds this child.
        if unsafe { libc::mlockall(libc::MCL_FUTURE | libc::MCL_CURRENT) } != 0 {
            tripoint_oracle::skipped!("this process may not lock its memory");
            return;
        }
        let before = free(HugePageSize::TwoMiB);
        let arena = ArenaVm::create(ArenaVmOptions { lock: true, ..on(POOL) }).unwrap();
        assert_eq!(free(HugePageSize::TwoMiB), before);
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(2 * HUGE, pool).unwrap();
        assert_eq!(free(HugePageSize::TwoMiB), before - 2);
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!(free(HugePageSize::TwoMiB), before);
    });
    assert_eq!(outcome, Ok(0));
}

/// Pages of the pool need no privilege, and no locked memory. A directory of another user is refused.
#[test]
fn a_user_without_privilege_may_use_what_was_set_aside() {
    let Some(_pool) = with_pages(HugePageSize::TwoMiB, 4) else { return };
    let Some(mount) = mount() else { return };
    let outcome = in_child(|| {
        let none = libc::rlimit { rlim_cur: 64 << 10, rlim_max: 64 << 10 };
        // SAFETY: the pointer is to a whole `rlimit`, which the call only reads.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) }, 0);
        // SAFETY: takes a number only, and binds this child.
        assert_eq!(unsafe { libc::setuid(65_534) }, 0);
        let arena = ArenaVm::create(ArenaVmOptions { lock: true, ..on(POOL) }).unwrap();
        let pool = arena.register().unwrap();
        arena.alloc_tracts(4 * HUGE, pool).unwrap();
        let mounted = HugePages { mount: Some(mount), ..POOL };
        assert!(matches!(ArenaVm::create(on(mounted)), Err(Error::Parameter(_))));
    });
    assert_eq!(outcome, Ok(0));
}

/// (design/arena-vm.md `.watch`)
#[test]
fn writes_to_huge_pages_are_watched_or_count_as_unknown() {
    let Some(_pool) = with_pages(HugePageSize::TwoMiB, 4) else { return };
    let arena = ArenaVm::create(on(POOL)).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(4 * HUGE, pool).unwrap();
    let Ok(watch) = arena.write_watch() else {
        return tripoint_oracle::skipped!("writes are not watched here");
    };
    let written = || {
        let mut pages = Vec::new();
        // SAFETY: the range is whole grains of the arena.
        let answer = unsafe { watch.take_written(block.range(), &mut |range| pages.push(range)) };
        (answer, pages)
    };
    let _ = written();
    // SAFETY: the test holds the block.
    unsafe { block.base().add(HUGE).write_volatile(1) };
    let (answer, pages) = written();
    let place = tripoint_core::Addr::new(block.base().addr().get() + HUGE);
    assert!(answer == Written::Unknown || pages.iter().any(|range| range.contains(place)), "{pages:?}");
    // SAFETY: allocated above, freed once, unused.
    unsafe { arena.free_tracts(block, pool) };
    let again = arena.alloc_tracts(4 * HUGE, pool).unwrap();
    // SAFETY: the test holds the block.
    unsafe { again.base().write_volatile(1) };
    let (answer, pages) = written();
    assert!(
        answer == Written::Unknown || pages.iter().any(|range| range.contains(again.range().base())),
        "{pages:?}"
    );
}
