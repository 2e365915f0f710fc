//! What events of telemetry take: an allocation, and a fill, which is counted in tables as well.

use benches::reported::{ALLOC, FILL, create};
use tripoint::events::{Event, EventHook};
use tripoint::telemetry::format::EventKind;
use tripoint::telemetry::{FileOptions, Telemetry};

use crate::{Operation, counted};

pub(crate) const OPERATIONS: [Operation; 3] = [
    ("telemetry, an allocation", |count| report(true, ALLOC, count)),
    ("telemetry, an allocation, switched off", |count| report(false, ALLOC, count)),
    ("telemetry, a fill", |count| report(true, FILL, count)),
];

fn report(on: bool, event: Event, count: usize) {
    let telemetry = Telemetry::create(&FileOptions::default()).unwrap();
    telemetry.switches().switch(EventKind::Alloc, on);
    let hook = telemetry.arena_hook();
    create(&hook);
    let hook: &dyn EventHook = &hook;
    for _ in 0..count {
        let event = core::hint::black_box(event);
        counted(|| hook.event(event));
    }
}
