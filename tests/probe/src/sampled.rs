//! Points with a sampler or a logger, whose fast path is that of points without.

use core::ptr;

use tripoint_ap::{AllocationPoint, Frame};
use tripoint_core::{ClientArena, EventHook, SingleCore};
use tripoint_pools::Snc;
use tripoint_telemetry::{PointLogger, PointSampler, SampledObject};

use crate::flippable::Flippable;
use crate::{ClientMfs, ClientMvff, Object};

type Logged<P> = AllocationPoint<'static, P, PointLogger<fn() -> bool, &'static dyn EventHook>>;
type Sampled<P> = AllocationPoint<'static, P, PointSampler<'static, fn(SampledObject)>>;

/// As `manual_loop`.
#[unsafe(no_mangle)]
pub fn sampled_manual_loop(point: &mut Sampled<ClientMfs>, count: usize, a: u64, b: u64) -> usize {
    (0..count).take_while(|_| point.alloc([a, b, a, b]).is_ok()).count()
}

/// As `variable_loop`.
#[unsafe(no_mangle)]
pub fn sampled_variable_loop(point: &mut Sampled<ClientMvff>, count: usize, a: u64, b: u64) -> usize {
    (0..count).take_while(|_| point.alloc([a, b, a, b]).is_ok()).count()
}

/// As `variable_single`.
#[unsafe(no_mangle)]
pub fn sampled_variable_single(point: &mut Sampled<ClientMvff>, a: u64, b: u64) -> *mut Object {
    point.alloc([a, b, a, b]).map_or(ptr::null_mut(), ptr::from_mut)
}

/// As `flippable_loop`.
#[unsafe(no_mangle)]
pub fn sampled_flippable_loop(
    point: &mut Sampled<Flippable<SingleCore>>,
    count: usize,
    a: u64,
    b: u64,
) -> usize {
    // SAFETY: no thread reads the objects of the probe's pool.
    (0..count).take_while(|_| unsafe { point.alloc_with(|| [a, b, a, b]) }.is_ok()).count()
}

/// As `variable_loop`, at a point that can report every object.
#[unsafe(no_mangle)]
pub fn logged_variable_loop(point: &mut Logged<ClientMvff>, count: usize, a: u64, b: u64) -> usize {
    (0..count).take_while(|_| point.alloc([a, b, a, b]).is_ok()).count()
}

/// As `flippable_loop`, at a point that can report every object.
#[unsafe(no_mangle)]
pub fn logged_flippable_loop(
    point: &mut Logged<Flippable<SingleCore>>,
    count: usize,
    a: u64,
    b: u64,
) -> usize {
    // SAFETY: no thread reads the objects of the probe's pool.
    (0..count).take_while(|_| unsafe { point.alloc_with(|| [a, b, a, b]) }.is_ok()).count()
}

/// As `frame_pop`.
///
/// # Safety
/// - As [`AllocationPoint::pop`].
#[unsafe(no_mangle)]
pub unsafe fn sampled_frame_pop(point: &mut Sampled<Snc<ClientArena<'static>>>, frame: Frame) {
    // SAFETY: the caller passes a frame of this point that is still pushed, and uses no object above it any more.
    unsafe { point.pop(frame) };
}
