//! The allocator of this program, chosen by an environment variable before the first allocation. The
//! choice costs all of them the same: a load and a jump.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::System;

use mimalloc::MiMalloc;
use rusty_alloc_api::RustyAlloc;
use snmalloc_rs::SnMalloc;
use tikv_jemallocator::Jemalloc;
use tripoint::{
    ArenaVm, ArenaVmOptions, GlobalPool, Mvff, MvffOptions, Tlsf, TlsfOptions, cached_global_pool,
};

pub(crate) const WHICH: &str = "TRIPOINT_ALLOCATOR";
const WHICH_C: &core::ffi::CStr = c"TRIPOINT_ALLOCATOR";

pub(crate) const ALLOCATORS: [&str; 9] = [
    "mimalloc",
    "cached-tlsf",
    "cached-mvff",
    "snmalloc",
    "jemalloc",
    "system",
    "tlsf",
    "cached-tlsf-huge",
    "rusty_alloc",
];

cached_global_pool! {
    static CACHED_TLSF: Tlsf<ArenaVm> =
        || Tlsf::create(ArenaVm::create(ArenaVmOptions::default())?, TlsfOptions::default());
}
cached_global_pool! {
    static CACHED_MVFF: Mvff<ArenaVm> =
        || Mvff::create(ArenaVm::create(ArenaVmOptions::default())?, MvffOptions::default());
}
cached_global_pool! {
    static HUGE_TLSF: Tlsf<ArenaVm> = || {
        let options = ArenaVmOptions { huge_pages: true, grain: 2 << 20, ..ArenaVmOptions::default() };
        Tlsf::create(ArenaVm::create(options)?, TlsfOptions::default())
    };
}
static TLSF: GlobalPool<Tlsf<ArenaVm>> =
    GlobalPool::new(|| Tlsf::create(ArenaVm::create(ArenaVmOptions::default())?, TlsfOptions::default()));

struct Chosen;

#[global_allocator]
static GLOBAL: Chosen = Chosen;

/// One more than the index of the allocator; 0 if it is not chosen yet.
static CHOICE: AtomicUsize = AtomicUsize::new(0);

#[inline(always)]
fn choice() -> usize {
    match CHOICE.load(Ordering::Relaxed) {
        0 => choose(),
        choice => choice,
    }
}

#[cold]
fn choose() -> usize {
    // SAFETY: a name that ends; nothing changes the environment before the first allocation.
    let value = unsafe { libc::getenv(WHICH_C.as_ptr()) };
    let index = if value.is_null() {
        5
    } else {
        // SAFETY: a value of the environment, which ends.
        let value = unsafe { core::ffi::CStr::from_ptr(value) };
        ALLOCATORS.iter().position(|name| name.as_bytes() == value.to_bytes()).unwrap_or(5)
    };
    CHOICE.store(index + 1, Ordering::Relaxed);
    index + 1
}

macro_rules! chosen {
    ($allocator:ident => $call:expr) => {
        match choice() {
            1 => {
                let $allocator = &MiMalloc;
                $call
            }
            2 => {
                let $allocator = &CACHED_TLSF;
                $call
            }
            3 => {
                let $allocator = &CACHED_MVFF;
                $call
            }
            4 => {
                let $allocator = &SnMalloc;
                $call
            }
            5 => {
                let $allocator = &Jemalloc;
                $call
            }
            7 => {
                let $allocator = &TLSF;
                $call
            }
            8 => {
                let $allocator = &HUGE_TLSF;
                $call
            }
            9 => {
                let $allocator = &RustyAlloc;
                $call
            }
            _ => {
                let $allocator = &System;
                $call
            }
        }
    };
}

// SAFETY: one allocator is called from the first call to the last, with what it is passed here.
unsafe impl GlobalAlloc for Chosen {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the allocator asks for.
        chosen!(allocator => unsafe { allocator.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the allocator asks for.
        chosen!(allocator => unsafe { allocator.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are those that the allocator asks for.
        chosen!(allocator => unsafe { allocator.dealloc(object, layout) })
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises are those that the allocator asks for.
        chosen!(allocator => unsafe { allocator.realloc(object, layout, size) })
    }
}
