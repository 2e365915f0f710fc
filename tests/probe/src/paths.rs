//! Fast paths other than reserve and commit, each once.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use tripoint_ap::{AllocationPoint, Batch, Frame, Scope, Tripper};
use tripoint_contract::{Guard, Route};
use tripoint_core::{ClientArena, Result, Store};
use tripoint_pools::{Cache, MfsCache, Returns, Snc, UnitOf};

use crate::{ClientMvff, Object};

type ClientSnc = Snc<ClientArena<'static>>;
type ClientMfsCache = MfsCache<'static, ClientArena<'static>, UnitOf<Object>>;
type ClientReturns = Returns<'static, ClientArena<'static>, UnitOf<Object>>;

const LAYOUT: Layout = Layout::new::<Object>();

fn or_null<T>(object: Result<NonNull<T>>) -> *mut T {
    object.map_or(ptr::null_mut(), NonNull::as_ptr)
}

/// A batch takes an object.
#[unsafe(no_mangle)]
pub fn batch_push(batch: &mut Batch<'_, 'static, Object, ClientMvff>, a: u64, b: u64) -> bool {
    batch.push([a, b, a, b]).is_ok()
}

/// A batch is committed; returns the number of its objects.
#[unsafe(no_mangle)]
pub fn batch_commit(batch: Batch<'_, 'static, Object, ClientMvff>) -> usize {
    batch.commit().len()
}

/// A frame is pushed.
#[unsafe(no_mangle)]
pub fn frame_push(point: &mut AllocationPoint<'static, ClientSnc>) -> Frame {
    point.push()
}

/// An object in a frame.
#[unsafe(no_mangle)]
pub fn frame_alloc(scope: &mut Scope<'_, '_, 'static, ClientSnc>, a: u64, b: u64) -> *mut Object {
    scope.alloc([a, b, a, b]).map_or(ptr::null_mut(), ptr::from_mut)
}

/// Objects in a frame, in a loop that uses each of them; returns the last one,
/// or null.
#[unsafe(no_mangle)]
pub fn frame_loop(
    scope: &mut Scope<'_, '_, 'static, ClientSnc>,
    count: usize,
    a: u64,
    b: u64,
) -> *mut Object {
    let mut last = ptr::null_mut();
    for _ in 0..count {
        let Ok(object) = scope.alloc([a, b, a, b]) else { return ptr::null_mut() };
        last = ptr::from_mut(object);
    }
    last
}

/// A frame is popped.
///
/// # Safety
/// - As [`AllocationPoint::pop`].
#[unsafe(no_mangle)]
pub unsafe fn frame_pop(point: &mut AllocationPoint<'static, ClientSnc>, frame: Frame) {
    // SAFETY: the caller passes a frame of this point that is still pushed, and uses no object above it any more.
    unsafe { point.pop(frame) };
}

/// Allocates a unit from the cache of an MFS.
#[unsafe(no_mangle)]
pub fn unit_alloc(cache: &ClientMfsCache) -> *mut u8 {
    or_null(cache.alloc(LAYOUT))
}

/// Frees a unit to the cache of an MFS.
///
/// # Safety
/// - As [`Store::free`].
#[unsafe(no_mangle)]
pub unsafe fn unit_free(cache: &ClientMfsCache, object: NonNull<u8>) {
    // SAFETY: the caller passes a unit of the pool with this layout, once, and uses it no more.
    unsafe { cache.free(object, LAYOUT) };
}

/// Frees a unit that another thread allocated.
///
/// # Safety
/// - As [`Returns::free`].
#[unsafe(no_mangle)]
pub unsafe fn unit_return(returns: &mut ClientReturns, object: NonNull<u8>) {
    // SAFETY: the caller passes a unit of the pool with this layout, once, and uses it no more.
    unsafe { returns.free(object, LAYOUT) };
}

/// Allocates a block from a cache by size classes.
#[unsafe(no_mangle)]
pub fn cache_alloc(cache: &Cache<'static, ClientMvff>) -> *mut u8 {
    or_null(cache.alloc(LAYOUT))
}

/// Frees a block to a cache by size classes.
///
/// # Safety
/// - As [`Store::free`].
#[unsafe(no_mangle)]
pub unsafe fn cache_free(cache: &Cache<'static, ClientMvff>, object: NonNull<u8>) {
    // SAFETY: the caller passes a block of the pool with this layout, once, and uses it no more.
    unsafe { cache.free(object, LAYOUT) };
}

/// An allocation point is tripped, as a signal handler may do.
#[unsafe(no_mangle)]
pub fn trip(tripper: &Tripper<'static>) {
    tripper.trip();
}

/// A hot thread's check, once a turn.
#[unsafe(no_mangle)]
pub fn guard_check(guard: &Guard) {
    guard.check();
}

/// A route of the warm-up is passed.
#[unsafe(no_mangle)]
pub fn route_pass(route: &Route) {
    route.pass();
}
