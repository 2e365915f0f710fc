//! Traces: what a program allocated and freed, recorded, replayed, synthesized, and what they advise
//! ([design/cli-traces.md](crate::design::cli_traces)).
//!
//! | file, from the ground up | |
//! |---|---|
//! | `status` | fields of the files in which the system says what a process has |
//! | `format` | the steps of a trace, and its file |
//! | `record` | recording a program's allocations |
//! | `replay` | replaying a trace on allocators |
//! | `synthesize` | traces of workloads that no program has |
//! | `advise` | sizes for an Init, from a trace |

pub(crate) mod advise;
pub(crate) mod format;
#[cfg(recorder)]
pub(crate) mod record;
pub(crate) mod replay;
mod status;
pub(crate) mod synthesize;
