//! Declaring types whose values are in objects.

use core::marker::PhantomData;

use crate::outlines::type_outline::TypeOutline;
use crate::typed::trace::Trace;

/// Declares structs and enums whose values can be in objects of a heap, and implements [`Trace`](crate::Trace) for
/// them.
///
/// The type has no parameter, or one lifetime: that of its references. All fields are [`Trace`](crate::Trace),
/// and all are traced. A type with other parameters implements [`Trace`](crate::Trace) by hand, which is `unsafe`.
///
/// ```
/// use tripoint_gc::{Gc, Link, object_types};
///
/// object_types! {
///     /// A pair, as in Lisp.
///     pub struct Pair<'g> {
///         first: Link<'g, Value<'g>>,
///         rest: Link<'g, Value<'g>>,
///     }
///
///     /// A value, as in Lisp.
///     pub enum Value<'g> {
///         Nil,
///         Number(i64),
///         Pair(Gc<'g, Pair<'g>>),
///         Symbol { name: Gc<'g, str>, hash: u64 },
///     }
///
///     /// No references at all.
///     #[derive(Clone, Copy, Debug)]
///     pub struct Price(u64, u32);
/// }
/// ```
#[macro_export]
macro_rules! object_types {
    () => {};
    // A struct with named fields.
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident $(<$g:lifetime>)? {
            $($(#[$field_meta:meta])* $field_visibility:vis $field:ident: $type:ty),* $(,)?
        }
        $($more:tt)*
    ) => {
        $(#[$meta])*
        $visibility struct $name $(<$g>)? {
            $($(#[$field_meta])* $field_visibility $field: $type,)*
        }
        // SAFETY: the block is empty.
        $crate::__implement_trace!(unsafe {} $name [$($g)?] [$($type)*] [{$($field)*} Self]);
        $crate::object_types!($($more)*);
    };
    // A struct with numbered fields.
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident $(<$g:lifetime>)? (
            $($(#[$field_meta:meta])* $field_visibility:vis $type:ty),* $(,)?
        );
        $($more:tt)*
    ) => {
        $(#[$meta])*
        $visibility struct $name $(<$g>)? ($($(#[$field_meta])* $field_visibility $type),*);
        // SAFETY: the block is empty.
        $crate::__implement_trace!(unsafe {} $name [$($g)?] [$($type)*] [(; $($type,)*) Self]);
        $crate::object_types!($($more)*);
    };
    // A struct without fields.
    ($(#[$meta:meta])* $visibility:vis struct $name:ident; $($more:tt)*) => {
        $(#[$meta])*
        $visibility struct $name;
        // SAFETY: the block is empty.
        $crate::__implement_trace!(unsafe {} $name [] [] [{} Self]);
        $crate::object_types!($($more)*);
    };
    // An enum.
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident $(<$g:lifetime>)? {
            $(
                $(#[$variant_meta:meta])*
                $variant:ident
                $(($($(#[$number_meta:meta])* $type:ty),* $(,)?))?
                $({$($(#[$field_meta:meta])* $field:ident: $field_type:ty),* $(,)?})?
            ),* $(,)?
        }
        $($more:tt)*
    ) => {
        $(#[$meta])*
        $visibility enum $name $(<$g>)? {
            $(
                $(#[$variant_meta])*
                $variant
                $(($($(#[$number_meta])* $type),*))?
                $({$($(#[$field_meta])* $field: $field_type),*})?
            ),*
        }
        $crate::__implement_trace!(
            // SAFETY: the block is empty.
            unsafe {} $name [$($g)?] [$($($($type)*)? $($($field_type)*)?)*]
            $([$((; $($type,)*))? $({$($field)*})? Self::$variant])*
        );
        $crate::object_types!($($more)*);
    };
}

/// Implements [`Trace`](crate::Trace) for a type whose forms are named, each with its fields. A form that the type has not,
/// and one that is left out, does not compile, and neither does a field. So what an attribute made of the declaration is
/// what is traced.
///
/// It begins with an empty `unsafe` block of the caller's, so a crate that forbids `unsafe` cannot call it.
#[doc(hidden)]
#[macro_export]
macro_rules! __implement_trace {
    // For readers outside of the process. Where a variant of an enum has its fields is not known at compile time.
    (@outline $name:ident [[{$($field:tt)*} Self]]) => { $crate::__implement_trace!(@parts $name $($field)*) };
    (@outline $name:ident [[(; $($type:ty,)*) Self]]) => {
        $crate::__implement_trace!(@numbered $name [] [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] $($type,)*)
    };
    (@outline $name:ident [$($form:tt)*]) => {
        &$crate::internal::TypeOutline::words::<Self>(
            concat!(module_path!(), "::", stringify!($name)),
            <Self as $crate::Trace>::HAS_REFERENCES,
            &[],
        )
    };
    (@numbered $name:ident [$($number:tt)*] [$($more:tt)*]) => {
        $crate::__implement_trace!(@parts $name $($number)*)
    };
    (@numbered $name:ident [$($number:tt)*] [$next:tt $($more:tt)*] $type:ty, $($types:ty,)*) => {
        $crate::__implement_trace!(@numbered $name [$($number)* $next] [$($more)*] $($types,)*)
    };
    (@numbered $name:ident [$($number:tt)*] [] $($types:ty,)*) => {
        $crate::__implement_trace!(@outline $name [])
    };
    (@parts $name:ident $($field:tt)*) => {
        &$crate::internal::TypeOutline::parts::<Self>(
            concat!(module_path!(), "::", stringify!($name)),
            const {
                &[$($crate::internal::PartOutline::new(
                    ::core::mem::offset_of!(Self, $field),
                    $crate::internal::field_outline(|value: &Self| &value.$field),
                )),*]
            },
        )
    };

    ($unsafe:tt $block:tt $name:ident [$($g:lifetime)?] [$($type:ty)*] $($form:tt)*) => {
        #[allow(unused_unsafe, reason = "it is there for the word")]
        const _: () = $unsafe $block;

        // SAFETY: the value has one of the forms, which are all named, or it does not compile. In each of them all fields
        // are traced, and their types, as they were compiled, are asked whether they have references. The one
        // lifetime of the type is that of the references that its fields can have: a field may also name a reference of
        // the lifetime `'static`, but no heap is entered for that, so its values have none.
        $unsafe impl$(<$g>)? $crate::Trace for $name$(<$g>)? {
            type At<'at> = $crate::__implement_trace!(@at 'at $name $($g)?);
            type Static = $crate::__implement_trace!(@at 'static $name $($g)?);

            // The types as they were written are asked first: so the compiler names one that cannot be in an object.
            #[allow(irrefutable_let_patterns, reason = "a struct has one form, an enum may have more")]
            const HAS_REFERENCES: bool = false
                $(|| <$type as $crate::Trace>::HAS_REFERENCES)*
                $(|| $crate::internal::have_references(
                    |value: &Self| $crate::__implement_trace!(@types value _ $form)
                ))*;
            #[allow(irrefutable_let_patterns, reason = "a struct has one form, an enum may have more")]
            const HAS_WEAK_LINKS: bool = false
                $(|| <$type as $crate::Trace>::HAS_WEAK_LINKS)*
                $(|| $crate::internal::have_weak_links(
                    |value: &Self| $crate::__implement_trace!(@types value _ $form)
                ))*;

            const OUTLINE: &'static $crate::internal::TypeOutline =
                $crate::__implement_trace!(@outline $name [$($form)*]);

            #[allow(irrefutable_let_patterns, reason = "a struct has one form, an enum may have more")]
            #[allow(unused_variables, reason = "not all types have fields")]
            fn trace(&mut self, scan: &mut $crate::Scan<'_>) {
                // There are no others.
                match *self { $($crate::__implement_trace!(@any $form) => {})* }
                // One after the other: the others are not looked at.
                $($crate::__implement_trace!(@trace self scan $form);)*
            }
        }
    };
    (@at $at:lifetime $name:ident) => { $name };
    (@at $at:lifetime $name:ident $g:lifetime) => { $name<$at> };

    (@any [$((; $($type:ty,)*))? $({$($field:ident)*})? $($path:ident)::+]) => { $($path)::+ { .. } };

    // `ref`, so that a name is never that of a constant.
    (@trace $value:ident $scan:ident [$({$($field:ident)*})? $($path:ident)::+]) => {
        if let $($path)::+ { $($(ref mut $field),*)? } = *$value {
            $($($crate::Trace::trace($field, $scan);)*)?
        }
    };
    (@trace $value:ident $scan:ident [($($named:ident)*;) $($path:ident)::+]) => {
        if let $($path)::+($(ref mut $named),*) = *$value {
            $($crate::Trace::trace($named, $scan);)*
        }
    };
    (@types $value:ident _ [$({$($field:ident)*})? $($path:ident)::+]) => {
        if let $($path)::+ { $($(ref $field),*)? } = *$value {
            $crate::internal::Fields::none()$($(.with_field($field))*)?
        } else {
            $crate::internal::Fields::of_another_form()
        }
    };
    (@types $value:ident _ [($($named:ident)*;) $($path:ident)::+]) => {
        if let $($path)::+($(ref $named),*) = *$value {
            $crate::internal::Fields::none()$(.with_field($named))*
        } else {
            $crate::internal::Fields::of_another_form()
        }
    };
    // Each turn names one more field: the name is another in each.
    (@$rule:ident $value:ident $scan:tt [($($named:ident)*; $type:ty, $($types:ty,)*) $($path:ident)::+]) => {
        $crate::__implement_trace!(@$rule $value $scan [($($named)* field; $($types,)*) $($path)::+])
    };
}

/// The types of the fields of a value, in pairs: `(((), T), U)`.
#[derive(Debug)]
pub struct Fields<T>(PhantomData<T>);

impl Fields<()> {
    /// Those of a value without fields.
    #[must_use]
    pub const fn none() -> Self {
        Self(PhantomData)
    }
}

impl<T> Fields<T> {
    /// What a function returns for values that do not have the form whose fields it finds.
    #[must_use]
    pub const fn of_another_form() -> Self {
        Self(PhantomData)
    }

    /// These, and that of one more field.
    #[must_use]
    pub const fn with_field<U>(self, _field: &U) -> Fields<(T, U)> {
        Fields(PhantomData)
    }
}

/// Whether the fields that a function finds in a value may have references. It is not called.
#[must_use]
pub const fn have_references<S, T: Trace>(_find: fn(&S) -> Fields<T>) -> bool {
    T::HAS_REFERENCES
}

/// Whether the fields that a function finds in a value may have weak links. It is not called.
#[must_use]
pub const fn have_weak_links<S, T: Trace>(_find: fn(&S) -> Fields<T>) -> bool {
    T::HAS_WEAK_LINKS
}

/// What readers outside of the process know of the field that a function finds in a value. It is not called.
#[must_use]
pub const fn field_outline<S, T: Trace>(_find: fn(&S) -> &T) -> &'static TypeOutline {
    T::OUTLINE
}
