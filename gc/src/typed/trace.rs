//! Which types can be in objects.

use core::marker::PhantomData;
use core::mem::offset_of;

use tripoint_core::internal::{AtomicBool, AtomicU32, AtomicUsize};

use crate::outlines::type_outline::{PartOutline, TypeOutline};
use crate::scans::scan::Scan;

/// A type whose values can be in objects of a heap.
///
/// [`object_types!`](crate::object_types) implements it for structs and enums whose fields implement it, and traces all
/// of them. It is implemented for numbers, atomic numbers, `&'static str`, arrays, options, small tuples,
/// [`Gc`](crate::Gc), [`Link`](crate::Link), [`WeakLink`](crate::WeakLink), [`WeakPair`](crate::WeakPair) and
/// [`Plain`](crate::Plain).
///
/// All threads with a mutator of the heap may reach its objects, so values have to be `Send` and `Sync`. What
/// changes in an object has to be a link or atomic. Values are not dropped when
/// their objects are freed: a type that has something to drop does not compile where it is allocated.
///
/// # Safety
/// - [`Trace::trace`] passes every [`Gc`](crate::Gc), [`Link`](crate::Link), [`WeakLink`](crate::WeakLink) and
///   [`WeakPair`](crate::WeakPair) in the value to the scan, by calling their [`Trace::trace`].
/// - [`Trace::HAS_REFERENCES`] is true if a value can have one of them, and [`Trace::HAS_WEAK_LINKS`] if it can have one
///   of the last two.
/// - [`Trace::At`] and [`Trace::Static`] are this type with another lifetime in the place of that of its references,
///   and nothing else changed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be in an object of a heap",
    note = "declare it with `tripoint_gc::object_types!`; if it has no references of the heap, wrap it in `Plain`"
)]
pub unsafe trait Trace: Send + Sync + Sized {
    /// This type with references of the lifetime `'g`.
    type At<'g>: Trace;

    /// This type with references of the lifetime `'static`: [`Trace::At`] of that lifetime.
    // `At<'static>` of a type that is its own `At<'g>` is taken for the type itself by the compiler.
    type Static: Trace + 'static;

    /// Whether values may have references. Objects whose values have none are never scanned.
    const HAS_REFERENCES: bool;

    /// Whether values may have [weak links](crate::WeakLink) or [weak pairs](crate::WeakPair). Objects whose values may have
    /// some are scanned twice, and never move.
    const HAS_WEAK_LINKS: bool;

    /// What readers outside of the process know of the type. Nothing in the process rests on it. By default any word of a
    /// value may be a reference, if the type has references.
    #[doc(hidden)]
    const OUTLINE: &'static TypeOutline = &TypeOutline::words::<Self>("", Self::HAS_REFERENCES, &[]);

    /// Passes all references in the value to `scan`.
    fn trace(&mut self, scan: &mut Scan<'_>);
}

/// Implements [`Trace`] for types without references.
macro_rules! leaves {
    ($($type:ty),* $(,)?) => {$(
        // SAFETY: it has no references.
        unsafe impl Trace for $type {
            type At<'g> = Self;
            type Static = Self;

            const HAS_REFERENCES: bool = false;
            const HAS_WEAK_LINKS: bool = false;
            const OUTLINE: &'static TypeOutline = &TypeOutline::leaf::<Self>(stringify!($type));

            fn trace(&mut self, _scan: &mut Scan<'_>) {}
        }
    )*};
}

leaves!((), bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);
leaves!(AtomicBool, AtomicU32, AtomicUsize, &'static str);
#[cfg(target_has_atomic = "64")]
leaves!(tripoint_core::internal::AtomicU64);

// SAFETY: an option has the references of its value.
unsafe impl<T: Trace> Trace for Option<T> {
    type At<'g> = Option<T::At<'g>>;
    type Static = Option<T::Static>;

    const HAS_REFERENCES: bool = T::HAS_REFERENCES;
    const HAS_WEAK_LINKS: bool = T::HAS_WEAK_LINKS;
    const OUTLINE: &'static TypeOutline = &TypeOutline::words::<Self>(
        "Option",
        T::HAS_REFERENCES,
        const { &[PartOutline::new(0, T::OUTLINE)] },
    );

    fn trace(&mut self, scan: &mut Scan<'_>) {
        if let Some(value) = self {
            value.trace(scan);
        }
    }
}

// SAFETY: all values of the array are traced.
unsafe impl<T: Trace, const COUNT: usize> Trace for [T; COUNT] {
    type At<'g> = [T::At<'g>; COUNT];
    type Static = [T::Static; COUNT];

    const HAS_REFERENCES: bool = T::HAS_REFERENCES;
    const HAS_WEAK_LINKS: bool = T::HAS_WEAK_LINKS;
    const OUTLINE: &'static TypeOutline =
        &TypeOutline::items::<Self>(const { &[PartOutline::new(size_of::<T>(), T::OUTLINE)] });

    fn trace(&mut self, scan: &mut Scan<'_>) {
        for value in self {
            value.trace(scan);
        }
    }
}

// SAFETY: there is no value.
unsafe impl<T: Trace> Trace for PhantomData<T> {
    type At<'g> = PhantomData<T::At<'g>>;
    type Static = PhantomData<T::Static>;

    const HAS_REFERENCES: bool = false;
    const HAS_WEAK_LINKS: bool = false;
    const OUTLINE: &'static TypeOutline = &TypeOutline::leaf::<Self>("PhantomData");

    fn trace(&mut self, _scan: &mut Scan<'_>) {}
}

/// Implements [`Trace`] for a tuple.
macro_rules! tuples {
    ($($name:ident $number:tt)*) => {
        // SAFETY: all values of the tuple are traced.
        unsafe impl<$($name: Trace),*> Trace for ($($name,)*) {
            type At<'g> = ($($name::At<'g>,)*);
            type Static = ($($name::Static,)*);

            const HAS_REFERENCES: bool = false $(|| $name::HAS_REFERENCES)*;
            const HAS_WEAK_LINKS: bool = false $(|| $name::HAS_WEAK_LINKS)*;
            const OUTLINE: &'static TypeOutline = &TypeOutline::parts::<Self>(
                "",
                const { &[$(PartOutline::new(offset_of!(Self, $number), $name::OUTLINE)),*] },
            );

            #[allow(non_snake_case, reason = "the names of the types are those of the values")]
            fn trace(&mut self, scan: &mut Scan<'_>) {
                let ($($name,)*) = self;
                $($name.trace(scan);)*
            }
        }
    };
}

tuples!(T 0);
tuples!(T 0 U 1);
tuples!(T 0 U 1 V 2);
tuples!(T 0 U 1 V 2 W 3);
