//! How many objects of each size a plan has, at most at once.

use std::collections::BTreeMap;

use super::plan::{Action, Plan};

/// The objects of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) allocations: u64,
    /// The most that are live at once.
    pub(crate) most: u64,
    live: u64,
}

impl Plan {
    /// The demand for each size that `round` makes of an object's; objects of which it makes none are left out.
    pub(crate) fn demand(&self, round: impl Fn(usize) -> Option<usize>) -> BTreeMap<usize, Demand> {
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
        for action in &self.actions {
            match action {
                Action::Alloc { layout, .. } => change(layout.size(), true),
                Action::Free { layout, .. } => change(layout.size(), false),
                Action::Resize { from, to, .. } => {
                    change(from.size(), false);
                    change(to.size(), true);
                }
            }
        }
        sizes
    }
}
