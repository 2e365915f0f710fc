//! Memory for arenas, used again by every input: fresh pages would cost more time than
//! the search itself.

use core::cell::RefCell;
use core::mem::MaybeUninit;

use tripoint::{ClientArena, ClientArenaOptions};

/// The memory of the largest arena, in bytes.
const SIZE: usize = 512 << 10;

#[repr(C, align(4096))]
struct Memory([MaybeUninit<u8>; SIZE]);

thread_local! {
    static MEMORY: RefCell<Box<Memory>> = RefCell::new(Box::new(Memory([MaybeUninit::uninit(); SIZE])));
}

/// Does something with an arena of `size` bytes, 512 KiB at most, in grains of `grain`
/// bytes.
pub(crate) fn with_arena<R>(size: usize, grain: usize, run: impl FnOnce(&ClientArena<'_>) -> R) -> R {
    MEMORY.with_borrow_mut(|memory| {
        let options = ClientArenaOptions { grain: Some(grain), event_hook: None };
        run(&ClientArena::create(&mut memory.0[..size], options).unwrap())
    })
}
