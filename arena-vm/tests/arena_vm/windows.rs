//! What Windows says of an arena's memory (design/arena-vm.md `.windows`).

use core::ffi::c_void;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions, Native, Platform};
use tripoint_core::{Addr, Arena};

use crate::common::{GRAIN, holds, small, write};

/// `MEMORY_BASIC_INFORMATION` of 64 bits.
#[derive(Default)]
#[repr(C)]
struct Region {
    base: usize,
    allocation_base: usize,
    allocation_protection: u64,
    size: usize,
    state: u32,
    protection: u32,
    kind: u64,
}

#[link(name = "kernel32")]
unsafe extern "system" {
    fn VirtualQuery(address: *const c_void, region: *mut Region, size: usize) -> usize;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Committed,
    Reserved,
    Free,
}

fn region(addr: usize) -> Region {
    let mut region = Region::default();
    let address = core::ptr::without_provenance(addr);
    // SAFETY: the system only answers about the address, and the answer fits into the region, whose size is passed.
    assert_ne!(unsafe { VirtualQuery(address, &raw mut region, size_of::<Region>()) }, 0);
    region
}

/// The state of the page at an address.
fn state(addr: usize) -> State {
    match region(addr).state {
        0x1000 => State::Committed,
        0x2000 => State::Reserved,
        0x10000 => State::Free,
        other => panic!("state {other:#x}"),
    }
}

fn state_at(addr: Addr) -> State {
    state(addr.get())
}

#[test]
fn memory_is_reserved_committed_and_decommitted_for_real() {
    let arena = ArenaVm::create(ArenaVmOptions { spare_share: 0, ..Default::default() }).unwrap();
    assert_eq!(arena.reserved(), 256 << 30, "by default");
    let range = arena.range();
    assert_eq!(state_at(range.base()), State::Reserved);
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(2 * GRAIN, pool).unwrap();
    write(block, 7);
    assert!(holds(block, 7));
    assert_eq!(state_at(block.range().base()), State::Committed);
    assert_eq!(state_at(block.range().limit()), State::Reserved);
    // SAFETY: allocated above, freed once, unused.
    unsafe { arena.free_tracts(block, pool) };
    assert_eq!(state_at(block.range().base()), State::Reserved, "an access would fault");
    let again = arena.alloc_tracts(2 * GRAIN, pool).unwrap();
    assert_eq!(again.range(), block.range());
    assert!(holds(again, 0), "committed anew");
}

#[test]
fn guards_are_without_memory() {
    let arena = ArenaVm::create(ArenaVmOptions { guard: true, ..small() }).unwrap();
    let pool = arena.register().unwrap();
    let blocks = [(); 3].map(|()| arena.alloc_tracts(GRAIN, pool).unwrap());
    for block in blocks {
        write(block, 1);
        assert_eq!(state_at(block.range().limit()), State::Reserved);
    }
}

/// Other tests may reserve what was released at once, but not every time.
#[test]
fn what_is_aligned_further_is_released_whole() {
    const SIZE: usize = 64 << 10;
    let platform = Native::new();
    for shift in [16, 17, 21, 24] {
        let align = 1 << shift;
        let is_free_then = |_| {
            let base = platform.reserve(SIZE, align).unwrap();
            let addr = base.addr().get();
            assert!(addr.is_multiple_of(align));
            assert_eq!(state(addr), State::Reserved);
            let all = region(addr).allocation_base;
            assert!(addr - all <= align - SIZE);
            // SAFETY: reserved above, released once, unused.
            unsafe { platform.release(base, SIZE, align) }.unwrap();
            [all, addr].into_iter().all(|addr| state(addr) == State::Free)
        };
        assert!((0..100).any(is_free_then), "aligned to {align}");
    }
    assert_eq!(platform.reserve(usize::MAX - 4095, SIZE).unwrap_err().call, "reserve");
}

#[test]
fn memory_is_locked_and_kept_from_children() {
    let options = ArenaVmOptions { lock: true, inherit_on_fork: false, ..small() };
    let arena = ArenaVm::create(options).unwrap();
    let pool = arena.register().unwrap();
    let block = arena.alloc_tracts(GRAIN, pool).unwrap();
    write(block, 3);
    // SAFETY: allocated above, freed once, unused.
    unsafe { arena.free_tracts(block, pool) };
    assert_eq!(arena.trim(), GRAIN);
}
