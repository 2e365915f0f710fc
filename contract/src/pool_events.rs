//! Fills and growth, charged to the thread that caused them.

use tripoint_core::internal::{AtomicBool, Ordering};
use tripoint_core::{Event, EventHook};

use crate::current;
use crate::detector::DetectorSet;
use crate::slot::Observation;

/// The ear of an arena: give it as the event hook of each arena that hot threads
/// use. A fill or a growth, refused growth included, is charged to the calling
/// thread, with its site.
///
/// ```
/// use tripoint_contract::{PoolEvents, ViolationClass, current};
/// use tripoint_core::{Event, EventHook};
///
/// static EVENTS: PoolEvents = PoolEvents; // the `event_hook` of arena options
///
/// let (before, _) = current::count(ViolationClass::Growth);
/// EVENTS.event(Event::Grow { size: 4096 }); // an arena's call
/// assert_eq!(current::count(ViolationClass::Growth).0, before + 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolEvents;

impl EventHook for PoolEvents {
    fn event(&self, event: Event) {
        if !HEARD.load(Ordering::Relaxed) {
            HEARD.store(true, Ordering::Relaxed);
        }
        if let Some(observation) = Observation::of_event(event) {
            current::observe(observation);
        }
    }
}

/// Whether an arena ever reported an event: then it has this hook, for all threads.
static HEARD: AtomicBool = AtomicBool::new(false);

/// The detectors that are live for every thread of the process.
pub(crate) fn live() -> DetectorSet {
    if HEARD.load(Ordering::Relaxed) { DetectorSet::POOL_EVENTS } else { DetectorSet::empty() }
}
