//! How much linear memory arenas take, in a WebAssembly module of their own (design/arena-vm.md `.linear`).
#![cfg(target_arch = "wasm32")]

use core::arch::wasm32::memory_size;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::{Arena, Block, Error};

/// The size of this module's linear memory, in bytes.
fn memory() -> usize {
    memory_size::<0>() << 16
}

fn write(block: Block, byte: u8) {
    // SAFETY: the test has just allocated the block.
    unsafe { block.base().write_bytes(byte, block.size()) };
}

/// One test, because tests of a module would see each other's memory.
#[test]
fn an_arena_takes_what_it_needs_and_memory_that_it_releases_serves_the_next() {
    let before = memory();
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = arena.register().unwrap();
    write(arena.alloc_tracts(1024, pool).unwrap(), 1);
    let taken = memory() - before;
    println!("1 KiB of a default arena: {} KiB of linear memory, from {} KiB", taken >> 10, before >> 10);
    assert!(taken <= 512 << 10, "{taken} bytes");

    // The program's allocator takes memory between the arena's.
    let mut theirs = Vec::new();
    let mut blocks = Vec::new();
    for count in 0..200_u8 {
        theirs.push(vec![count; 300_000]);
        let block = arena.alloc_tracts(100_000, pool).unwrap();
        write(block, count);
        blocks.push(block);
    }
    println!("{} bytes reserved for {} blocks of 2 grains", arena.reserved(), blocks.len());
    assert!(arena.reserved() < 36 << 20);
    for ((block, theirs), count) in blocks.iter().zip(&theirs).zip(0..) {
        // SAFETY: written above, and used by this test alone.
        let ours = unsafe { core::slice::from_raw_parts(block.base().as_ptr(), block.size()) };
        assert!(ours.iter().chain(theirs).all(|&byte| byte == count));
        assert_eq!(arena.pool_of(block.range().base()), Some(pool));
    }
    drop(theirs);
    drop(arena);

    let before = memory();
    for _ in 0..50 {
        let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
        let pool = arena.register().unwrap();
        for _ in 0..100 {
            write(arena.alloc_tracts(100_000, pool).unwrap(), 2);
        }
    }
    assert_eq!(memory(), before, "what was released serves");

    // Until there is no more.
    let limited = ArenaVmOptions { commit_limit: 1 << 20, ..Default::default() };
    let arena = ArenaVm::create(limited).unwrap();
    let pool = arena.register().unwrap();
    let refused = core::iter::from_fn(|| Some(arena.alloc_tracts(1, pool))).find_map(Result::err);
    assert_eq!(refused, Some(Error::CommitLimit));
    drop(arena);
    let arenas: Vec<_> = (0..4)
        .map(|_| {
            let arena =
                ArenaVm::create(ArenaVmOptions { reserve: 2_000 << 20, ..Default::default() }).unwrap();
            let pool = arena.register().unwrap();
            let refused =
                core::iter::from_fn(|| Some(arena.alloc_tracts(1 << 20, pool))).find_map(Result::err);
            assert_eq!(refused, Some(Error::Limit));
            arena
        })
        .collect();
    let reserved: usize = arenas.iter().map(|arena| arena.reserved() >> 20).sum();
    // To release it would write to all of it.
    core::mem::forget(arenas);
    println!("{reserved} MiB in 4 arenas until the memory ends at {} MiB", memory_size::<0>() >> 4);
    // All but what is so near to the end of all addresses that no block may lie there, and what the tests have.
    assert!(memory_size::<0>() >> 4 > 4_050 && reserved > 3_900);
}
