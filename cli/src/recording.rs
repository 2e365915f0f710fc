//! What a program recorded, from wherever it is: a running process, a telemetry file, a core file.

pub(crate) mod counters;
pub(crate) mod event;
pub(crate) mod open;

pub(crate) use self::event::Event;
pub(crate) use self::open::{End, Recording, Target, Thread};
