//! C's `malloc`, seen by interposition: `cargo test --features interpose-malloc`.
#![cfg(all(feature = "interpose-malloc", feature = "symbols", target_os = "linux", target_env = "gnu"))]

mod common;

use core::hint::black_box;
use std::ffi::CString;

use common::{armed, contract, of_kind, records};
use tripoint_contract::{
    ContractAllocator, DetectorSet, HotThread, Policies, Policy, RecordKind, Report, Resolve, Symbols,
    ViolationClass, ViolationSet, current,
};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

fn foreign() -> usize {
    current::count(ViolationClass::ForeignMalloc).0
}

#[test]
fn rust_is_not_foreign_and_c_is() {
    let text = CString::new("text").unwrap();
    let before = foreign();
    let mut grown = black_box(vec![1_u8; 10]);
    grown.reserve_exact(100_000);
    drop(black_box(vec![0_u64; 1_000]));
    drop(grown);
    assert_eq!(foreign(), before);
    // SAFETY: frees what `strdup`, inside libc, has allocated.
    unsafe { libc::free(black_box(libc::strdup(text.as_ptr())).cast()) };
    assert_eq!(foreign(), before + 2);
    // SAFETY: allocated, resized and freed once each, with valid arguments.
    unsafe {
        let object = black_box(libc::calloc(2, 8));
        let object = black_box(libc::realloc(object, 100));
        libc::free(object);
        let mut aligned = core::ptr::null_mut();
        assert_eq!(libc::posix_memalign(&raw mut aligned, 64, 100), 0);
        assert_eq!(aligned.addr() % 64, 0);
        libc::free(black_box(aligned));
        assert_eq!(libc::posix_memalign(&raw mut aligned, 3, 100), libc::EINVAL);
        libc::free(core::ptr::null_mut());
    }
    assert_eq!(foreign(), before + 7);
}

/// The compiler knows `malloc`, and that it reads none of the program's memory. Yet, when an
/// allocation is inlined, C's function must still learn that it is Rust's.
/// Only optimised builds prove this: `cargo test --release`.
#[test]
fn an_allocation_that_is_inlined_is_not_foreign() {
    let before = (foreign(), current::count(ViolationClass::Alloc).0);
    for _ in 0..3 {
        black_box(vec![1_u8; 100]);
        black_box(Box::new([1_u64; 5]));
        black_box(String::from("text").into_bytes());
    }
    assert_eq!(current::count(ViolationClass::Alloc).0, before.1 + 9);
    assert_eq!(foreign(), before.0);
}

unsafe extern "C" {
    fn valloc(size: usize) -> *mut core::ffi::c_void;
    fn pvalloc(size: usize) -> *mut core::ffi::c_void;
    fn memalign(align: usize, size: usize) -> *mut core::ffi::c_void;
}

/// A function of C with its name, and the alignment of what it returns.
type Way = (&'static str, fn() -> *mut core::ffi::c_void, usize);

/// Every function of C that returns memory.
#[test]
fn every_way_of_allocating_in_c_is_foreign() {
    let ways: [Way; 5] = [
        // SAFETY: a size is all that it asks for.
        ("valloc", || unsafe { valloc(100) }, 4096),
        // SAFETY: a size is all that it asks for.
        ("pvalloc", || unsafe { pvalloc(100) }, 4096),
        // SAFETY: the alignment is a power of two.
        ("memalign", || unsafe { memalign(64, 100) }, 64),
        // SAFETY: the alignment is a power of two, and divides the size.
        ("aligned_alloc", || unsafe { libc::aligned_alloc(64, 128) }, 64),
        // SAFETY: null is no object to move, and the product does not wrap.
        ("reallocarray", || unsafe { libc::reallocarray(core::ptr::null_mut(), 10, 10) }, 16),
    ];
    for (name, way, align) in ways {
        let before = foreign();
        let object = black_box(way());
        assert!(!object.is_null() && object.addr().is_multiple_of(align), "{name}");
        assert_eq!(foreign(), before + 1, "{name}");
        // SAFETY: allocated above, freed once.
        unsafe { libc::free(object) };
        assert_eq!(foreign(), before + 2, "{name}");
    }
    // SAFETY: a size that there is no memory for.
    assert!(black_box(unsafe { pvalloc(usize::MAX) }).is_null());
}

#[inline(never)]
fn culprit_foreign() {
    // SAFETY: allocated and freed once.
    unsafe { libc::free(black_box(libc::malloc(100))) };
}

#[test]
fn foreign_calls_are_violations_with_a_site() {
    let contract = contract();
    let thread = HotThread {
        classes: ViolationSet::FOREIGN_MALLOC,
        detectors: DetectorSet::FOREIGN_MALLOC,
        policies: Policies::all(Policy::Quarantine),
        ..HotThread::new("hot")
    };
    let guard = armed(contract, thread);
    assert_eq!(Report::new(contract).missing(), DetectorSet::empty());
    culprit_foreign();
    guard.check();
    let records = records(contract);
    assert_eq!(of_kind(&records, RecordKind::Alarm)[0].count, 2);
    let mut site = String::new();
    Symbols.resolve(&records[0].site, &mut site).unwrap();
    assert!(site.contains("culprit_foreign") && site.contains("foreign.rs:"), "{site}");
}
