//! An event as a detector sees it.

use tripoint_core::{Collected, Event, StepTime};
use tripoint_stack::Site;

use crate::words::class::ViolationClass;

/// An event to be charged to a thread.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Its class.
    pub class: ViolationClass,
    /// Number of events.
    pub count: usize,
    /// Bytes concerned.
    pub bytes: usize,
    /// The address concerned, or zero.
    pub address: usize,
    /// The number of the system call, or zero.
    pub call: usize,
    /// The time of the step of a collection, if it is one that took longer than allowed.
    pub step: Option<StepTime>,
}

impl Observation {
    /// One event of `bytes` bytes.
    #[must_use]
    pub const fn new(class: ViolationClass, bytes: usize) -> Self {
        Self { class, count: 1, bytes, address: 0, call: 0, step: None }
    }
}

/// Where and when an event happened: gathered only for events that are recorded.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// The call site, as far as it is known.
    pub site: Site,
    /// When, in ns of the thread's clock.
    pub time: u64,
}

impl Evidence {
    /// Nothing known.
    pub const NONE: Self = Self { site: Site::UNKNOWN, time: 0 };
}

impl Observation {
    /// What an event of an arena, a buffer or a heap is to the contract.
    #[must_use]
    pub const fn of_event(event: Event) -> Option<Self> {
        match event {
            Event::Fill { size, .. } => Some(Self::new(ViolationClass::Fill, size)),
            Event::Grow { size } | Event::GrowthRefused { size } => {
                Some(Self::new(ViolationClass::Growth, size))
            }
            Event::EndCollection { kept, freed, .. } => {
                Some(Self::new(ViolationClass::Collection, kept.saturating_add(freed)))
            }
            Event::EndStep { time: Some(time), .. } if time.is_in_time() => None,
            Event::EndStep { collected, time, .. } => {
                let bytes = match collected {
                    Some(Collected { kept, freed }) => kept.saturating_add(freed),
                    None => 0,
                };
                Some(Self { step: time, ..Self::new(ViolationClass::Collection, bytes) })
            }
            Event::GiveWay { .. } => Some(Self::new(ViolationClass::Pause, 0)),
            _ => None,
        }
    }
}
