//! Recording a program's allocations, in a process of its own
//! ([design/cli-traces.md `.record`](crate::design::cli_traces)).
//!
//! | file | |
//! |---|---|
//! | `converter` | operations on addresses to steps on objects |
//! | `file` | the file of a trace, while it is recorded |
//! | `place` | the preloaded library and the rings, as files for as long as `record` runs |
//! | `process` | one recorded process: its ring, and its trace |
//! | `program` | whether a program can be recorded: whether the dynamic loader will preload a library into it |
//! | `session` | the traces of a command and all its children |
//! | `shared` | memory that the recorder and the recorded processes map |
//! | `telemetry` | a trace of objects in a program's own pools, from its telemetry |

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
