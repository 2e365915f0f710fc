//! The steps of a trace, and its file ([design/cli-traces.md](crate::design::cli_traces)).
//!
//! | file | |
//! |---|---|
//! | `account` | which objects are live, step by step |
//! | `coding` | one step as a few bytes |
//! | `course` | a trace, step by step, each checked |
//! | `frame` | the parts of a file: a header, blocks of steps, and an end |
//! | `history` | all steps of a trace in memory, for tests |
//! | `operation` | what a thread does to memory |
//! | `reader` | a file to steps |
//! | `tests` | its tests |
//! | `writer` | steps to a file |

mod account;
mod coding;
mod course;
mod frame;
#[cfg(test)]
mod history;
mod operation;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use account::{Object, Totals};
pub(crate) use course::Course;
pub(crate) use frame::{Header, Summary};
#[cfg(test)]
pub(crate) use history::History;
pub(crate) use operation::{Kind, Operation, Step};
pub(crate) use writer::Writer;
