//! The top storey: pointers that own objects in pools, and a walk over what a pool holds.

pub(crate) mod pool_box;
pub(crate) mod pool_rc;
pub(crate) mod pool_slice;
pub(crate) mod walk;
