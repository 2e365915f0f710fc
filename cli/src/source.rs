//! What a program recorded, from wherever it is: a running process, a telemetry file, a core file, a capture.
//!
//! | file | |
//! |---|---|
//! | `capture` | a capture: what `tripoint attach` saw of a process, as lines of JSON |
//! | `counters` | counters, in the form in which the reader of telemetry writes them as JSON |
//! | `end` | all of a recording but its events |
//! | `event` | events and gaps, in the form in which the reader of telemetry writes them as JSON |
//! | `live` | reads the telemetry of a process that may still write it |
//! | `look` | a look at the counters while the process runs: what was committed, held and filled at a moment |
//! | `open` | opens a recording, and reads all of it that can be read |

mod capture;
pub(crate) mod counters;
mod end;
mod event;
mod live;
mod look;
mod open;

pub(crate) use self::capture::Writer as CaptureWriter;
pub(crate) use self::end::{End, Thread};
pub(crate) use self::event::Event;
pub(crate) use self::live::{end, is_running, made};
pub(crate) use self::look::{Entry, Look, now};
pub(crate) use self::open::Recording;
