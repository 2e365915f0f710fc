//! What a whole program has in use (design/sampling.md `.live`). A process of its own, because it has a global
//! allocator of its own, and one test, because threads of the harness allocate too.

use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use std::alloc::System;

use tripoint_telemetry::{GlobalSampler, LiveSamples, Mean, ObjectKind, SampledAllocator, Sampling};

static SAMPLING: Sampling = Sampling::off(0x11fe);
static LIVE: LiveSamples<4096> = LiveSamples::new();
static REFUSE: AtomicBool = AtomicBool::new(false);

/// Refuses to reallocate on request.
struct Refusing;

// SAFETY: memory comes from the system's allocator and returns to it, with the layout as it came; a
// reallocation that is refused leaves the object as it was.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout has a size.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller's object came from there with this layout.
        unsafe { System.dealloc(object, layout) };
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if REFUSE.load(Ordering::Relaxed) {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller's object came from there with this layout, and the size is as it must be.
        unsafe { System.realloc(object, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: SampledAllocator<Refusing, &LiveSamples<4096>> =
    SampledAllocator::new(Refusing, GlobalSampler::new(&SAMPLING, |_| ()).remembering(&LIVE));

/// The sizes of the objects at an address in the table: none or one.
fn at(object: *const u8) -> Option<u64> {
    let mut size = None;
    LIVE.for_each(|sampled| {
        if sampled.object.get() == object.addr() {
            assert_eq!((sampled.kind, size), (ObjectKind::Global, None));
            size = Some(sampled.sample.size());
        }
    });
    size
}

#[test]
fn what_a_program_has_in_use_is_remembered_until_it_is_freed() {
    SAMPLING.set_mean(Some(Mean::EVERY_BYTE));
    ALLOCATOR.follow_switch();
    let boxed = black_box(Box::new([1_u8; 300]));
    let address = core::ptr::from_ref(&*boxed).cast::<u8>();
    assert_eq!(at(address), Some(300));
    // Freed by another thread.
    std::thread::spawn(move || drop(boxed)).join().unwrap();
    assert_ne!(at(address), Some(300));

    let mut bytes = Vec::with_capacity(500);
    bytes.push(7_u8);
    assert_eq!(at(bytes.as_ptr()), Some(500));
    REFUSE.store(true, Ordering::Relaxed);
    assert!(bytes.try_reserve_exact(900).is_err());
    REFUSE.store(false, Ordering::Relaxed);
    assert_eq!(at(bytes.as_ptr()), Some(500), "what was not reallocated is in use as before");
    let before = bytes.as_ptr();
    bytes.reserve_exact(100_000);
    assert_eq!(at(bytes.as_ptr()), Some(100_001));
    assert!(before == bytes.as_ptr() || at(before) != Some(500));
    let after = bytes.as_ptr();
    drop(bytes);
    assert_ne!(at(after), Some(100_001));
    assert_eq!(LIVE.missed(), 0);
}
