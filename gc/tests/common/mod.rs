//! Nodes in automatic pools, for tests: what they look like, and how they are made.
#![allow(dead_code, reason = "not every file of tests uses all")]

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;

use tripoint_ap::AllocationPoint;
use tripoint_core::{
    BarrierPair, Block, BufferKind, ClientArena, ClientArenaOptions, Parking, Result, SymmetricFence,
};
use tripoint_gc::{
    Format, Heap, HeapOptions, Kind, MovableFormat, Mutator, MutatorBuffer, Scan, Swept, SweptOptions,
};

pub(crate) type Arena<'m> = &'m ClientArena<'m>;
pub(crate) type TestHeap<'m> = Heap<'m, Arena<'m>>;
pub(crate) type TestMutator<'m> = Mutator<'m, Arena<'m>, SymmetricFence>;
pub(crate) type TestPool<'m, K> = Swept<'m, Arena<'m>, SymmetricFence, Nodes, K>;
pub(crate) type PointIn<'p, 'm, A, B, K> = AllocationPoint<'p, Swept<'m, A, B, Nodes, K>>;
pub(crate) type Point<'p, 'm, K> = PointIn<'p, 'm, Arena<'m>, SymmetricFence, K>;

pub(crate) const WORD: usize = size_of::<usize>();

/// Waits by letting other threads run: there are more threads than processors.
#[derive(Debug)]
pub(crate) struct Yield;

// SAFETY: the word is only loaded, and nothing here unwinds.
unsafe impl Parking for Yield {
    fn wait(&self, word: &AtomicU32, value: u32, _patience: Duration) -> Duration {
        if word.load(Ordering::Relaxed) == value {
            thread::yield_now();
        }
        Duration::from_nanos(1)
    }

    fn wake(&self, _word: &AtomicU32) {}
}

/// A flag that is set when this is dropped, also by a panic, so that no thread waits for it without end.
#[derive(Debug)]
pub(crate) struct Raise<'a>(pub(crate) &'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A thread that is counted as at work until it ends, also by a panic, so that no thread waits for it without end.
#[derive(Debug)]
pub(crate) struct AtWork<'a>(pub(crate) &'a AtomicUsize);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Nodes: a header of that many words, then the size in bytes, a name, and references.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) header: usize,
    /// Whether it does not pass on the last reference of each node: a flaw to be found.
    pub(crate) forgets: AtomicBool,
    /// Whether each write of a reference is noted.
    pub(crate) notes_writes: bool,
}

impl Nodes {
    /// Nodes with that many words in front of the address by which references know them.
    pub(crate) const fn new(header: usize) -> Self {
        Self { header, forgets: AtomicBool::new(false), notes_writes: false }
    }
}

// SAFETY: `make` writes the size of each node before it is committed, and nothing writes it after; all other
// words but the name are references, and are passed on. If writes are to be noted, the test that says so does that.
unsafe impl Format for Nodes {
    fn header(&self) -> usize {
        self.header * WORD
    }

    fn notes_writes(&self) -> bool {
        self.notes_writes
    }

    unsafe fn skip(&self, object: NonNull<u8>) -> usize {
        // SAFETY: the caller promises a node.
        unsafe { object.cast::<usize>().add(self.header).read() }
    }

    unsafe fn type_name(&self, object: NonNull<u8>) -> Option<&'static str> {
        // SAFETY: the caller promises a node.
        let references = unsafe { self.skip(object) } / WORD - self.header - 2;
        Some(if references == 0 { "end" } else { "inner node" })
    }

    unsafe fn scan(&self, objects: Block, scan: &mut Scan<'_>) {
        let mut at = 0;
        while at < objects.size() {
            // SAFETY: the caller promises whole nodes in a row.
            let size = unsafe { self.skip(objects.base().add(at)) };
            let forgotten = usize::from(self.forgets.load(Ordering::Relaxed));
            for word in self.header + 2..size / WORD - forgotten {
                // SAFETY: the word is in the node, and no thread uses it meanwhile.
                scan.fix(unsafe { objects.base().add(at).cast::<*mut u8>().add(word).as_mut() });
            }
            at += size;
        }
    }
}

// SAFETY: nothing in a node depends on its address but references, which are fixed.
unsafe impl MovableFormat for Nodes {}

/// The grain of an arena of that many bytes. Miri looks at the entries of all grains whenever it looks one up, so there are
/// few of them.
pub(crate) const fn grain(size: usize) -> usize {
    if cfg!(miri) && size >= 128 << 10 { 4 << 10 } else { 1 << 10 }
}

