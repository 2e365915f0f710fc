//! What every pool shares: the header, walks, owning pointers, sizes. The pool here
//! gives each object tracts of its own and keeps no memory it does not use.
//! (design/core.md `.pool`, `.pool.drop`.)
#![cfg(not(tripoint_loom))]

mod events;
mod header;
mod pointers;
mod traits;
mod walks;
mod whole;

use tripoint_core::{ClientArena, ClientArenaOptions};

use whole::Whole;

const GRAIN: usize = 256;

fn with_arena<R>(test: impl FnOnce(&ClientArena<'_>) -> R) -> R {
    let mut memory = Box::new_uninit_slice(64 << 10);
    let options = ClientArenaOptions { grain: Some(GRAIN), event_hook: None };
    test(&ClientArena::create(&mut memory, options).unwrap())
}

fn with_pool<R>(test: impl FnOnce(&Whole<&ClientArena<'_>>) -> R) -> R {
    with_arena(|arena| test(&Whole::create(arena)))
}
