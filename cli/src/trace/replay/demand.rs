//! How many objects of each size a trace has, at most at once.

use std::collections::BTreeMap;
use std::io;

use super::layouts::layout_of;
use super::outline::Outline;
use crate::trace::format::{Course, Operation};

/// The objects of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) allocations: u64,
    /// The most that are live at once.
    pub(crate) most: u64,
    live: u64,
}

impl Outline {
    /// The demand for each size that `round` makes of an object's; objects of which it makes none are left out.
    pub(crate) fn demand(
        &self,
        round: impl Fn(usize) -> Option<usize>,
    ) -> io::Result<BTreeMap<usize, Demand>> {
        let mut sizes: BTreeMap<usize, Demand> = BTreeMap::new();
        let mut change = |size: usize, is_birth: bool| {
            let Some(size) = round(size) else { return };
            let demand = sizes.entry(size).or_default();
            if is_birth {
                demand.live += 1;
                demand.allocations += 1;
                demand.most = demand.most.max(demand.live);
            } else {
                demand.live -= 1;
            }
        };
        let mut course = Course::open(&self.path, self.steps).map_err(io::Error::other)?;
        while let Some((step, object)) = course.step().map_err(io::Error::other)? {
            course.recycle();
            let Some(object) = object else { continue };
            let fitted = |size| layout_of(object.kind, size).map_err(io::Error::other);
            let before = fitted(object.size)?.size();
            match step.operation {
                Operation::Realloc { size, .. } => {
                    change(before, false);
                    change(fitted(size)?.size(), true);
                }
                operation => change(before, matches!(operation, Operation::Alloc { .. })),
            }
        }
        Ok(sizes)
    }
}
