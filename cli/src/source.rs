//! What a program recorded, from wherever it is: a running process, a telemetry file, a core file, a capture.

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
pub(crate) use self::live::{end, made};
pub(crate) use self::look::{Entry, Look, now};
pub(crate) use self::open::Recording;
