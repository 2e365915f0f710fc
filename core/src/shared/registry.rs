//! The descriptors of a pool's buffers: a list that only grows.
//!
//! A descriptor stays in the list, and in memory, until its pool is dropped.
//! When its allocation point is dropped it is released, and a later allocation
//! point of the pool claims it again. Descriptors never change type or place, so a
//! thread that still holds one may trip it at any time without asking whether it
//! is in use, and walking the list takes no lock ([design/core.md](crate::design::overview)
//! `.registry`).
//!
//! Released descriptors are also in a second list, behind a lock, so that the time to
//! claim one does not grow with the number in use ([design/core.md](crate::design::overview)
//! `.registry.free`).

use core::alloc::Layout;
use core::mem::offset_of;
use core::ptr::{self, NonNull};

use crate::primitive::lock::Lock;
use crate::primitive::{AtomicBool, AtomicPtr, Ordering};
use crate::values::addr::{Addr, AddrRange};
use crate::values::check::{CheckError, CheckLevel};

/// Models find by themselves what the assertions here would find, without more loads to explore.
const IN_MODEL: bool = cfg!(any(tripoint_loom, tripoint_shuttle));

/// The part of a descriptor that the list uses. It must be the descriptor's
/// first field, so that a pointer to one is a pointer to the other.
#[derive(Debug)]
#[repr(C)]
pub struct RegistryNode {
    next: AtomicPtr<RegistryNode>,
    /// The next free node, if this one is free.
    next_free: AtomicPtr<RegistryNode>,
    claimed: AtomicBool,
    layout: Layout,
}

impl RegistryNode {
    /// Where in a node the next one is, and whether it is claimed, for readers outside of the process.
    pub const OFFSETS: [usize; 2] = [offset_of!(Self, next), offset_of!(Self, claimed)];

    /// Creates the node of a claimed descriptor of this layout.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        let null = || AtomicPtr::new(ptr::null_mut());
        Self { next: null(), next_free: null(), claimed: AtomicBool::new(true), layout }
    }

    /// The layout of the whole descriptor.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether the descriptor has an owner at this moment. This orders nothing: what a descriptor shows to other threads
    /// has its own order, as its next owner renews it after it was claimed.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Relaxed)
    }
}

/// Whether memory is a pool's.
pub type Owns<'a> = &'a dyn Fn(AddrRange) -> bool;

/// What any thread may do to a buffer that it knows only by its node: the buffer protocol is in a
/// crate of its own, which collectors do not use.
#[derive(Debug)]
pub struct BufferOperations {
    /// Trips the buffer.
    ///
    /// # Safety
    /// - The node is of a registry with these operations.
    pub trip: unsafe fn(NonNull<RegistryNode>),
    /// Flips the buffer, if it has a rank, and returns its memory; `None` if it has none. Until
    /// the owner goes on, objects that are reserved and not committed stay so, or their commits fail.
    ///
    /// # Safety
    /// - The node is of a registry with these operations.
    /// - The owner does nothing with the buffer during this call. What it did before comes before the
    ///   call, and what it does next comes after it.
    pub flip_at_stop: unsafe fn(NonNull<RegistryNode>) -> Option<BufferMemory>,
    /// What the buffer's class keeps: a pointer to a value of that class.
    ///
    /// # Safety
    /// - The node is of a registry with these operations.
    pub class: unsafe fn(NonNull<RegistryNode>) -> NonNull<()>,
    /// Checks the buffer as far as the level says, and by `owns` that its memory is the pool's. What the owner changes
    /// meanwhile is not looked at.
    ///
    /// # Safety
    /// - The node is of a registry with these operations.
    pub check: unsafe fn(NonNull<RegistryNode>, CheckLevel, Owns<'_>) -> Result<(), CheckError>,
    /// How far behind a node the word is up to which there are whole objects, for readers outside of the process, which call
    /// nothing.
    pub init_offset: usize,
    /// How far behind a node what the buffer's class keeps is.
    pub class_offset: usize,
}

impl BufferOperations {
    /// Where the two offsets are.
    pub const OFFSETS: [usize; 2] = [offset_of!(Self, init_offset), offset_of!(Self, class_offset)];
}

/// The memory of a buffer at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferMemory {
    /// Where the buffer's memory begins.
    pub base: Addr,
    /// Up to where there are whole objects.
    pub scan_limit: Addr,
    /// Where the buffer's memory ends.
    pub limit: Addr,
}

