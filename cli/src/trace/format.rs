//! The steps of a trace, and its file ([design/cli-traces.md](crate::design::cli_traces)).
//!
//! ```text
//! operation.rs   what a thread does to memory
//! coding.rs      one step as a few bytes, relative to the step before
//! frame.rs       the parts of a file: header, blocks, end
//! writer.rs      steps -> file              reader.rs   file -> steps
//! account.rs     which objects are live         course.rs   steps, each checked
//! ```

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
