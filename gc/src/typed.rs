//! Typed objects, safe to use: references that stay inside a closure, and roots that outlive it.
//!
//! ```text
//!   typed_mutator   a thread's registration, and its way inside
//!   link, rooted    references in objects that change, and references from outside
//!   inside          what is allocated, and looked at, while no collection can begin
//!   typed_objects   the pools and the roots
//!   roots           the memory of roots
//!   reference       Gc
//!   referent        what an object can hold, and where in it that is
//!   format          how a pool scans objects
//!   trace, plain    which types can be in objects
//!   table           the header word: size, and how references are found
//! ```
//!
//! `declared` has the macro by which a program declares such types.

pub(crate) mod declared;
pub(crate) mod format;
pub(crate) mod inside;
pub(crate) mod link;
pub(crate) mod plain;
pub(crate) mod reference;
pub(crate) mod referent;
pub(crate) mod rooted;
pub(crate) mod roots;
pub(crate) mod table;
pub(crate) mod trace;
pub(crate) mod typed_mutator;
pub(crate) mod typed_objects;