/// Runs `test` with an arena of that many bytes, or of 256 KiB under Miri if these are less, and a heap of its own.
pub(crate) fn with_heap(size: usize, test: impl FnOnce(&TestHeap<'_>)) {
    let size = if cfg!(miri) { size.min(256 << 10) } else { size };
    let mut memory = Box::new_uninit_slice(size);
    let options = ClientArenaOptions { grain: Some(grain(size)), event_hook: None };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let heap = Heap::create(&arena, HeapOptions { barrier: SymmetricFence, parking: Some(&Yield) }).unwrap();
    test(&heap);
}

pub(crate) fn pool<'m, K: Kind<Nodes>>(heap: &'m TestHeap<'m>, header: usize) -> TestPool<'m, K> {
    pool_of(heap, Nodes::new(header))
}

/// A pool of nodes without headers, whose users promise to note writes.
pub(crate) fn noting_pool<'m, K: Kind<Nodes>>(heap: &'m TestHeap<'m>) -> TestPool<'m, K> {
    pool_of(heap, Nodes { notes_writes: true, ..Nodes::new(0) })
}

fn pool_of<'m, K: Kind<Nodes>>(heap: &'m TestHeap<'m>, format: Nodes) -> TestPool<'m, K> {
    Swept::create(heap, format, SweptOptions { segment_size: 4 << 10 }).unwrap()
}

pub(crate) fn point<'p, 'm, A: tripoint_core::Arena, B: BarrierPair, K: Kind<Nodes>>(
    pool: &'p Swept<'m, A, B, Nodes, K>,
    mutator: &Mutator<'m, A, B>,
) -> PointIn<'p, 'm, A, B, K> {
    // SAFETY: each test uses a point on the thread of its mutator, while that is running.
    let adjust = |buffer: &MutatorBuffer| unsafe { buffer.attend(mutator) };
    AllocationPoint::create_in(pool, BufferKind::Mutator, (), adjust).unwrap()
}

/// The layout of a node with that many references.
pub(crate) fn layout(header: usize, references: usize) -> Layout {
    Layout::array::<usize>(header + 2 + references).unwrap()
}

/// Allocates a node, and returns the address by which references know it. The references are those that were known
/// before: none of them leads to a node that a collection in between could move.
pub(crate) fn make<A: tripoint_core::Arena, B: BarrierPair, K: Kind<Nodes>>(
    point: &mut PointIn<'_, '_, A, B, K>,
    name: usize,
    references: &[*mut u8],
) -> Result<*mut u8> {
    make_with(point, name, references.len(), |index| references[index])
}

/// Allocates a node with that many references, which are asked for when there is room for them, and no collection comes
/// in between.
pub(crate) fn make_with<A: tripoint_core::Arena, B: BarrierPair, K: Kind<Nodes>>(
    point: &mut PointIn<'_, '_, A, B, K>,
    name: usize,
    count: usize,
    reference: impl Fn(usize) -> *mut u8,
) -> Result<*mut u8> {
    loop {
        let header = point.pool().format().header;
        let reservation = point.reserve(layout(header, count))?;
        let node = reservation.as_ptr().cast::<usize>();
        let references: Vec<_> = (0..count).map(&reference).collect();
        // SAFETY: that many words were reserved.
        unsafe {
            write(node.add(header), reservation.size(), name, &references);
        }
        // SAFETY: the node was just made.
        if unsafe { reservation.commit() }.is_ok() {
            // SAFETY: the header is in the node.
            return Ok(unsafe { node.add(header) }.cast().as_ptr());
        }
    }
}

/// Writes what follows the header of a node.
///
/// # Safety
/// - There is room for it.
pub(crate) unsafe fn write(node: NonNull<usize>, size: usize, name: usize, references: &[*mut u8]) {
    // SAFETY: the caller promises room.
    unsafe { node.write(size) };
    // SAFETY: as the caller promises, there is room for a second word.
    unsafe { node.add(1).write(name) };
    for (index, &reference) in references.iter().enumerate() {
        // SAFETY: as the caller promises, there is room for the references.
        unsafe { node.add(2 + index).cast::<*mut u8>().write(reference) };
    }
}

/// The name of a node.
///
/// # Safety
/// - The node is there.
pub(crate) unsafe fn name(node: *mut u8) -> usize {
    // SAFETY: the second word of a node is its name.
    unsafe { node.cast::<usize>().add(1).read() }
}

/// A reference of a node.
///
/// # Safety
/// - The node is there, and has that many references.
pub(crate) unsafe fn reference(node: *mut u8, index: usize) -> *mut u8 {
    // SAFETY: references follow the name.
    unsafe { node.cast::<*mut u8>().add(2 + index).read() }
}

/// Changes a reference of a node.
///
/// # Safety
/// - The node is there, and has that many references.
pub(crate) unsafe fn set_reference(node: *mut u8, index: usize, to: *mut u8) {
    // SAFETY: references follow the name.
    unsafe { node.cast::<*mut u8>().add(2 + index).write(to) };
}

/// Slots for a root: they keep what they refer to.
#[derive(Debug)]
pub(crate) struct Slots<const COUNT: usize>([Cell<*mut u8>; COUNT]);

impl<const COUNT: usize> Default for Slots<COUNT> {
    fn default() -> Self {
        Self([const { Cell::new(ptr::null_mut()) }; COUNT])
    }
}

impl<const COUNT: usize> Slots<COUNT> {
    /// Where the slots are, as long as they are not moved.
    pub(crate) fn base(&self) -> NonNull<*mut u8> {
        NonNull::from(&self.0).cast()
    }

    pub(crate) fn get(&self, index: usize) -> *mut u8 {
        self.0[index].get()
    }

    pub(crate) fn set(&self, index: usize, to: *mut u8) {
        self.0[index].set(to);
    }
}
