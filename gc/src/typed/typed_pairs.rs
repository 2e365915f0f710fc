//! Pairs of typed objects in a transform.

use core::ptr;

use tripoint_core::{Arena, BarrierPair, Error, Result};

use crate::transforms::transform::Transform;
use crate::typed::inside::Inside;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;

const OTHER_HEAP: Error = Error::Parameter("a transform is of one heap: enter the objects of that");

impl<A: Arena + Clone, B: BarrierPair> Transform<'_, A, B> {
    /// Adds a pair of objects of the same type: when the transform is applied, `new` takes the place of `old`. What a
    /// [`Rooted`](crate::Rooted) or another root has is replaced, too, so from then on the root keeps the new object.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there is no room left, or if `inside` is that of another heap.
    pub fn add<'g, T: Referent + ?Sized>(
        &mut self,
        inside: &Inside<'g, A, B>,
        old: Gc<'g, T>,
        new: Gc<'g, T>,
    ) -> Result<()> {
        // The references are of this heap, and no collection begins meanwhile. A reference to the old object that outlives
        // the closure is one that a collection would fix, and one to an object of this type (design/gc-transforms.md
        // `.typed`).
        if !ptr::eq(inside.heap().address(), self.heap().address()) {
            return Err(OTHER_HEAP);
        }
        self.push(old.place(), new.place())
    }
}
