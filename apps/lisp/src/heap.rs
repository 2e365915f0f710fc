//! The values of Lisp in automatic pools. All of the program's `unsafe` is in these files, and what they offer is safe.
//!
//! The rule that makes it safe: every allocation may collect, and a collection moves objects. So a [`Value`] borrows the
//! [`Store`], and whatever allocates borrows the store mutably. The compiler refuses a program that holds a value over an
//! allocation. What has to last is on the stack of the store, which is a root, and an allocation takes its operands from
//! there and leaves its result there.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `value` | words: numbers, constants and references |
//! | `object` | objects: a header and fields |
//! | `keys` | arrays of weak references, found by hashes |
//! | `format` | what the collector knows of objects |
//! | `stack` | the root: registers and a stack |
//! | `store` | pools, and how objects are made |
//! | `views` | objects by their kinds |
//! | `symbols` | symbols by their names |
//! | `tables` | tables whose keys are weak |
//! | `watching` | collections, ports that were dropped, objects by kind |

mod format;
mod keys;
mod object;
mod stack;
mod store;
mod symbols;
mod tables;
mod value;
mod views;
mod watching;

pub(crate) use object::Kind;
pub(crate) use stack::{Register, Stack};
pub(crate) use store::{Store, with_store};
pub(crate) use value::{Constant, Value};
pub(crate) use views::{Closure, Pair, Scope, Symbol, Table, Text, Vector, View};
