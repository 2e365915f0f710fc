//! Keeps the events of the replay.

use std::sync::{Mutex, PoisonError};

use tripoint::events::{Event, EventHook};

/// The hook of the arena, the pools and the points of a replay.
#[derive(Debug, Default)]
pub(super) struct Hook {
    events: Mutex<Vec<Event>>,
}

impl Hook {
    /// Moves what happened since the last call to `events`, in order.
    pub(super) fn take(&self, events: &mut Vec<Event>) {
        events.append(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Keeps an event.
    pub(super) fn push(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

impl EventHook for Hook {
    fn event(&self, event: Event) {
        self.push(event);
    }
}
