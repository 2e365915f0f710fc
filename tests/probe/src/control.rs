//! The controls: a commit in MPS's form, with plain fields, whose test the compiler may
//! remove, and a path that can panic. The checks must reject both. With a light barrier
//! between the accesses to its fields, the commit keeps its test. This shows that the
//! barrier holds the compiler, because in the real form the atomics alone would hold it
//! too.

use core::cell::Cell;

use tripoint_ap::AllocationPoint;
#[cfg(target_os = "linux")]
use tripoint_arena_vm::Membarrier;
use tripoint_core::{BarrierPair, SingleCore};

use crate::{ClientMvff, Object};

/// MPS's allocation point, with fields that are not atomic.
#[derive(Debug)]
pub struct Plain {
    init: Cell<*mut Object>,
    alloc: Cell<*mut Object>,
    limit: Cell<*mut Object>,
}

impl Plain {
    /// Reserves and commits an object that the memory already holds. As written, the commit
    /// looks again whether `limit` is zero. Only `barrier` can keep the compiler from using the
    /// value that it loaded before: as far as it knows, nothing else writes there.
    #[inline(always)]
    fn alloc(&self, barrier: impl FnOnce()) -> bool {
        let end = self.alloc.get().wrapping_add(1);
        if end > self.limit.get() {
            return false;
        }
        self.alloc.set(end);
        self.init.set(end);
        barrier();
        !self.limit.get().is_null()
    }
}

/// Plain fields, in a loop.
#[unsafe(no_mangle)]
pub fn plain_loop(point: &Plain, count: usize) -> usize {
    (0..count).take_while(|_| point.alloc(|| ())).count()
}

/// Plain fields, and the light barrier of a single core between them.
#[unsafe(no_mangle)]
pub fn plain_single_core(point: &Plain, barrier: SingleCore, count: usize) -> usize {
    (0..count).take_while(|_| point.alloc(|| barrier.light())).count()
}

/// Plain fields, and the light barrier of membarrier between them.
#[unsafe(no_mangle)]
#[cfg(target_os = "linux")]
pub fn plain_membarrier(point: &Plain, barrier: Membarrier, count: usize) -> usize {
    (0..count).take_while(|_| point.alloc(|| barrier.light())).count()
}

/// As `variable_loop`, with a sampler that counts the bytes of each object.
#[unsafe(no_mangle)]
pub fn counted_loop(
    point: &mut AllocationPoint<'static, ClientMvff>,
    left: &Cell<usize>,
    count: usize,
    a: u64,
    b: u64,
) -> usize {
    let fits = || left.get().checked_sub(size_of::<Object>()).map(|rest| left.set(rest)).is_some();
    (0..count).take_while(|_| fits() && point.alloc([a, b, a, b]).is_ok()).count()
}

/// An object by its index, which may be too high.
#[unsafe(no_mangle)]
pub fn indexed(objects: &[Object], index: usize) -> &Object {
    &objects[index]
}
