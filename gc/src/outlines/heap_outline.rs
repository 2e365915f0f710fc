//! Where the pools and the roots of a heap are, for readers outside of the process (design/inspection.md `.heaps`).

use tripoint_core::internal::{AtomicUsize, Ordering, compiler_fence};

/// What a collection is doing with the objects of a heap.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(crate) enum Doing {
    /// Nothing, or objects are marked where they are.
    Nothing = 0,
    /// Objects move, and what refers to them is changed.
    Moving = 1,
    /// Dead objects are freed: segments are between two lists.
    Sweeping = 2,
}

/// The outline of a heap, in the heap. So it moves with it, and is written anew by each call that has the heap stay where it
/// is.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HeapOutline {
    /// Its own address: an outline that lies elsewhere is what a heap left that has moved or ended.
    this: AtomicUsize,
    /// The words with the first outline of a pool, and with the first root.
    pools: AtomicUsize,
    roots: AtomicUsize,
    /// The registry of its frozen segments.
    frozen: AtomicUsize,
    doing: AtomicUsize,
}

impl HeapOutline {
    pub(crate) fn new() -> Self {
        let [this, pools, roots, frozen, doing] = core::array::from_fn(|_| AtomicUsize::new(0));
        Self { this, pools, roots, frozen, doing }
    }

    /// The heap is here. Returns the address of the outline.
    pub(crate) fn place(&self, pools: usize, roots: usize, frozen: usize) -> usize {
        let this = core::ptr::from_ref(self).addr();
        for (word, value) in
            [(&self.pools, pools), (&self.roots, roots), (&self.frozen, frozen), (&self.this, this)]
        {
            word.store(value, Ordering::Relaxed);
        }
        this
    }

    /// What a collection is doing from here on. What the program says before is written before, and what it says after, after.
    pub(crate) fn set_doing(&self, doing: Doing) {
        // A reader sees the writes of a thread that it has stopped in the order of the program, if the compiler keeps that.
        compiler_fence(Ordering::SeqCst);
        self.doing.store(doing as usize, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }
}
