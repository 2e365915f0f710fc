//! The sixth storey: an arena in memory that the caller lends, and the parts that every arena
//! is made of.

pub(crate) mod client_arena;
pub(crate) mod descriptor_memory;
pub(crate) mod part_memory;
pub(crate) mod tract_table;
