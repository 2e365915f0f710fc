//! The arena of the book, and what is left to the rest of the process (design/order-book.md `.headroom`).

use tripoint::{ArenaVm, ArenaVmOptions, Prefault};

use crate::failure::Failure;
use crate::telemetry;

/// Creates the arena, with memory held back for the rest of the process.
///
/// # Errors
/// If there is too little memory for either.
pub fn create_arena() -> Result<ArenaVm, Failure> {
    share_heap();
    let headroom = hold_headroom()?;
    let arena = ArenaVm::create(ArenaVmOptions {
        prefault: Prefault::AtFill,
        inherit_on_fork: false,
        event_hook: Some(telemetry::arena_hook()),
        ..Default::default()
    });
    drop(headroom);
    arena.map_err(Failure::new)
}

/// Bytes of address space for what is not in the arena: blocks, stacks, heaps, and the
/// symbols of a report, which take the most (design/order-book.md `.headroom`).
const HEADROOM: usize = 128 << 20;

/// Makes all threads share one heap. Otherwise glibc reserves 64 MiB of address space for
/// each thread that first allocates, and may take it from the headroom.
fn share_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a parameter of the allocator, which takes any number.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Holds back memory while the arena is made: the global allocator ends the process
/// when it has none.
fn hold_headroom() -> Result<Vec<u8>, Failure> {
    let mut headroom = Vec::new();
    let lacking = |_| {
        Failure::new(format_args!(
            "less than {} MiB for memory outside the arena: raise the limits of address space and of data \
             (ulimit -v, ulimit -d)",
            HEADROOM >> 20
        ))
    };
    headroom.try_reserve_exact(HEADROOM).map_err(lacking)?;
    Ok(headroom)
}
