//! Memory for allocations that happen before the real functions are known: looking them up may allocate.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

const SIZE: usize = 64 << 10;

#[repr(align(4096))]
struct Memory(UnsafeCell<[u8; SIZE]>);
// SAFETY: each part is handed out once, to one caller.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; SIZE]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory that is never used again after it is freed; null if there is none left. `align` is a power of two of a page at
/// most.
pub(crate) fn alloc(size: usize, align: usize) -> *mut c_void {
    let mut used = USED.load(Ordering::Relaxed);
    loop {
        let begin = used.next_multiple_of(align.max(16));
        // The size is kept in front, for `size_of`.
        let begin = (begin + 16).next_multiple_of(align.max(16));
        let Some(end) = begin.checked_add(size).filter(|&end| end <= SIZE) else {
            return ptr::null_mut();
        };
        match USED.compare_exchange(used, end, Ordering::Relaxed, Ordering::Relaxed) {
            // SAFETY: inside the memory, aligned for a word, and handed to this caller alone.
            Ok(_) => unsafe {
                let object = MEMORY.0.get().cast::<u8>().add(begin);
                object.sub(16).cast::<usize>().write(size);
                return object.cast();
            },
            Err(now) => used = now,
        }
    }
}

/// Whether an object came from [`alloc`].
#[inline]
pub(crate) fn has(object: *const c_void) -> bool {
    object.addr().wrapping_sub(MEMORY.0.get().addr()) < SIZE
}

/// The size that was asked for.
///
/// # Safety
/// - The object came from [`alloc`].
pub(crate) unsafe fn size_of(object: *const c_void) -> usize {
    // SAFETY: `alloc` has written it there.
    unsafe { object.byte_sub(16).cast::<usize>().read() }
}
