//! Constant construction of atomics, which loom's atomics cannot do.

use tripoint_core::internal::AtomicUsize;

/// Defines a function that is `const`, unless loom replaces the atomics.
macro_rules! const_fn {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block) => {
        $(#[$meta])*
        #[cfg(not(tripoint_loom))]
        $visibility const fn $name($($argument: $type),*) -> $result $body

        $(#[$meta])*
        #[cfg(tripoint_loom)]
        $visibility fn $name($($argument: $type),*) -> $result $body
    };
}
pub(crate) use const_fn;

/// An array of words, all zero.
#[cfg(not(tripoint_loom))]
pub(crate) const fn zeros<const COUNT: usize>() -> [AtomicUsize; COUNT] {
    [const { AtomicUsize::new(0) }; COUNT]
}

/// An array of words, all zero.
#[cfg(tripoint_loom)]
pub(crate) fn zeros<const COUNT: usize>() -> [AtomicUsize; COUNT] {
    core::array::from_fn(|_| AtomicUsize::new(0))
}
