//! What FailFast prints before it ends a process: one line, without allocation and without a
//! lock, also in a signal handler (design/contract.md `.fail-fast`).

use core::fmt::{self, Write};

use crate::detectors::platform;
use crate::thread::current;
use crate::words::record::{Record, StepOf};

/// The longest line, in bytes: room for 20 frames and a path.
const SIZE: usize = 1024;

/// A line that is truncated if it becomes too long.
struct Line {
    text: [u8; SIZE],
    size: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte is kept for the end.
        let fits = text.len().min(SIZE - 1 - self.size);
        self.text[self.size..self.size + fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.size += fits;
        if fits == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// Writes an alarm, with the thread and the phase it was raised in: the calling thread's.
pub(crate) fn write(alarm: &Record, out: &mut dyn Write) -> fmt::Result {
    write!(out, "tripoint contract violated: {} x{}, {} bytes", alarm.class, alarm.count, alarm.bytes)?;
    if alarm.address != 0 {
        write!(out, " at {:#x}", alarm.address)?;
    }
    write!(out, "{}", StepOf(alarm))?;
    current::scope().map_or(Ok(()), |scope| write!(out, ", in scope {scope}"))?;
    let Some(slot) = current::slot() else { return Ok(()) };
    write!(out, ", on {}", slot.name())?;
    slot.attendance.acknowledged().map_or(Ok(()), |phase| write!(out, " in {phase}"))
}

/// Prints the line on standard error.
pub(crate) fn say(alarm: &Record) {
    let mut line = Line { text: [0; SIZE], size: 0 };
    // A line that is too long is truncated.
    let _ = write(alarm, &mut line)
        .and_then(|()| line.write_str("; "))
        .and_then(|()| platform::describe(&alarm.site, &mut line));
    line.text[line.size] = b'\n';
    platform::tell(&line.text[..=line.size]);
}
