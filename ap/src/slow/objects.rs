//! What the forms of reserve know of the objects that they reserve memory for.

#![forbid(unsafe_code)]

use core::any::type_name;
use core::marker::PhantomData;
use core::num::NonZeroUsize;

/// What is known of objects when memory for them is reserved.
#[derive(Debug)]
pub(crate) struct Objects {
    type_name: Option<fn() -> &'static str>,
    /// The size of each object of a batch; none if the memory is for one object.
    unit: Option<NonZeroUsize>,
}

/// A form of reserve. It is a type, so that the fast path has no register for what is known:
/// each form has a cold half of its own, which passes it on (design/ap.md `.stop.reserved`).
pub(crate) trait Form {
    const OBJECTS: Objects;
}

/// One object of any type.
pub(crate) struct Untyped;

/// One object of type `T`.
pub(crate) struct One<T>(PhantomData<T>);

/// A batch of objects of type `T`.
pub(crate) struct Many<T>(PhantomData<T>);

impl Form for Untyped {
    const OBJECTS: Objects = Objects { type_name: None, unit: None };
}

impl<T> Form for One<T> {
    const OBJECTS: Objects = Objects { type_name: Some(type_name::<T>), unit: None };
}

impl<T> Form for Many<T> {
    const OBJECTS: Objects =
        Objects { type_name: Some(type_name::<T>), unit: NonZeroUsize::new(size_of::<T>()) };
}

impl Objects {
    /// The name of the type, if there is one.
    pub(crate) fn type_name(&self) -> Option<&'static str> {
        self.type_name.map(|name| name())
    }

    /// Of memory of `size` bytes, `requested` of which were asked for and `committed` are
    /// allocated: how many objects are allocated in it, and the size of each.
    pub(crate) fn count(&self, size: usize, requested: usize, committed: usize) -> (usize, usize) {
        match self.unit {
            Some(unit) => ((requested / unit).min(committed / unit), unit.get()),
            None => (1, size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (design/ap.md `.stop.batch`)
    #[test]
    fn a_batch_has_as_many_objects_as_were_committed() {
        let one = One::<[u32; 3]>::OBJECTS;
        assert_eq!((one.count(16, 12, 16), one.type_name()), ((1, 16), Some("[u32; 3]")));
        let batch = Many::<[u32; 3]>::OBJECTS;
        assert_eq!(batch.count(64, 60, 64), (5, 12));
        assert_eq!([64, 48, 32, 16, 0].map(|committed| batch.count(64, 60, committed).0), [5, 4, 2, 1, 0]);
        // Objects that are smaller than the pool's alignment: what it adds is not counted as more of
        // them than were asked for.
        assert_eq!(Many::<u8>::OBJECTS.count(16, 5, 16), (5, 1));
    }
}
