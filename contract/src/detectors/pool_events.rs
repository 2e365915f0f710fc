//! What arenas report: fills, growth, collections and pauses, charged to the thread on which they happen.

use tripoint_core::{Event, EventHook};

use crate::thread::observation::Observation;
use crate::thread::{current, everywhere};
use crate::words::class::ViolationClass;
use crate::words::detector_set::DetectorSet;

/// The event hook for each arena that hot threads use. A fill or a growth, refused growth
/// included, is charged to the calling thread, with its site; so is a collection of a heap in the arena, and a wait for
/// the end of another thread's stop ([design/contract.md `.classes.collection`](crate::design::contract)).
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
        // An arena that reports events has this hook for all threads.
        everywhere::add(DetectorSet::POOL_EVENTS);
        current::count_heap_event(&event);
        if let Some(observation) = Observation::of_event(event) {
            if observation.class == ViolationClass::Collection && current::slot().is_none() {
                everywhere::count_collection();
            }
            current::observe(observation);
        }
    }
}
