//! The top storey: pointers that own objects in pools, and a walk over what a pool holds.
//!
//! | file | |
//! |---|---|
//! | `pool_box` | an owning pointer to one object in a store |
//! | `pool_rc` | a counted pointer to one object in a store, for one thread |
//! | `pool_slice` | owning pointers to several objects in a row |
//! | `walk` | walking the memory of a pool, whatever its class |

pub(crate) mod pool_box;
pub(crate) mod pool_rc;
pub(crate) mod pool_slice;
pub(crate) mod walk;
