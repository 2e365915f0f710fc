//! Core files: memory of a process that has ended, what was loaded in it, and what its contract recorded
//! (design/cli.md `.core`).

mod dump;
mod layout;
mod notes;
mod records;

pub(crate) use self::dump::{CoreFile, NotCore};
pub(crate) use self::records::{Contract, Record, Thread};
