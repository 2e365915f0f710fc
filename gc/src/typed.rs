//! Typed objects, safe to use: references that stay inside a closure, and roots that outlive it.
//!
//! ```text
//!   final_queue     objects that nothing leads to any more
//!   typed_pairs     objects that take the place of others
//!   rooted          references from outside
//!   pinned_rooted   the same, whose objects do not move
//!   weak_rooted     references from outside that keep nothing
//!   short_weak_rooted  the same, which end before finalization
//!   root_slot       what these have in common
//!   typed_mutator   a thread's registration, and its way inside
//!   typed_objects   the pools and the roots
//!   link            references in objects that change
//!   weak_link       the same, which keep nothing
//!   weak_pair       entries of tables whose keys are weak
//!   link_word       where they store references
//!   inside          what is allocated, and looked at, while no collection can begin
//!   roots           the memory of roots
//!   reference       Gc
//!   referent        what an object can hold, and where in it that is
//!   format          how a pool scans objects
//!   home            which pool an object is in
//!   trace, plain    which types can be in objects
//!   table           the header word: size, and how references are found
//! ```
//!
//! `declared` has the macro by which a program declares such types.

pub(crate) mod declared;
pub(crate) mod final_queue;
pub(crate) mod format;
pub(crate) mod home;
pub(crate) mod inside;
pub(crate) mod link;
pub(crate) mod link_word;
pub(crate) mod pinned_rooted;
pub(crate) mod plain;
pub(crate) mod reference;
pub(crate) mod referent;
pub(crate) mod root_slot;
pub(crate) mod rooted;
pub(crate) mod roots;
pub(crate) mod short_weak_rooted;
pub(crate) mod table;
pub(crate) mod trace;
pub(crate) mod typed_mutator;
pub(crate) mod typed_objects;
pub(crate) mod typed_pairs;
pub(crate) mod weak_link;
pub(crate) mod weak_pair;
pub(crate) mod weak_rooted;
