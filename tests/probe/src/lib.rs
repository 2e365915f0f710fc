//! Functions whose assembly `tests/probe/tests/assembly/` reads: the fast path, inlined,
//! once and in a loop. They are compiled and never run.
//!
//! Objects have 32 bytes. `single` forms return the object, or null; `loop` forms
//! return how many of `count` were allocated. `paths` has the fast paths other than
//! reserve and commit, `automatic` has objects that a collector frees, `sampled` has points with a sampler, and `control` has code that the
//! test must reject.
#![no_std]

pub mod automatic;
pub mod control;
pub mod flippable;
pub mod paths;
pub mod sampled;

use core::ptr;

use tripoint_ap::AllocationPoint;
#[cfg(target_os = "linux")]
use tripoint_arena_vm::Membarrier;
use tripoint_core::{ClientArena, SingleCore};
use tripoint_pools::{Mfs, Mvff, UnitOf};

use flippable::Flippable;

/// The object: four words.
pub type Object = [u64; 4];

type ClientMfs = Mfs<ClientArena<'static>, UnitOf<Object>>;
type ClientMvff = Mvff<ClientArena<'static>>;

/// The manual form, in a pool whose unit is known.
#[unsafe(no_mangle)]
pub fn manual_single(point: &mut AllocationPoint<'static, ClientMfs>, a: u64, b: u64) -> *mut Object {
    point.alloc([a, b, a, b]).map_or(ptr::null_mut(), ptr::from_mut)
}

/// The manual form, in a loop.
#[unsafe(no_mangle)]
pub fn manual_loop(point: &mut AllocationPoint<'static, ClientMfs>, count: usize, a: u64, b: u64) -> usize {
    (0..count).take_while(|_| point.alloc([a, b, a, b]).is_ok()).count()
}

/// The manual form, in a pool of objects of any size.
#[unsafe(no_mangle)]
pub fn variable_single(point: &mut AllocationPoint<'static, ClientMvff>, a: u64, b: u64) -> *mut Object {
    point.alloc([a, b, a, b]).map_or(ptr::null_mut(), ptr::from_mut)
}

/// The manual form, in a pool of objects of any size, in a loop.
#[unsafe(no_mangle)]
pub fn variable_loop(
    point: &mut AllocationPoint<'static, ClientMvff>,
    count: usize,
    a: u64,
    b: u64,
) -> usize {
    (0..count).take_while(|_| point.alloc([a, b, a, b]).is_ok()).count()
}

/// The flippable form, with a compiler fence as light barrier, as membarrier has.
#[unsafe(no_mangle)]
pub fn flippable_single(
    point: &mut AllocationPoint<'static, Flippable<SingleCore>>,
    a: u64,
    b: u64,
) -> *mut Object {
    // SAFETY: no thread reads the objects of the probe's pool.
    unsafe { point.alloc_with(|| [a, b, a, b]) }.map_or(ptr::null_mut(), |object| object.as_ptr())
}

/// The flippable form, with membarrier itself.
#[unsafe(no_mangle)]
#[cfg(target_os = "linux")]
pub fn membarrier_loop(
    point: &mut AllocationPoint<'static, Flippable<Membarrier>>,
    count: usize,
    a: u64,
    b: u64,
) -> usize {
    // SAFETY: no thread reads the objects of the probe's pool.
    (0..count).take_while(|_| unsafe { point.alloc_with(|| [a, b, a, b]) }.is_ok()).count()
}

/// The flippable form, in a loop.
#[unsafe(no_mangle)]
pub fn flippable_loop(
    point: &mut AllocationPoint<'static, Flippable<SingleCore>>,
    count: usize,
    a: u64,
    b: u64,
) -> usize {
    // SAFETY: no thread reads the objects of the probe's pool.
    (0..count).take_while(|_| unsafe { point.alloc_with(|| [a, b, a, b]) }.is_ok()).count()
}
