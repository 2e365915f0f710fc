//! Declaring types whose values are in objects.

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
        $crate::object_types!(@implement [$name] [$($g)?] [$($type)*] self scan {
            let Self { $($field),* } = self;
            $($crate::Trace::trace($field, scan);)*
        });
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
        $crate::object_types!(@implement [$name] [$($g)?] [$($type)*] self scan {
            $crate::object_types!(@numbered scan (self) [$name] [] [$($type,)*]);
        });
        $crate::object_types!($($more)*);
    };
    // A struct without fields.
    ($(#[$meta:meta])* $visibility:vis struct $name:ident; $($more:tt)*) => {
        $(#[$meta])*
        $visibility struct $name;
        $crate::object_types!(@implement [$name] [] [] self scan {});
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
        $crate::object_types!(@implement [$name] [$($g)?] [$($($($type)*)? $($($field_type)*)?)*] self scan {
            // One after the other: the others are not looked at.
            $($crate::object_types!(@variant scan (self) [$name $variant] $(($($type,)*))? $({$($field)*})?);)*
        });
        $crate::object_types!($($more)*);
    };

    (@variant $scan:ident ($value:expr) [$name:ident $variant:ident]) => {};
    (@variant $scan:ident ($value:expr) [$name:ident $variant:ident] ($($type:ty,)*)) => {
        $crate::object_types!(@numbered $scan ($value) [$name::$variant] [] [$($type,)*]);
    };
    (@variant $scan:ident ($value:expr) [$name:ident $variant:ident] {$($field:ident)*}) => {
        if let $name::$variant { $($field),* } = $value {
            $($crate::Trace::trace($field, $scan);)*
        }
    };

    // Each turn names one more field: the name is another in each.
    (@numbered $scan:ident ($value:expr) [$($path:tt)*] [$($named:ident)*] [$type:ty, $($types:ty,)*]) => {
        $crate::object_types!(@numbered $scan ($value) [$($path)*] [$($named)* field] [$($types,)*]);
    };
    (@numbered $scan:ident ($value:expr) [$($path:tt)*] [$($named:ident)*] []) => {
        #[allow(irrefutable_let_patterns, reason = "a struct has one form, an enum may have more")]
        if let $($path)*($($named),*) = $value {
            $($crate::Trace::trace($named, $scan);)*
        }
    };

    (@implement [$name:ident] [$($g:lifetime)?] [$($type:ty)*] $self:ident $scan:ident $body:block) => {
        // SAFETY: all fields are traced, and all of their types are asked whether they have references. The one
        // lifetime of the type is that of the references that its fields can have: a field may also name a reference of
        // the lifetime `'static`, but no heap is entered for that, so its values have none.
        unsafe impl$(<$g>)? $crate::Trace for $name$(<$g>)? {
            type At<'at> = $crate::object_types!(@at 'at $name $($g)?);
            type Static = $crate::object_types!(@at 'static $name $($g)?);

            const HAS_REFERENCES: bool = false $(|| <$type as $crate::Trace>::HAS_REFERENCES)*;
            const HAS_WEAK_LINKS: bool = false $(|| <$type as $crate::Trace>::HAS_WEAK_LINKS)*;

            #[allow(unused_variables, reason = "not all types have fields")]
            fn trace(&mut $self, $scan: &mut $crate::Scan<'_>) $body
        }
    };
    (@at $at:lifetime $name:ident) => { $name };
    (@at $at:lifetime $name:ident $g:lifetime) => { $name<$at> };
}
