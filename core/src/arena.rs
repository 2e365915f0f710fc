//! The sixth storey: an arena in memory that the caller lends, and the parts that every arena
//! is made of.
//!
//! | file | |
//! |---|---|
//! | `client_arena` | the client arena: tracts from memory that the caller lends |
//! | `descriptor_memory` | memory for an arena's own descriptors: small, never moved, freed one by one |
//! | `part_memory` | parts of grains: the first memory of pools that may stay small |
//! | `tract_table` | the tract table: which grain belongs to which pool, and where grains are free |

pub(crate) mod client_arena;
pub(crate) mod descriptor_memory;
pub(crate) mod part_memory;
pub(crate) mod tract_table;
