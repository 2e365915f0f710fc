//! A program cannot add kinds of units: pools rely on their sizes.

use tripoint_pools::Unit;

#[derive(Clone, Copy, Debug)]
struct Changing;

impl Unit for Changing {
    fn size(self) -> usize {
        0
    }

    fn align(self) -> usize {
        3
    }
}

fn main() {}
