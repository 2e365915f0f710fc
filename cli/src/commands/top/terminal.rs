//! The terminal, which is as it was before once this is dropped (design/cli.md `.req.restored`).

use core::mem::ManuallyDrop;
use core::time::Duration;
use std::io;

use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The whole terminal.
///
/// Not dropped by the library, which would print, and panic if standard error is a terminal that is gone.
pub(super) struct Terminal(ManuallyDrop<DefaultTerminal>);

impl Terminal {
    /// Takes the terminal. If this program panics, its message is written to the terminal as it was before.
    pub(super) fn open() -> io::Result<Self> {
        ratatui::try_init().map(|terminal| Self(ManuallyDrop::new(terminal)))
    }

    /// Draws, in the size that the terminal has now.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(draw).map(drop)
    }

    /// Waits for a key, at most that long.
    ///
    /// # Errors
    /// Also if the terminal is gone.
    pub(super) fn key(&self, most: Duration) -> io::Result<Option<KeyEvent>> {
        wait(Duration::ZERO)?;
        // A read before may have read several keys.
        if !event::poll(Duration::ZERO)? {
            wait(most)?;
            if !event::poll(Duration::ZERO)? {
                return Ok(None);
            }
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => Some(key),
            _ => None,
        })
    }
}

/// Waits until there is something to read, at most that long. From a terminal that is gone the library would read nothing
/// forever.
fn wait(most: Duration) -> io::Result<()> {
    let stdin = io::stdin();
    let mut input = [PollFd::new(&stdin, PollFlags::IN)];
    let most = Timespec::try_from(most).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut input, Some(&most)) {
        // A signal came; the caller looks at it.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    match input[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
        true => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the terminal is gone")),
        false => Ok(()),
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // If the terminal is gone, so is standard error: there is no place to say so.
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}
