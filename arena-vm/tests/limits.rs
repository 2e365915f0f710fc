//! An arena under limits of the process: address space, locked memory, mappings. Each
//! test has a process of its own, in which no other arena is.
#![cfg(all(target_os = "linux", not(miri)))]

mod child;

#[cfg(target_pointer_width = "64")]
use core::ptr::NonNull;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::{Arena, Check, CheckLevel, Error, Resource};

use child::in_child;

const GRAIN: usize = 64 << 10;

/// An arena that fits below the locked memory limit of these tests.
fn small() -> ArenaVmOptions {
    ArenaVmOptions { reserve: 4 << 20, reserve_floor: 4 << 20, grain: GRAIN, ..Default::default() }
}

/// Sets a limit of this process. Only for children.
fn limit(kind: libc::__rlimit_resource_t, bytes: usize) {
    let limits = libc::rlimit { rlim_cur: bytes as libc::rlim_t, rlim_max: bytes as libc::rlim_t };
    // SAFETY: the pointer is to a whole `rlimit`, which the call only reads.
    assert_eq!(unsafe { libc::setrlimit(kind, &raw const limits) }, 0);
}

/// The address space that this process has, in bytes.
fn address_space() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').next().unwrap().parse::<usize>().unwrap() * 4096
}

/// The number of blocks of `size` bytes that the C library's allocator returns until it refuses. They are freed.
#[cfg(target_pointer_width = "64")]
fn blocks_of_libc(size: usize) -> usize {
    // SAFETY: takes a size only.
    let next = || NonNull::new(unsafe { libc::malloc(size) });
    let blocks: Vec<_> = core::iter::from_fn(next).collect();
    // SAFETY: each block came from `malloc`, and is freed once.
    blocks.iter().for_each(|block| unsafe { libc::free(block.as_ptr()) });
    blocks.len()
}

/// The same of an arena with default options.
#[cfg(target_pointer_width = "64")]
fn blocks_of_arena(size: usize) -> usize {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    core::iter::from_fn(|| arena.alloc_tracts(size, pool).ok()).count()
}

/// As after `ulimit -v 4194304` and `ulimit -v 300000`, with blocks of 64 MiB, and with smaller ones
/// (design/arena-vm.md `.reserve`).
#[test]
#[cfg(target_pointer_width = "64")]
fn under_a_limit_of_addresses_an_arena_serves_four_fifths_of_what_the_c_library_does() {
    for (room, size) in
        [(4 << 30, 64 << 20), (4 << 30, 1 << 20), (300_000 << 10, 64 << 20), (300_000 << 10, 1 << 20)]
    {
        let outcome = in_child(|| {
            limit(libc::RLIMIT_AS, address_space() + room);
            // What the C library had reserved for heaps of threads before the limit does not count.
            let theirs = blocks_of_libc(size).min(room / size);
            let ours = blocks_of_arena(size);
            println!("of {room} bytes: {theirs} blocks of {size} bytes by the C library, {ours} by an arena");
            assert!(theirs > 0);
            assert!(ours * 10 >= theirs * 8, "{ours} of {theirs}");
        });
        assert_eq!(outcome, Ok(0), "{room}, {size}");
    }
}

