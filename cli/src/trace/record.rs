//! Recording a program's allocations, in a process of its own
//! ([design/cli-traces.md `.record`](crate::design::cli_traces)).
//!
//! ```text
//! program.rs     whether a program can be recorded
//! place.rs       the preloaded library and the rings, as files for a while
//! shared.rs      memory that both processes map
//! file.rs        the file of a trace
//! converter.rs   operations on addresses -> steps on objects
//! process.rs     one recorded process: its ring, its trace
//! session.rs     the command and all its children
//! telemetry.rs   a trace of what a program's own telemetry says of objects
//! ```

mod converter;
mod file;
mod place;
mod process;
mod program;
#[path = "../../preload/ring.rs"]
#[expect(unreachable_pub, dead_code, reason = "the preloaded library uses the rest")]
mod ring;
mod session;
mod shared;
mod telemetry;

pub(crate) use process::Recorded;
pub(crate) use session::{RecordOptions, record, shell_status};
pub(crate) use telemetry::import;
