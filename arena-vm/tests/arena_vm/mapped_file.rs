//! Arenas in memory of files (design/arena-vm.md `.file`).

use std::fs::{self, File};
use std::os::fd::AsRawFd;

use tripoint_arena_vm::mock::{Call, Failing};
use tripoint_arena_vm::{MappedFile, Native, Portable};
use tripoint_core::{Arena, ClientArena, ClientArenaOptions};

use crate::common::write;

const SIZE: usize = 1 << 20;

/// A file of this length, without a name.
fn file(length: u64) -> File {
    let path = std::env::temp_dir().join(format!("tripoint-{}-{length}", std::process::id()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    fs::remove_file(path).unwrap();
    file.set_len(length).unwrap();
    file
}

fn map(file: &File, size: usize) -> Result<MappedFile, tripoint_arena_vm::PlatformError> {
    // SAFETY: the test alone has the file, and does not make it shorter.
    unsafe { MappedFile::create(file.as_raw_fd(), size) }
}

#[test]
fn an_arena_lives_in_a_file_and_what_it_writes_is_there() {
    let file = file(SIZE as u64);
    let mut mapped = map(&file, SIZE).unwrap();
    let other = map(&file, SIZE).unwrap();
    drop(file);
    let place = {
        let arena = ClientArena::create(mapped.memory(), ClientArenaOptions::default()).unwrap();
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(4096, pool).unwrap();
        write(block, 0x5a);
        block.base().addr().get()
    };
    let (mut mapped, mut other) = (mapped, other);
    let offset = place - mapped.memory().as_ptr().addr();
    // SAFETY: all of the file was written or is zero.
    let byte = unsafe { other.memory()[offset].assume_init() };
    assert_eq!((byte, other.size()), (0x5a, SIZE), "the descriptor was closed, and the mapping is shared");
}

#[test]
fn a_file_that_cannot_serve_is_refused_before_it_is_used() {
    let good = file(SIZE as u64 + 1);
    for (size, code) in [(SIZE, None), (SIZE + 4096, Some(libc::ENXIO)), (0, Some(libc::EINVAL))] {
        assert_eq!(map(&good, size).err().map(|error| error.code), code, "{size}");
    }
    let refusal = map(&good, SIZE + 4096).unwrap_err();
    assert!(refusal.to_string().contains("ftruncate"), "{refusal}");
    let readable = File::open("/proc/self/exe").unwrap();
    assert_eq!(map(&readable, 4096).unwrap_err().code, libc::EACCES);
    // SAFETY: no file at all.
    assert_eq!(unsafe { MappedFile::create(-1, SIZE) }.unwrap_err().code, libc::EBADF);
    // SAFETY: the platform maps no file.
    assert_eq!(unsafe { MappedFile::create_on(Portable::new(), 0, SIZE) }.unwrap_err().call, "map_file");
}

#[test]
fn refusals_of_the_platform_are_no_panic() {
    let (file, failing) = (file(SIZE as u64), Failing::new(Native::new()));
    failing.fail(Call::MapFile, 1);
    // SAFETY: the test alone has the file, and does not make it shorter.
    let map = || unsafe { MappedFile::create_on(&failing, file.as_raw_fd(), SIZE) };
    assert_eq!(map().unwrap_err().call, "map_file");
    failing.fail(Call::UnmapFile, 1);
    drop(map().unwrap());
    assert_eq!(failing.seen(Call::UnmapFile), 1);
}
