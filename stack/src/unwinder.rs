//! Walks the calling thread's stack, without allocating.
//!
//! The walker is the unwinder that panics use. With glibc from 2.35 on it finds unwind
//! tables without a lock; with other libraries it takes the loader's lock for a moment
//! (design/stack.md `.walker`, `.lock`).

use core::ffi::{c_int, c_void};

use crate::site::Site;

/// A frame, as the unwinder passes it.
#[repr(C)]
struct Context {
    private: [u8; 0],
}

const CONTINUE: c_int = 0;
const END_OF_STACK: c_int = 5;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut Context, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
    fn _Unwind_GetCFA(context: *mut Context) -> usize;
}

/// From which frame on a walk keeps frames.
#[derive(Clone, Copy)]
enum From {
    /// The first above this stack address.
    Stack(usize),
    /// The frame that a signal interrupted at this instruction.
    Instruction(usize),
}

struct Walk {
    from: Option<From>,
    frames: [usize; Site::FRAMES],
    kept: usize,
}

extern "C" fn visit(context: *mut Context, walk: *mut c_void) -> c_int {
    // SAFETY: the pointer is the one that `walk_from` passed, to a `Walk` that nothing else
    // uses until the walker returns.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    // SAFETY: the walker passes a frame that is valid during this call.
    let (address, top) = unsafe { (_Unwind_GetIP(context), _Unwind_GetCFA(context)) };
    let address = match walk.from {
        Some(From::Stack(local)) if top <= local => return CONTINUE,
        Some(From::Instruction(at)) if address != at => return CONTINUE,
        // Interrupted, so there is no return address.
        Some(From::Instruction(_)) => address.saturating_add(1),
        _ => address,
    };
    walk.from = None;
    walk.frames[walk.kept] = address;
    walk.kept += 1;
    if walk.kept == Site::FRAMES { END_OF_STACK } else { CONTINUE }
}

#[inline(never)]
fn walk_from(from: From) -> Site {
    let mut walk = Walk { from: Some(from), frames: [0; Site::FRAMES], kept: 0 };
    // SAFETY: `visit` takes the pointer for one to a `Walk`, which it is, and does not unwind.
    unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    Site::new(walk.frames)
}

pub(crate) fn above(local: usize) -> Site {
    walk_from(From::Stack(local))
}

pub(crate) fn interrupted(instruction: usize) -> Site {
    let site = walk_from(From::Instruction(instruction));
    if site.frames().is_empty() { Site::new([instruction.saturating_add(1)]) } else { site }
}
