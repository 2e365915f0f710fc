//! References to objects.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::outlines::type_outline::TypeOutline;
use crate::scans::scan::Scan;
use crate::typed::referent::Referent;
use crate::typed::trace::Trace;

/// A lifetime that stands for one call of [`TypedMutator::enter`](crate::TypedMutator::enter), and equals no other.
pub(crate) type Brand<'g> = PhantomData<fn(&'g ()) -> &'g ()>;

/// A reference to an object of a heap: one word, which may be copied.
///
/// It is used in the closure of [`TypedMutator::enter`](crate::TypedMutator::enter) whose lifetime it has, and cannot
/// leave it. While the closure runs no object is freed, so the object is a `&T` until the closure ends ([`Gc::get`]).
pub struct Gc<'g, T: Referent + ?Sized> {
    /// The address behind the object's header, with the provenance of all of the object.
    place: NonNull<u8>,
    brand: Brand<'g>,
    // An object has the type with which it was made, and no other that is a subtype of it or the other way round: a
    // transform has those that are known by one reference take the place of those that are known by another.
    to: PhantomData<fn(*const T) -> *const T>,
}

// SAFETY: a reference is a shared borrow of its object, which is `Sync` (`Referent`). A thread that it is sent to ends
// its use within the closure whose lifetime the reference has, and until then no collection can begin.
unsafe impl<T: Referent + ?Sized> Send for Gc<'_, T> {}
// SAFETY: a shared reference reads a word that does not change, and lends its object, which is `Sync`.
unsafe impl<T: Referent + ?Sized> Sync for Gc<'_, T> {}

impl<T: Referent + ?Sized> Clone for Gc<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Referent + ?Sized> Copy for Gc<'_, T> {}

impl<'g, T: Referent + ?Sized> Gc<'g, T> {
    /// The reference to the object behind whose header `place` is.
    ///
    /// # Safety
    /// - It is a whole object of type `T` of the heap that is entered with the lifetime `'g`, and `place`
    ///   has the provenance of all of it.
    #[inline(always)]
    pub(crate) const unsafe fn at(place: NonNull<u8>) -> Self {
        Self { place, brand: PhantomData, to: PhantomData }
    }

    /// The address behind the object's header.
    #[inline(always)]
    pub(crate) const fn place(self) -> NonNull<u8> {
        self.place
    }

    /// The object, for the rest of the closure.
    #[inline(always)]
    #[must_use]
    pub fn get(self) -> &'g T
    where
        T: 'g,
    {
        // SAFETY: the object is whole (`at`). It stays and is not written as long as its heap is entered, which is all
        // of `'g`.
        unsafe { T::contents(self.place) }
    }

    /// The address of the object's value. It identifies the object until the closure returns: a collection may move the
    /// object. So a table that hashes addresses has a [`LocationDependency`](crate::LocationDependency)
    /// ([`Inside::reset_dependency`](crate::Inside::reset_dependency)).
    #[must_use]
    pub fn as_ptr(self) -> *const T {
        &raw const *self
    }

    /// Whether both are references to the same object.
    #[must_use]
    pub fn is_same(self, other: Self) -> bool {
        self.place == other.place
    }
}

impl<T: Referent + ?Sized> Deref for Gc<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the object is whole (`at`), and stays as long as its heap is entered, in which this reference is
        // borrowed.
        unsafe { T::contents(self.place) }
    }
}

// SAFETY: the one reference is passed on, by its place. Its object's type changes as `Referent::At` says.
unsafe impl<T: Referent + ?Sized> Trace for Gc<'_, T> {
    type At<'n> = Gc<'n, T::At<'n>>;
    type Static = Gc<'static, T::Static>;

    const HAS_REFERENCES: bool = true;
    const HAS_WEAK_LINKS: bool = false;
    const OUTLINE: &'static TypeOutline = &TypeOutline::strong::<Self>("Gc");

    #[inline]
    fn trace(&mut self, scan: &mut Scan<'_>) {
        let mut place = self.place.as_ptr();
        scan.fix(&mut place);
        self.place = NonNull::new(place).unwrap_or(self.place);
    }
}

impl<T: Referent + ?Sized + fmt::Debug> fmt::Debug for Gc<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: Referent + ?Sized + fmt::Display> fmt::Display for Gc<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
