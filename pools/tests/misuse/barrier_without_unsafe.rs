//! The author of a barrier pair makes promises about the processor.

use tripoint_core::{BarrierPair, SingleCore};

#[derive(Clone, Copy, Debug)]
struct Mine;

impl BarrierPair for Mine {
    fn light(self) {}
    fn heavy(self) {}
}

fn main() {
    let _ = SingleCore::new();
}
