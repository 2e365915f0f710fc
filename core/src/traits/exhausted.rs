//! A refusal in full: which pool refused, what was asked for, and what is left.

use core::alloc::Layout;
use core::fmt;

use crate::traits::pool::PoolClass;
use crate::values::error::Error;

/// An [`Error`] from a pool with the sizes behind it, for choosing the sizes of pools.
///
/// It is a type of its own because an [`Error`] passes through hot code and stays small.
///
/// ```
/// use core::alloc::Layout;
/// use tripoint_core::{Exhausted, ManualPool, PoolBox};
///
/// fn message<P: ManualPool>(pool: &P) -> Result<PoolBox<'_, [u8; 300], P>, Exhausted> {
///     PoolBox::new_in([0; 300], pool)
///         .map_err(|cause| Exhausted::of(pool, Layout::new::<[u8; 300]>(), cause))
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Exhausted {
    /// The class of the pool that refused.
    pub class: &'static str,
    /// The bytes that were asked for.
    pub size: usize,
    /// The alignment that was asked for, in bytes.
    pub align: usize,
    /// The largest free block of the pool, in bytes.
    pub largest_free: usize,
    /// Why the pool could not get more.
    pub cause: Error,
}

impl Exhausted {
    /// Describes why `pool` has just refused `layout`.
    pub fn of<P: PoolClass>(pool: &P, layout: Layout, cause: Error) -> Self {
        Self {
            class: P::CLASS,
            size: layout.size(),
            align: layout.align(),
            largest_free: pool.sizes().largest_free,
            cause,
        }
    }
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, size, align, largest_free, cause } = self;
        write!(
            f,
            "{class} has no {size} bytes aligned to {align} (largest free block: {largest_free} bytes): {cause}"
        )
    }
}

crate::debug_as_text!(Exhausted);

impl core::error::Error for Exhausted {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.cause)
    }
}
