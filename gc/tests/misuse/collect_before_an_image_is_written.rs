//! The objects of a plan are where they were until the image is written.

use tripoint_core::{Arena, BarrierPair};
use tripoint_gc::{ImageEntry, ImageOptions, Stopped};

fn misuse<A: Arena, B: BarrierPair>(stopped: &mut Stopped<'_, '_, A, B>, options: ImageOptions) {
    let mut table = [ImageEntry::default(); 1];
    let plan = stopped.plan_image(&[], &mut table, options).unwrap();
    stopped.collect();
    plan.size();
}

fn main() {}
