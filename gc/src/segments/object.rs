//! An object, as walks show it.

use core::ptr::NonNull;

use tripoint_core::{Block, PoolId};

/// An object of an automatic pool, as [walks](crate::Stopped::walk_objects) show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// Its memory, header included.
    pub block: Block,
    /// Where references to it lead: behind its header.
    pub reference: NonNull<u8>,
    /// The number of its pool.
    pub pool: PoolId,
    /// The name of its type, if its format knows it ([`Format::type_name`](crate::Format::type_name)).
    pub type_name: Option<&'static str>,
}

// SAFETY: an object is what is known of memory, and following its pointers is unsafe.
unsafe impl Send for Object {}
// SAFETY: a shared object returns what is known of memory, and following its pointers is unsafe.
unsafe impl Sync for Object {}
