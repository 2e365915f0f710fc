//! The rings of one thread ([design/telemetry.md `.lasting`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::internal::AtomicU64;

use crate::ring::record_ring::RecordRing;

/// In which of a thread's rings an event is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The ring of the last events, which frequent ones soon overwrite.
    Recent,
    /// The ring of events that no frequent event overwrites.
    Lasting,
}

/// The rings of one thread, or of all threads that have none of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadRings<'w> {
    /// The ring of the last events, whose head says who the thread is.
    pub(crate) recent: RecordRing<'w>,
    /// The ring of lasting events; the same one if there is no room for another.
    pub(crate) lasting: RecordRing<'w>,
}

impl<'w> ThreadRings<'w> {
    /// Rings over these words; `None` if they are no rings.
    pub(crate) fn new(recent: &'w [AtomicU64], lasting: &'w [AtomicU64]) -> Option<Self> {
        Some(Self { recent: RecordRing::new(recent)?, lasting: RecordRing::new(lasting)? })
    }

    /// Rings for a thread that has none: nothing is written to them.
    #[cfg(feature = "std")]
    pub(crate) const fn none() -> Self {
        Self { recent: RecordRing::none(), lasting: RecordRing::none() }
    }

    /// The ring for events of this place.
    pub(crate) fn at(&self, place: Place) -> &RecordRing<'w> {
        match place {
            Place::Recent => &self.recent,
            Place::Lasting => &self.lasting,
        }
    }
}
