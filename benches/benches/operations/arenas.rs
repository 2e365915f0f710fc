//! The client arena, which pools ask for tracts and descriptors.

use core::alloc::Layout;
use core::hint::black_box;

use tripoint::{Arena, ClientArena, ClientArenaOptions};

use crate::{Operation, counted};

pub(crate) const OPERATIONS: [Operation; 4] = [
    ("arena, 1 grain and back", |count| tracts(1, count)),
    ("arena, 16 grains and back", |count| tracts(16, count)),
    ("arena, descriptor and back", descriptors),
    ("arena, pool of an address", owners),
];

const GRAIN: usize = 4096;
const GRAINS: usize = 256;

fn with_arena(run: impl FnOnce(ClientArena<'_>)) {
    let mut memory = Box::new_uninit_slice(GRAINS * GRAIN);
    let options = ClientArenaOptions { grain: Some(GRAIN), ..ClientArenaOptions::default() };
    run(ClientArena::create(&mut memory, options).unwrap());
}

fn tracts(grains: usize, count: usize) {
    with_arena(|arena| {
        let pool = arena.register().unwrap();
        let size = black_box(grains * GRAIN);
        for _ in 0..count {
            counted(|| {
                let block = arena.alloc_tracts(size, pool).unwrap();
                // SAFETY: the pool allocated the block just now, and nothing uses it.
                unsafe { arena.free_tracts(block, pool) };
            });
        }
    });
}

fn descriptors(count: usize) {
    with_arena(|arena| {
        let layout = Layout::from_size_align(black_box(192), 8).unwrap();
        for _ in 0..count {
            counted(|| {
                let descriptor = arena.alloc_descriptor(layout).unwrap();
                // SAFETY: it was allocated just now with this layout, and nothing uses it.
                unsafe { arena.free_descriptor(descriptor, layout) };
            });
        }
    });
}

fn owners(count: usize) {
    with_arena(|arena| {
        let pool = arena.register().unwrap();
        let block = arena.alloc_tracts(GRAIN, pool).unwrap();
        for _ in 0..count {
            assert!(counted(|| arena.pool_of(black_box(block.range().base()))) == Some(pool));
        }
    });
}
