//! Outlines: what readers outside of the process know of a heap, as data (design/inspection.md).
//!
//! A reader finds the outlines of heaps by the static of [`listing`](crate::heaps::listing), and from these the rest. The
//! program writes outlines when it makes a heap, a pool or a type, and reads none of them. Numbers are words, in the order
//! of the fields.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `type_outline` | where the references of a typed value lie |
//! | `format_outline` | what is known of a format, whose functions a reader does not call |
//! | `pool_outline` | where the segments and the buffers of a pool are |
//! | `heap_outline` | where the pools and the roots of a heap are, and what a collection is doing |

pub(crate) mod format_outline;
pub(crate) mod heap_outline;
pub(crate) mod pool_outline;
pub(crate) mod type_outline;