/// A list of descriptors that any thread may walk or push to at any time.
#[derive(Debug)]
pub struct Registry {
    head: AtomicPtr<RegistryNode>,
    /// Null as long as there is no buffer in the list.
    operations: AtomicPtr<BufferOperations>,
    /// The descriptor that was released last. Changed only under `free_lock`.
    free: AtomicPtr<RegistryNode>,
    free_lock: Lock<()>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// Where in a registry its first node and its operations are, for readers outside of the process.
    pub const OFFSETS: [usize; 2] = [offset_of!(Self, head), offset_of!(Self, operations)];

    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        let null = || AtomicPtr::new(ptr::null_mut());
        let operations = AtomicPtr::new(ptr::null_mut());
        Self { head: null(), operations, free: null(), free_lock: Lock::new(()) }
    }

    /// States what can be done to the descriptors of the list, before the first is pushed.
    ///
    /// # Safety
    /// - The operations are for what the nodes of this list begin, now and later.
    pub unsafe fn set_operations(&self, operations: &'static BufferOperations) {
        self.operations.store(ptr::from_ref(operations).cast_mut(), Ordering::Release);
    }

    /// Passes every buffer of the list that has an owner to `visit`, with what can be done to it. Takes
    /// no lock, and may miss a buffer that gets its owner meanwhile.
    pub fn for_each_buffer(&self, mut visit: impl FnMut(NonNull<RegistryNode>, &'static BufferOperations)) {
        let operations = self.operations.load(Ordering::Acquire);
        // SAFETY: if it is not null, it came from a `&'static` (`set_operations`).
        let Some(operations) = (unsafe { operations.as_ref() }) else { return };
        for node in self.iter() {
            // SAFETY: nodes in the list stay valid while it exists (`push`).
            if unsafe { node.as_ref() }.is_claimed() {
                visit(node, operations);
            }
        }
    }

    /// Trips every buffer of the list that has an owner.
    pub fn trip_all(&self) {
        // SAFETY: the node is of this list, and the operations are for its nodes (`set_operations`).
        self.for_each_buffer(|node, operations| unsafe { (operations.trip)(node) });
    }

    /// Checks every buffer of the list that has an owner.
    ///
    /// # Errors
    /// A rule that is found broken.
    pub fn check_all(&self, level: CheckLevel, owns: Owns<'_>) -> Result<(), CheckError> {
        let mut found = Ok(());
        self.for_each_buffer(|node, operations| {
            // SAFETY: the node is of this list, and the operations are for its nodes (`set_operations`).
            found = found.and_then(|()| unsafe { (operations.check)(node, level, owns) });
        });
        found
    }

    /// Adds a descriptor, permanently.
    ///
    /// # Safety
    /// - `node` is initialised, is in no list, and stays valid for shared use
    ///   while the list exists.
    /// - In the list of a pool's buffers, it begins memory from
    ///   [`PoolHeader::alloc_descriptor`] of that pool with the node's layout, which the pool's
    ///   header frees when it is dropped; and it begins a buffer descriptor of that pool's buffer
    ///   class.
    ///
    /// [`PoolHeader::alloc_descriptor`]: crate::PoolHeader::alloc_descriptor
    pub unsafe fn push(&self, node: NonNull<RegistryNode>) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller promises that the node is initialised and valid for shared use.
            unsafe { node.as_ref() }.next.store(head, Ordering::Relaxed);
            match self.head.compare_exchange(head, node.as_ptr(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes a free descriptor of this layout for a new owner.
    ///
    /// Searches only the free descriptors, beginning with the one that was released last, which
    /// has this layout in most programs.
    #[must_use]
    pub fn claim(&self, layout: Layout) -> Option<NonNull<RegistryNode>> {
        let _one_at_a_time = self.free_lock.lock();
        let mut link = &self.free;
        loop {
            let node = NonNull::new(link.load(Ordering::Relaxed))?;
            // SAFETY: nodes in the list stay valid while it exists (`push`), and free nodes
            // are nodes of the list (`release`).
            let found = unsafe { node.as_ref() };
            debug_assert!(IN_MODEL || !found.is_claimed(), "{node:?} is free and claimed");
            if found.layout == layout {
                link.store(found.next_free.load(Ordering::Relaxed), Ordering::Relaxed);
                found.claimed.store(true, Ordering::Relaxed);
                return Some(node);
            }
            link = &found.next_free;
        }
    }

    /// Releases a descriptor: it has no owner, and may be claimed.
    ///
    /// # Safety
    /// - `node` is in this list, with the provenance it was pushed with.
    /// - The caller is its owner. Neither the caller, nor anything it passed its ownership
    ///   on to, uses the descriptor as an owner any more.
    pub unsafe fn release(&self, node: NonNull<RegistryNode>) {
        // SAFETY: nodes in the list stay valid while it exists (`push`).
        let released = unsafe { node.as_ref() };
        debug_assert!(IN_MODEL || released.is_claimed(), "{node:?} is released twice");
        let _one_at_a_time = self.free_lock.lock();
        released.next_free.store(self.free.load(Ordering::Relaxed), Ordering::Relaxed);
        released.claimed.store(false, Ordering::Relaxed);
        self.free.store(node.as_ptr(), Ordering::Relaxed);
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
            // SAFETY: the node is leaked, so it stays where it is and valid; it is pushed once.
            unsafe { registry.push(node) };
        }
        let seen: Vec<_> = registry.iter().collect();
        assert_eq!(seen, nodes.iter().rev().copied().collect::<Vec<_>>());
        // SAFETY: the node is leaked, so it stays valid.
        let first = unsafe { nodes[0].as_ref() };
        assert!(first.is_claimed() && registry.claim(layout).is_none());
        // SAFETY: the node is in the list, and this test has claimed it by making it.
        unsafe { registry.release(nodes[0]) };
        assert!(!first.is_claimed());
        assert_eq!((registry.claim(layout), registry.claim(layout)), (Some(nodes[0]), None));
        assert!(first.is_claimed() && first.layout() == layout);
        for node in nodes {
            // SAFETY: leaked from a box above; the list is not walked again.
            drop(unsafe { Box::from_raw(node.as_ptr()) });
        }
    }

    /// (design/core.md `.registry.operations`)
    #[test]
    fn those_that_have_an_owner_are_tripped() {
        use crate::primitive::AtomicUsize;

        #[repr(C)]
        struct Counted(RegistryNode, AtomicUsize);

        /// # Safety
        /// - `node` begins a `Counted`.
        unsafe fn count(node: NonNull<RegistryNode>) {
            // SAFETY: the caller promises a `Counted`, which is leaked below.
            unsafe { node.cast::<Counted>().as_ref() }.1.fetch_add(1, Ordering::Relaxed);
        }

        /// # Safety
        /// - None.
        unsafe fn flip_at_stop(_node: NonNull<RegistryNode>) -> Option<BufferMemory> {
            None
        }

        /// # Safety
        /// - None.
        unsafe fn class(node: NonNull<RegistryNode>) -> NonNull<()> {
            node.cast()
        }

        /// # Safety
        /// - None.
        unsafe fn check(
            _node: NonNull<RegistryNode>,
            _level: CheckLevel,
            _owns: Owns<'_>,
        ) -> Result<(), CheckError> {
            Ok(())
        }

        static COUNT: BufferOperations =
            BufferOperations { trip: count, flip_at_stop, class, check, init_offset: 0, class_offset: 0 };
        let (registry, layout) = (Registry::new(), Layout::new::<Counted>());
        let counted =
            || NonNull::from(Box::leak(Box::new(Counted(RegistryNode::new(layout), AtomicUsize::new(0)))));
        let nodes = [counted(), counted()];
        for node in nodes {
            // SAFETY: the node is leaked, so it stays where it is and valid; it is pushed once.
            unsafe { registry.push(node.cast()) };
        }
        registry.trip_all();
        // SAFETY: both nodes begin a `Counted`.
        unsafe { registry.set_operations(&COUNT) };
        // SAFETY: the node is in the list, and this test has claimed it by making it.
        unsafe { registry.release(nodes[0].cast()) };
        registry.trip_all();
        // SAFETY: leaked from boxes above; the list is not used again.
        let trips = nodes.map(|node| unsafe { Box::from_raw(node.as_ptr()) }.1.into_inner());
        assert_eq!(trips, [0, 1], "of the second alone, and not before it was said how");
    }

    /// (design/core.md `.registry.free`)
    #[test]
    fn claiming_passes_those_in_use_by() {
        let mut registry = Registry::new();
        let [small, large] = [Layout::new::<RegistryNode>(), Layout::new::<[RegistryNode; 2]>()];
        let nodes =
            [small, large, small].map(|layout| NonNull::from(Box::leak(Box::new(RegistryNode::new(layout)))));
        for node in nodes {
            // SAFETY: the node is leaked, so it stays where it is and valid; it is pushed once.
            unsafe { registry.push(node) };
        }
        for node in nodes {
            // SAFETY: the node is in the list, and this test has claimed it by making it.
            unsafe { registry.release(node) };
        }
        // Nodes in use are only in this list. With it gone, `claim` cannot look at them.
        registry.head = AtomicPtr::new(ptr::null_mut());
        assert_eq!(registry.claim(large), Some(nodes[1]), "of its layout, wherever it is");
        assert_eq!(registry.claim(large), None);
        assert_eq!(registry.claim(small), Some(nodes[2]), "the last first");
        assert_eq!((registry.claim(small), registry.claim(small)), (Some(nodes[0]), None));
        for node in nodes {
            // SAFETY: leaked from a box above; the list is not used again.
            drop(unsafe { Box::from_raw(node.as_ptr()) });
        }
    }
}
