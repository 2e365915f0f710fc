//! Scans: what formats and roots pass references to, and what a scan asks of the heap.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `workspace` | memory that a collection uses for itself |
//! | `keep` | what a scan asks of the heap that is being collected |
//! | `waiting` | weak pairs whose keys were not reached so far |
//! | `peek` | words that need not be initialised, by architecture |
//! | `approach` | what a scan will soon read is loaded ahead of it |
//! | `scan` | the state of a scan: what references are passed to |
//! | `format` | how a pool finds the size of an object and the references in it |
//! | `pairs` | the objects of a transform, and which takes whose place |

pub(crate) mod approach;
pub(crate) mod format;
pub(crate) mod keep;
pub(crate) mod pairs;
pub(crate) mod peek;
pub(crate) mod scan;
pub(crate) mod waiting;
pub(crate) mod workspace;
