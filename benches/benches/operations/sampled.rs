//! What a sampler adds to 100 KiB in objects of 32 bytes, of which one is drawn with the usual mean.

use core::alloc::Layout;
use core::hint::black_box;

use tripoint::points::Control;
use tripoint::telemetry::{Mean, PointSampler, SampledObject, Sampling};
use tripoint::{AllocationPoint, ArenaVm, ArenaVmOptions, BufferKind, Snc, SncOptions};

use crate::{Operation, counted};

pub(crate) const OPERATIONS: [Operation; 3] = [
    ("100 KiB at a point", |count| at_point((), count)),
    ("100 KiB at a point, sampler off", |count| sampled(None, count)),
    ("100 KiB at a point, sampled", |count| sampled(Mean::new(BYTES as u32), count)),
];

const BYTES: usize = 100 << 10;

fn sampled(mean: Option<Mean>, count: usize) {
    let sampling = Sampling::off(42);
    sampling.set_mean(mean);
    let report = |sampled: SampledObject| {
        black_box(sampled);
    };
    at_point(PointSampler::new(&sampling, report), count);
}

/// All of it in one block, which is popped each time and not counted.
fn at_point<C: Control>(control: C, count: usize) {
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let pool = Snc::create(&arena, SncOptions { fill_size: 1 << 20, extend_by: 1 << 20 }).unwrap();
    let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, control).unwrap();
    fill(&mut point, 1);
    for _ in 0..count {
        let frame = point.push();
        counted(|| fill(&mut point, BYTES / 32));
        // SAFETY: the frame is of this point, and no object above it is used any more.
        unsafe { point.pop(frame) };
    }
}

#[inline(always)]
fn fill<C: Control>(point: &mut AllocationPoint<'_, Snc<&ArenaVm>, C>, objects: usize) {
    for number in 0..objects as u64 {
        let reservation = point.reserve(Layout::new::<[u64; 4]>()).unwrap();
        // SAFETY: reserved just now, with the layout of the value.
        unsafe { reservation.as_ptr().cast().write([number; 4]) };
        // SAFETY: written just now.
        unsafe { reservation.commit() }.unwrap();
    }
}