/// In the kernel's old layout (`vm.legacy_va_layout`) it fills the addresses from below, and so would map what is next
/// right behind an arena. There the arena has its share at once (design/arena-vm.md `.reserve.room`).
#[test]
#[cfg(target_pointer_width = "64")]
fn in_the_old_layout_it_is_as_much() {
    use std::os::unix::process::CommandExt;
    const TEST: &str = "under_a_limit_of_addresses_an_arena_serves_four_fifths_of_what_the_c_library_does";
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture"]);
    // SAFETY: between fork and exec it makes one system call, which takes a number only, and allocates nothing.
    unsafe {
        command.pre_exec(|| match libc::personality(libc::ADDR_COMPAT_LAYOUT as libc::c_ulong) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    match command.output() {
        Err(error) => tripoint_oracle::skipped!("the layout cannot be chosen: {error}"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
            print!("{text}");
        }
    }
}

/// Three arenas, stacks and files share the addresses by need, in any order (design/arena-vm.md `.reserve.grow`).
#[test]
#[cfg(target_pointer_width = "64")]
fn arenas_leave_addresses_to_each_other_and_to_the_rest_of_the_process() {
    let outcome = in_child(|| {
        let room = 3 << 30;
        limit(libc::RLIMIT_AS, address_space() + room);
        let arenas = [0; 3].map(|_| ArenaVm::create(ArenaVmOptions::default()).unwrap());
        let at_first: usize = arenas.iter().map(ArenaVm::reserved).sum();
        assert!(at_first < room / 5, "{at_first}");
        let pools = arenas.each_ref().map(|arena| arena.register().unwrap());
        let mut blocks = [0; 3];
        // Each in turn has 512 MiB, and a stack is mapped each time.
        for _ in 0..8 {
            for ((arena, pool), count) in arenas.iter().zip(pools).zip(&mut blocks) {
                arena.alloc_tracts(64 << 20, pool).unwrap();
                *count += 1;
                assert_ne!(reserve(8 << 20), libc::MAP_FAILED);
            }
        }
        let fill = || core::iter::from_fn(|| arenas[2].alloc_tracts(16 << 20, pools[2]).ok()).count();
        let (more, error) = (fill(), arenas[2].alloc_tracts(16 << 20, pools[2]).unwrap_err());
        let all = blocks.iter().sum::<usize>() * (64 << 20) + more * (16 << 20);
        assert_eq!((blocks, error), ([8; 3], Error::Limit));
        // All but the stacks, the memory of three arenas for descriptors, and what is begun of a step.
        assert!(all > room - 3 * (64 << 20) - 24 * (8 << 20) - (256 << 20), "{all}");
    });
    assert_eq!(outcome, Ok(0));
}

/// The largest hole of a fragmented address space is the arena's, and it shares it with what is mapped later
/// (design/arena-vm.md `.reserve.grow`).
#[test]
#[cfg(target_pointer_width = "32")]
fn an_arena_takes_the_largest_hole_that_a_fragmented_address_space_has() {
    let outcome = in_child(|| {
        // What stays free between these pages is 256 MiB at most.
        for index in 1..16_usize {
            let place = core::ptr::without_provenance_mut(index << 28);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            // SAFETY: new addresses, if nothing is there, which nothing uses.
            let _ = unsafe { libc::mmap(place, 4096, libc::PROT_NONE, flags, -1, 0) };
        }
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        assert!((200 << 20..256 << 20).contains(&arena.range().size()), "{}", arena.range().size());
        let pool = arena.register().unwrap();
        let count = core::iter::from_fn(|| arena.alloc_tracts(1 << 20, pool).ok()).count();
        assert!(count > 200 && arena.reserved() <= 256 << 20, "{count}");
        assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
    });
    assert_eq!(outcome, Ok(0));
}

/// New addresses without access, or `MAP_FAILED`.
#[cfg(target_pointer_width = "64")]
fn reserve(size: usize) -> *mut libc::c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new addresses, chosen by the kernel, which nothing uses.
    unsafe { libc::mmap(core::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0) }
}

/// Checks that an arena with the default floor was refused for lack of `wanted`.
fn assert_lacks(error: Error, wanted: Resource, most: usize) {
    let Error::ResourceLimit { resource, size, limit } = error else { panic!("{error:?}") };
    assert_eq!((resource, limit), (wanted, most));
    assert!((64 << 20..65 << 20).contains(&size), "the floor, and what aligning it takes: {size}");
}

/// (design/arena-vm.md `.reserve`)
#[test]
fn too_little_address_space_is_named_with_the_amounts() {
    let outcome = in_child(|| {
        let most = address_space() + (32 << 20);
        limit(libc::RLIMIT_AS, most);
        let error = ArenaVm::create(ArenaVmOptions::default()).unwrap_err();
        assert_lacks(error, Resource::AddressSpace, most);
    });
    assert_eq!(outcome, Ok(0));
}

/// What real-time programs do, as root: all sizes stay exact.
/// (design/arena-vm.md `.mlockall`)
#[test]
fn memory_that_is_locked_by_the_process_is_decommitted() {
    let outcome = in_child(|| {
        // SAFETY: takes flags only, and binds this child.
        if unsafe { libc::mlockall(libc::MCL_FUTURE | libc::MCL_CURRENT) } != 0 {
            // An unprivileged process, see the next test.
            tripoint_oracle::skipped!("this process may not lock its memory");
            return;
        }
        let arena = ArenaVm::create(ArenaVmOptions { spare_share: 0, ..small() }).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(4 * GRAIN, pool).unwrap();
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
        assert_eq!((arena.sizes().spare, arena.sizes().committed), (0, arena.sizes().own));
        assert_eq!(arena.set_commit_limit(GRAIN), Ok(()));
    });
    assert_eq!(outcome, Ok(0));
}

/// (design/arena-vm.md `.mlockall`)
#[test]
fn without_privilege_the_locked_memory_limit_is_named_and_a_small_arena_serves() {
    let outcome = in_child(|| {
        // The reservation counts as locked, whether or not memory is behind it.
        let most = 8 << 20;
        limit(libc::RLIMIT_MEMLOCK, most);
        // SAFETY: takes a number only, and binds this child.
        assert!(unsafe { libc::setuid(65_534) } == 0 || unsafe { libc::getuid() } != 0);
        // An arena made earlier is not affected, and is not locked.
        let before = ArenaVm::create(ArenaVmOptions { spare_share: 0, ..Default::default() }).unwrap();
        // SAFETY: takes flags only, and binds this child.
        assert_eq!(unsafe { libc::mlockall(libc::MCL_FUTURE) }, 0);
        let error = ArenaVm::create(ArenaVmOptions::default()).unwrap_err();
        assert_lacks(error, Resource::LockedMemory, most);
        let arena = ArenaVm::create(small()).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(4 * GRAIN, pool).unwrap();
        // SAFETY: the block was allocated by the parent; this child has a copy of its own, which only this thread uses.
        unsafe { block.base().write_bytes(1, block.size()) };
        let pool = before.register().unwrap();
        for _ in 0..100 {
            let block = before.alloc_tracts(GRAIN, pool).unwrap();
            // SAFETY: allocated above, freed once, unused.
            unsafe { before.free_tracts(block, pool) };
        }
        assert_eq!(before.sizes().spare, 0);
    });
    assert_eq!(outcome, Ok(0));
}

/// A control group of this process's own, below the one that it is in. It is removed when it is dropped.
struct Group(std::path::PathBuf);

impl Group {
    /// `None` if this process may make none, or the kernel limits no memory here.
    fn new() -> Option<Self> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let group =
            |kinds: &str| groups.lines().find_map(|line| line.split_once(kinds)).map(|(_, path)| path);
        let name = format!("tripoint-{}", std::process::id());
        [("/sys/fs/cgroup/memory", group(":memory:")), ("/sys/fs/cgroup", group("0::"))].into_iter().find_map(
            |(mount, path)| {
                let directory = std::path::Path::new(&format!("{mount}{}", path?)).join(&name);
                std::fs::create_dir(&directory).ok()?;
                let group = Self(directory);
                group.limit_file().is_some().then_some(group)
            },
        )
    }

    fn limit_file(&self) -> Option<std::path::PathBuf> {
        let files = ["memory.limit_in_bytes", "memory.max"].map(|name| self.0.join(name));
        files.into_iter().find(|file| file.exists())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A real group with a limit, if this machine lets the test make one (design/arena-vm.md `.groups`).
#[test]
fn the_limit_of_a_real_control_group_is_known() {
    let Some(group) = Group::new() else {
        return tripoint_oracle::skipped!("no control group can be made");
    };
    let allowed = 256 << 20;
    std::fs::write(group.limit_file().unwrap(), format!("{allowed}")).unwrap();
    let outcome = in_child(|| {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let before = arena.memory_limit();
        std::fs::write(group.0.join("cgroup.procs"), "0").unwrap();
        assert_eq!(arena.memory_limit(), Some(before.unwrap_or(allowed).min(allowed)));
        println!("before: {before:?}, in the group: {:?}", arena.memory_limit());
    });
    assert_eq!(outcome, Ok(0));
}

/// The number of mappings of this process.
fn mapping_count() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// The number of mappings that this process may have.
#[cfg(target_pointer_width = "64")]
fn most_mappings() -> usize {
    std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap().trim().parse().unwrap()
}

/// An arena that returns every free grain at once.
#[cfg(target_pointer_width = "64")]
fn keeps_no_spare() -> ArenaVm {
    let options = ArenaVmOptions { grain: 4096, spare_share: 0, reserve: 4 << 30, ..Default::default() };
    ArenaVm::create(options).unwrap()
}

/// Allocates `count` grains, and frees every second one.
#[cfg(target_pointer_width = "64")]
fn free_every_second(arena: &ArenaVm, count: usize) {
    let pool = arena.register().unwrap();
    let blocks: Vec<_> = (0..count).map(|_| arena.alloc_tracts(4096, pool).unwrap()).collect();
    for &block in blocks.iter().step_by(2) {
        // SAFETY: allocated above, freed once, unused.
        unsafe { arena.free_tracts(block, pool) };
    }
}

/// Every second grain is freed, and these are far more than a process may have mappings.
/// What would exceed the arena's share stays spare, and the rest of the process is not
/// affected (design/arena-vm.md `.mappings`).
#[test]
#[cfg(target_pointer_width = "64")]
fn holes_without_end_leave_mappings_to_the_rest_of_the_process() {
    let outcome = in_child(|| {
        let before = mapping_count();
        let most = most_mappings();
        let arena = keeps_no_spare();
        let pool = arena.register().unwrap();
        let blocks: Vec<_> = (0..most + 1000).map(|_| arena.alloc_tracts(4096, pool).unwrap()).collect();
        for &block in blocks.iter().step_by(2) {
            // SAFETY: allocated above, freed once, unused.
            unsafe { arena.free_tracts(block, pool) };
        }
        let taken = mapping_count() - before;
        assert!(taken <= most / 4 && taken > most / 5, "{taken} of {most}");
        let sizes = arena.sizes();
        assert_eq!(sizes.committed - sizes.spare - sizes.own, blocks.len() / 2 * 4096);
        assert!(sizes.spare > 4096 * most / 3, "what may not be closed stays spare");
        std::thread::spawn(|| ()).join().unwrap();
        // Grains freed beside holes reduce the number of holes: in the end all go back.
        for &block in blocks.iter().skip(1).step_by(2) {
            // SAFETY: allocated above, freed once, unused.
            unsafe { arena.free_tracts(block, pool) };
        }
        arena.trim();
        assert_eq!(arena.sizes().committed, arena.sizes().own);
        assert!(mapping_count() <= before + 16);
        assert_eq!(arena.check(CheckLevel::Deep), Ok(()));
    });
    assert_eq!(outcome, Ok(0));
}

/// Who was there first has the largest share. However many come later, the sum stays below
/// half of the limit (design/arena-vm.md `.mappings`).
#[test]
#[cfg(target_pointer_width = "64")]
fn arenas_one_after_another_leave_mappings_to_the_rest_of_the_process() {
    let outcome = in_child(|| {
        let (before, most) = (mapping_count(), most_mappings());
        let mut arenas = Vec::new();
        for made in 1..=40 {
            let arena = keeps_no_spare();
            // More holes than the limit's quarter, divided by the number of arenas.
            free_every_second(&arena, most / 3 / made);
            arenas.push(arena);
        }
        let taken = mapping_count() - before;
        assert!(taken < most / 2, "{taken} of {most}");
        std::thread::spawn(|| ()).join().unwrap();
        // Released reservations leave their shares to the next.
        drop(arenas);
        let arena = keeps_no_spare();
        free_every_second(&arena, most / 3);
        let taken = mapping_count() - before;
        assert!(taken <= most / 4 && taken > most / 5, "{taken} of {most}");
    });
    assert_eq!(outcome, Ok(0));
}
