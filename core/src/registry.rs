//! The descriptors of a pool's buffers: a list that only grows.
//!
//! A descriptor stays in the list, and in memory, until its pool is dropped.
//! When its allocation point goes away it is released, and the next allocation
//! point of the pool claims it again. Because descriptors never change type or
//! place, whoever still holds one may trip it at any time without asking whether
//! it is in use, and walking the list takes no lock (design/core.md `.registry`).

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::primitive::{AtomicBool, AtomicPtr, Ordering};

/// The part of a descriptor that the list uses. It must be the descriptor's
/// first field, so that a pointer to one is a pointer to the other.
#[derive(Debug)]
#[repr(C)]
pub struct RegistryNode {
    next: AtomicPtr<RegistryNode>,
    claimed: AtomicBool,
    layout: Layout,
}

impl RegistryNode {
    /// The node of a claimed descriptor of this layout.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self { next: AtomicPtr::new(core::ptr::null_mut()), claimed: AtomicBool::new(true), layout }
    }

    /// The layout of the whole descriptor.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Takes the descriptor for a new owner; false where it has one.
    #[must_use]
    pub fn claim(&self) -> bool {
        self.claimed.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Gives the descriptor up.
    ///
    /// # Safety
    /// - The caller is the owner, and neither it nor what it handed its ownership
    ///   to uses the descriptor as an owner any more.
    pub unsafe fn release(&self) {
        self.claimed.store(false, Ordering::Release);
    }

    /// Whether the descriptor has an owner at this moment.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Acquire)
    }
}

/// A list of descriptors that any thread may walk or push to at any time.
#[derive(Debug)]
pub struct Registry {
    head: AtomicPtr<RegistryNode>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self { head: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Adds a descriptor for good.
    ///
    /// # Safety
    /// - `node` is initialised, is in no list, and stays valid for shared use
    ///   while the list exists.
    /// - It begins memory from [`PoolHeader::alloc_descriptor`] of the list's own
    ///   pool with the node's layout, which the pool's header frees in the end; and
    ///   it begins a buffer descriptor of that pool's buffer class.
    ///
    /// [`PoolHeader::alloc_descriptor`]: crate::PoolHeader::alloc_descriptor
    pub unsafe fn push(&self, node: NonNull<RegistryNode>) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller promises that the node is valid.
            unsafe { node.as_ref() }.next.store(head, Ordering::Relaxed);
            match self.head.compare_exchange(head, node.as_ptr(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Walks the list, newest descriptor first.
    pub fn iter(&self) -> impl Iterator<Item = NonNull<RegistryNode>> {
        let mut next = NonNull::new(self.head.load(Ordering::Acquire));
        core::iter::from_fn(move || {
            let node = next?;
            // SAFETY: nodes in the list stay valid while it exists (`push`), and
            // the acquiring load that found it saw it whole.
            next = NonNull::new(unsafe { node.as_ref() }.next.load(Ordering::Acquire));
            Some(node)
        })
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    #[test]
    fn walks_newest_first_and_claims_once() {
        let registry = Registry::new();
        let layout = Layout::new::<RegistryNode>();
        let nodes: Vec<_> =
            (0..3).map(|_| NonNull::from(Box::leak(Box::new(RegistryNode::new(layout))))).collect();
        for &node in &nodes {
            // SAFETY: leaked above, pushed once.
            unsafe { registry.push(node) };
        }
        let seen: Vec<_> = registry.iter().collect();
        assert_eq!(seen, nodes.iter().rev().copied().collect::<Vec<_>>());
        // SAFETY: leaked above.
        let first = unsafe { nodes[0].as_ref() };
        assert!(first.is_claimed() && !first.claim());
        // SAFETY: claimed when made, by this test.
        unsafe { first.release() };
        assert!(!first.is_claimed());
        assert!(first.claim() && !first.claim());
        assert!(first.is_claimed() && first.layout() == layout);
        for node in nodes {
            // SAFETY: leaked from a box above; the list is not walked again.
            drop(unsafe { Box::from_raw(node.as_ptr()) });
        }
    }
}
