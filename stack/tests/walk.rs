//! What a walk finds, and what it finds if there is no walker.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::hint::black_box;
use std::alloc::System;
use std::thread;

use tripoint_stack::Site;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the allocations of each thread.
struct Counting;

// SAFETY: memory comes from the system's allocator and returns to it, with the layout as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's layout is not empty.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller's object came from `alloc` with this layout, and so from there.
        unsafe { System.dealloc(object, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const IS_WALKED: bool =
    cfg!(all(feature = "walker", target_os = "linux", not(any(target_arch = "arm", miri))));

#[inline(never)]
fn innermost() -> Site {
    black_box(Site::here())
}

#[inline(never)]
fn middle() -> Site {
    black_box(innermost())
}

/// Calls itself, so that there are `depth` frames of this function.
#[inline(never)]
fn recurse(depth: usize) -> Site {
    black_box(if depth == 0 { innermost() } else { recurse(depth - 1) })
}

/// The names of the functions that a site is in.
fn names(site: &Site) -> Vec<String> {
    let mut names = Vec::new();
    for &frame in site.frames() {
        let add = |symbol: &backtrace::Symbol| names.extend(symbol.name().map(|name| name.to_string()));
        backtrace::resolve(core::ptr::without_provenance_mut(frame - 1), add);
    }
    names
}

fn place(names: &[String], function: &str) -> usize {
    let is_it = |name: &String| name.split("::").any(|part| part == function);
    names.iter().position(is_it).unwrap_or_else(|| panic!("no {function} in {names:#?}"))
}

#[test]
fn a_site_begins_with_its_caller_and_goes_outwards() {
    let site = middle();
    if !IS_WALKED {
        return assert_eq!(site, Site::UNKNOWN);
    }
    let names = names(&site);
    let [inner, outer, test] = ["innermost", "middle", "a_site_begins_with_its_caller_and_goes_outwards"]
        .map(|name| place(&names, name));
    assert!(inner == 0 && inner < outer && outer < test, "{names:#?}");
}

/// (design/stack.md `.req.bounded`)
#[test]
fn the_innermost_frames_of_a_deep_stack_are_kept() {
    let site = recurse(10 * Site::FRAMES);
    if !IS_WALKED {
        return assert_eq!(site, Site::UNKNOWN);
    }
    assert_eq!(site.frames().len(), Site::FRAMES);
    let names = names(&site);
    assert_eq!(place(&names, "innermost"), 0);
    assert_eq!(names.iter().filter(|name| name.contains("recurse")).count(), Site::FRAMES - 1, "{names:#?}");
}

#[test]
fn the_same_call_has_the_same_site_and_another_has_another() {
    let [once, again] = [(); 2].map(|()| middle());
    let elsewhere = middle();
    assert_eq!(once, again);
    assert_eq!(once != elsewhere, IS_WALKED);
}

#[test]
fn a_new_thread_has_a_site_of_its_own() {
    let site = thread::spawn(middle).join().unwrap();
    assert_eq!(site != Site::UNKNOWN, IS_WALKED);
    assert_ne!(site.frames().len(), Site::FRAMES, "the stack of a thread ends where it began");
}

/// Nothing was interrupted here, so that the walk does not come past the instruction.
#[test]
fn an_instruction_that_is_not_on_the_stack_is_the_whole_site() {
    assert_eq!(Site::interrupted(0x1000).frames(), [0x1001]);
}

/// (design/stack.md `.req.still`)
#[test]
fn a_walk_allocates_nothing() {
    let _first = middle();
    let before = ALLOCATIONS.get();
    drop(black_box(Box::new(0)));
    assert_eq!(ALLOCATIONS.get(), before + 1, "allocations are counted");
    let before = ALLOCATIONS.get();
    let sites = [middle(), recurse(Site::FRAMES), recurse(3)];
    assert_eq!(ALLOCATIONS.get(), before);
    assert_eq!(sites.iter().all(|site| *site != Site::UNKNOWN), IS_WALKED);
}
