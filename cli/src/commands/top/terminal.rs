//! The terminal, which is as it was before once this is dropped (design/cli.md `.req.restored`).

use core::time::Duration;
use std::io;

use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::{DefaultTerminal, Frame};

/// The whole terminal.
pub(super) struct Terminal(DefaultTerminal);

impl Terminal {
    /// Takes the terminal. If this program panics, its message is written to the terminal as it was before.
    pub(super) fn open() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }

    /// Draws, in the size that the terminal has now.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(draw).map(drop)
    }

    /// Waits for a key, at most that long.
    pub(super) fn key(&self, most: Duration) -> io::Result<Option<KeyEvent>> {
        match event::poll(most) {
            Ok(false) => return Ok(None),
            Ok(true) => {}
            // A signal came; the caller looks at it.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => Some(key),
            _ => None,
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
