//! What the measurements of telemetry report to it: events of one pool and one point.

use tripoint::author::{PoolId, PoolOptions, RankSet};
use tripoint::events::{Event, EventHook};
use tripoint::{Addr, BufferKind};

const POOL: PoolId = PoolId::new(2).unwrap();
const BUFFER: Addr = Addr::new(0x1000);
const PLACE: Addr = Addr::new(0x2000);
/// An allocation.
pub const ALLOC: Event = Event::Alloc { pool: POOL, object: PLACE, size: 64, align: 8, type_name: None };
/// A free.
pub const FREE: Event = Event::Free { pool: POOL, object: PLACE, size: 64, align: 8 };
/// A fill, which is counted at its pool and its point as well.
pub const FILL: Event = Event::Fill { pool: POOL, buffer: BUFFER, base: PLACE, size: 4096 };

/// Reports that the pool and the point were created.
pub fn create(hook: &dyn EventHook) {
    hook.event(Event::CreatePool { pool: POOL, options: PoolOptions::NONE, class: "Mvff" });
    hook.event(Event::CreatePoint {
        pool: POOL,
        buffer: BUFFER,
        ranks: RankSet::empty(),
        kind: BufferKind::Mutator,
    });
}
