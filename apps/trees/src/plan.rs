//! Which trees are built.

/// One large tree, one that is kept to the end, and many that are dropped as soon as they were counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    depth: u32,
}

impl Plan {
    /// A plan whose lasting tree has this depth.
    pub(crate) const fn new(depth: u32) -> Self {
        Self { depth }
    }

    /// The depth of the first tree, which is dropped before the others are built.
    pub(crate) const fn stretch(self) -> u32 {
        self.depth + 1
    }

    /// The depth of the tree that is kept.
    pub(crate) const fn lasting(self) -> u32 {
        self.depth
    }

    /// The depths of the trees that are dropped: few deep ones and many flat ones, so that there are about as many
    /// nodes of each depth.
    pub(crate) fn short_lived(self) -> impl Iterator<Item = u32> {
        let depths = (4..self.depth.saturating_sub(1)).step_by(4);
        depths.flat_map(move |depth| core::iter::repeat_n(depth, 16 << (self.depth - depth)))
    }
}

/// How many nodes a tree of this depth has.
pub(crate) const fn nodes(depth: u32) -> usize {
    (2 << depth) - 1
}
