//! What events of telemetry take: an allocation, and a fill, which is counted in tables as well.

use tripoint::author::{PoolId, PoolOptions, RankSet};
use tripoint::events::{Event, EventHook};
use tripoint::telemetry::format::EventKind;
use tripoint::telemetry::{FileOptions, Telemetry};
use tripoint::{Addr, BufferKind};

use crate::{Operation, counted};

pub(crate) const OPERATIONS: [Operation; 3] = [
    ("telemetry, an allocation", |count| report(true, ALLOC, count)),
    ("telemetry, an allocation, switched off", |count| report(false, ALLOC, count)),
    ("telemetry, a fill", |count| report(true, FILL, count)),
];

const POOL: PoolId = PoolId::new(2).unwrap();
const BUFFER: Addr = Addr::new(0x1000);
const PLACE: Addr = Addr::new(0x2000);
const ALLOC: Event = Event::Alloc { pool: POOL, object: PLACE, size: 64, align: 8, type_name: None };
const FILL: Event = Event::Fill { pool: POOL, buffer: BUFFER, base: PLACE, size: 4096 };

fn report(on: bool, event: Event, count: usize) {
    let telemetry = Telemetry::create(&FileOptions::default()).unwrap();
    telemetry.switches().switch(EventKind::Alloc, on);
    let hook = telemetry.arena_hook();
    hook.event(Event::CreatePool { pool: POOL, options: PoolOptions::NONE, class: "Mvff" });
    hook.event(Event::CreatePoint {
        pool: POOL,
        buffer: BUFFER,
        ranks: RankSet::empty(),
        kind: BufferKind::Mutator,
    });
    let hook: &dyn EventHook = &hook;
    for _ in 0..count {
        let event = core::hint::black_box(event);
        counted(|| hook.event(event));
    }
}
