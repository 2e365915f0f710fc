//! The controls: a commit in MPS's form, with plain fields, that the compiler may
//! rob of its test, and a path that can panic. The checks must find them wrong.

use core::cell::Cell;

use crate::Object;

/// MPS's allocation point, with fields that are not atomic.
#[derive(Debug)]
pub struct Plain {
    init: Cell<*mut Object>,
    alloc: Cell<*mut Object>,
    limit: Cell<*mut Object>,
}

impl Plain {
    /// Reserves and commits an object that the memory already holds. As written, the
    /// commit looks again whether `limit` is zero.
    #[inline(always)]
    fn alloc(&self) -> bool {
        let end = self.alloc.get().wrapping_add(1);
        if end > self.limit.get() {
            return false;
        }
        self.alloc.set(end);
        self.init.set(end);
        !self.limit.get().is_null()
    }
}

/// Plain fields, in a loop.
#[unsafe(no_mangle)]
pub fn plain_loop(point: &Plain, count: usize) -> usize {
    (0..count).take_while(|_| point.alloc()).count()
}

/// An object by its index, which may be too high.
#[unsafe(no_mangle)]
pub fn indexed(objects: &[Object], index: usize) -> &Object {
    &objects[index]
}
