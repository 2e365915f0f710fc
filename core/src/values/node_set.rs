//! Sets of memory nodes: which memory of a machine, by its distance from processors.

use core::fmt;

/// A set of memory nodes, by their numbers: 0 to 63, or to 31 on 32-bit targets.
///
/// ```
/// use tripoint_core::NodeSet;
/// let nodes = NodeSet::of(&[0, 2]).expect("small numbers");
/// assert!(nodes.contains(2) && !nodes.contains(1));
/// assert_eq!(nodes.to_string(), "0, 2");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeSet(usize);

impl NodeSet {
    /// How many numbers a node can have.
    pub const MAX: usize = usize::BITS as usize;

    /// The set of these nodes; `None` if a number is [`NodeSet::MAX`] or more.
    #[must_use]
    pub const fn of(nodes: &[usize]) -> Option<Self> {
        let (mut mask, mut next) = (0, 0);
        while next < nodes.len() {
            if nodes[next] >= Self::MAX {
                return None;
            }
            mask |= 1 << nodes[next];
            next += 1;
        }
        Some(Self(mask))
    }

    /// The set whose node `n` is bit `n` of a mask.
    #[must_use]
    pub const fn from_mask(mask: usize) -> Self {
        Self(mask)
    }

    /// The set as a mask: node `n` is bit `n`.
    #[must_use]
    pub const fn mask(self) -> usize {
        self.0
    }

    /// Whether no node is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set contains a node.
    #[must_use]
    pub const fn contains(self, node: usize) -> bool {
        node < Self::MAX && self.0 & 1 << node != 0
    }

    /// Whether all of another set's nodes are in this one.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// The nodes, in order.
    pub fn nodes(self) -> impl Iterator<Item = usize> {
        (0..Self::MAX).filter(move |&node| self.contains(node))
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (position, node) in self.nodes().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{node}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn a_set_has_the_nodes_that_it_was_made_of() {
        let last = NodeSet::MAX - 1;
        let set = NodeSet::of(&[last, 3, 3]).unwrap();
        assert_eq!(set.nodes().collect::<Vec<_>>(), [3, last]);
        assert_eq!(NodeSet::from_mask(set.mask()), set);
        assert!(set.contains(last) && !set.contains(0) && !set.contains(NodeSet::MAX));
        assert_eq!(NodeSet::of(&[NodeSet::MAX]), None);
        let three = NodeSet::of(&[3]).unwrap();
        assert!(set.covers(three) && !three.covers(set) && three.covers(NodeSet::default()));
    }

    #[test]
    fn a_set_is_shown_as_its_numbers() {
        assert_eq!(NodeSet::default().to_string(), "none");
        assert_eq!(NodeSet::of(&[1]).unwrap().to_string(), "1");
        assert_eq!(NodeSet::of(&[5, 1, 0]).unwrap().to_string(), "0, 1, 5");
    }
}
