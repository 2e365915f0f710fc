//! A pool of the replay, with its points.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::collections::BTreeMap;

use tripoint::author::FramePool;
use tripoint::packets::{PacketCounts, PacketRingCounts};
use tripoint::points::{Frame, Snapshot};
use tripoint::{AllocationPoint, BufferKind, ManualPool, PoolClass, PoolSizes};
use tripoint_telemetry::{LoggedPool, PointLogger};

use super::borrowed::Borrowed;
use super::hook::Hook;
use super::objects::{Impossible, Made, Object, Objects};
use super::packet_call::{PacketCall, Unit};

/// A control that logs all calls on its point.
type Logger<'a> = PointLogger<fn() -> bool, &'a Hook>;

/// A pool that logs all calls on it.
pub(super) type Logged<'a, P> = LoggedPool<P, fn() -> bool, &'a Hook>;

pub(super) const NO_POINT: Impossible = Impossible("the pool has no such point");
const NO_FRAMES: Impossible = Impossible("only a stack has frames");
const NO_PACKETS: Impossible = Impossible("only a pool of packets has packets");
const NO_OBJECTS: Impossible = Impossible("objects of a stack are not freed one by one");
const TOO_FEW: Impossible = Impossible("fewer bytes were committed than any object has");
const OTHER_ALIGNMENT: Impossible = Impossible(
    "a part of a batch was committed, of objects that are more aligned than the pool: this is not replayed",
);

/// A call on a pool or on one of its points. Addresses are those of the log.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    CreatePoint(BufferKind),
    DestroyPoint,
    /// Of what is reserved that many bytes are committed.
    Reserve {
        layout: Layout,
        object: u64,
        size: usize,
        unit: usize,
        committed: usize,
    },
    Empty,
    Push {
        init: u64,
    },
    /// That many bytes were popped.
    Pop {
        init: u64,
        size: u64,
    },
    FreeAtPoint {
        object: u64,
        layout: Layout,
    },
    /// The object is none if it was refused.
    Alloc {
        layout: Layout,
        object: Option<u64>,
    },
    Free {
        object: u64,
        layout: Layout,
    },
    Resize {
        object: u64,
        from: Layout,
        to: Layout,
        resized: Option<u64>,
    },
    /// On a pool of packets, whose caches are named as buffers are.
    Packet(PacketCall),
}

/// What the replay does with a pool.
pub(super) trait Pool {
    /// Makes a call: on the point with this buffer, if it is one on a point.
    fn call(&mut self, buffer: u64, call: Call) -> Result<(), Impossible>;

    fn whole(&self) -> &dyn Points;

    /// Says what the next fill is, to a pool that does not decide it by itself: that many bytes, from that many behind the
    /// arena's base.
    fn decide_fill(&self, offset: u64, size: u64) -> Result<(), Impossible> {
        let _ = (offset, size);
        Ok(())
    }

    /// Says whether the point that reserves next gives way, to a pool that does not decide it by itself.
    fn decide_way(&self, gives_way: bool) {
        let _ = gives_way;
    }

    /// Says by which error the next fill is refused that was not decided, to a pool that does not decide it by itself.
    fn decide_refusal(&self, error: &str) {
        let _ = error;
    }

    /// Passes a unit that the next call moves, to a pool of packets.
    fn pass_unit(&self, unit: Unit) -> Result<(), Impossible> {
        let _ = unit;
        Err(NO_PACKETS)
    }
}

/// What any pool and its points are asked for.
pub(super) trait Points {
    /// Requests trips of a point.
    fn trip(&self, buffer: u64, requests: u64) -> Result<(), Impossible>;

    fn sizes_now(&self) -> PoolSizes;

    fn class(&self) -> &'static str;

    /// Shows each point: its buffer in the log, its words, the bytes that it was filled with, and those that it returned.
    fn look(&self, visit: &mut dyn FnMut(u64, Option<Snapshot>, u64, u64));

    /// Where the units of a pool of packets are.
    fn packets(&self) -> Option<PacketCounts> {
        None
    }

    /// Shows the number of each ring of packets, and what it has counted.
    fn look_at_rings(&self, visit: &mut dyn FnMut(u64, PacketRingCounts)) {
        let _ = visit;
    }
}

/// A pool, and points that borrow it.
pub(super) struct Whole<'a, P: PoolClass + 'a> {
    points: BTreeMap<u64, Point<'a, P>>,
    pool: Borrowed<'a, P>,
}

struct Point<'a, P: PoolClass> {
    point: AllocationPoint<'a, P, Logger<'a>>,
    frames: Vec<Pushed>,
}

/// A frame that was not popped.
struct Pushed {
    /// Where it began in the log.
    init: u64,
    /// What the point had allocated and not popped, in bytes.
    allocated: u64,
    frame: Frame,
}

impl<P: PoolClass> Point<'_, P> {
    /// What the point has allocated and not popped, in bytes.
    fn allocated(&self) -> u64 {
        let buffer = self.point.buffer();
        buffer.fill_size() - buffer.empty_size() - self.point.room() as u64
    }
}

impl<'a, P: PoolClass + 'a> Whole<'a, P> {
    pub(super) fn new(pool: P) -> Self {
        Self { points: BTreeMap::new(), pool: Borrowed::new(pool) }
    }

    /// The pool. Only points that this value owns keep the reference.
    pub(super) fn pool(&self) -> &'a P {
        // SAFETY: the points, which alone keep the reference, are dropped before the pool.
        unsafe { self.pool.get() }
    }

    fn point(&mut self, buffer: u64) -> Result<&mut Point<'a, P>, Impossible> {
        self.points.get_mut(&buffer).ok_or(NO_POINT)
    }

    pub(super) fn create_point(&mut self, buffer: u64, kind: BufferKind, hook: &'a Hook) {
        let logger = PointLogger::new(always as fn() -> bool, hook);
        // A refusal is noticed, because the event of the log is then missing.
        if let Ok(point) = AllocationPoint::create_with(self.pool(), kind, logger) {
            self.points.insert(buffer, Point { point, frames: Vec::new() });
        }
    }

    pub(super) fn destroy_point(&mut self, buffer: u64) -> Result<(), Impossible> {
        self.points.remove(&buffer).map(drop).ok_or(NO_POINT)
    }

    pub(super) fn empty(&mut self, buffer: u64) -> Result<(), Impossible> {
        self.point(buffer)?.point.empty();
        Ok(())
    }

    /// Reserves memory, and commits as much of it as was committed. Returns what was.
    pub(super) fn reserve(
        &mut self,
        buffer: u64,
        layout: Layout,
        size: usize,
        committed: usize,
    ) -> Result<Option<(NonNull<u8>, usize)>, Impossible> {
        let pool = self.pool();
        let point = &mut self.point(buffer)?.point;
        if committed != 0 && committed < size {
            if layout.align() > pool.min_align() {
                return Err(OTHER_ALIGNMENT);
            }
            let count = committed.saturating_sub(P::SEAL_SIZE).min(layout.size());
            if count == 0 {
                return Err(TOO_FEW);
            }
            let Ok(mut batch) = point.batch::<u8>(layout.size()) else { return Ok(None) };
            while batch.len() < count && batch.push(0).is_ok() {}
            // SAFETY: bytes have no format.
            let objects = unsafe { batch.commit_raw() };
            let reserved = Layout::array::<u8>(count).ok().and_then(|layout| pool.reserve_size(layout));
            return Ok(objects.ok().map(NonNull::cast).zip(reserved));
        }
        let Ok(reservation) = point.reserve(layout) else { return Ok(None) };
        if committed == 0 {
            return Ok(None);
        }
        let reserved = reservation.size() + P::SEAL_SIZE;
        // SAFETY: no collector reads the objects of a replay, and none is used after it was freed or popped.
        let object = unsafe { reservation.commit() };
        Ok(object.ok().map(|object| (object, reserved)))
    }
}

impl<'a, P: PoolClass + 'a> Points for Whole<'a, P> {
    fn trip(&self, buffer: u64, requests: u64) -> Result<(), Impossible> {
        let tripper = self.points.get(&buffer).ok_or(NO_POINT)?.point.tripper();
        (0..requests).for_each(|_| tripper.trip());
        Ok(())
    }

    fn sizes_now(&self) -> PoolSizes {
        self.pool().sizes()
    }

    fn class(&self) -> &'static str {
        self.pool().header().class()
    }

    fn look(&self, visit: &mut dyn FnMut(u64, Option<Snapshot>, u64, u64)) {
        for (&logged, Point { point, .. }) in &self.points {
            let buffer = point.buffer();
            visit(logged, buffer.snapshot(), buffer.fill_size(), buffer.empty_size());
        }
    }
}

pub(super) fn always() -> bool {
    true
}

/// A pool whose objects are freed one by one.
pub(super) struct Manual<'a, P: ManualPool + 'a> {
    whole: Whole<'a, Logged<'a, P>>,
    objects: Objects,
    hook: &'a Hook,
}

impl<'a, P: ManualPool + 'a> Manual<'a, P> {
    pub(super) fn new(pool: P, hook: &'a Hook) -> Self {
        let objects = Objects::new(pool.min_align());
        let pool = LoggedPool::new(pool, always as fn() -> bool, hook);
        Self { whole: Whole::new(pool), objects, hook }
    }

    fn alloc(&mut self, layout: Layout, object: Option<u64>) {
        use tripoint::Store as _;
        let pool = self.whole.pool();
        let allocated = pool.alloc(layout);
        match (allocated, object) {
            (Ok(at), Some(logged)) => {
                let size = pool.reserve_size(layout).unwrap_or(layout.size());
                self.objects.insert(logged, Object { at, size, reserved: size, made: Made::Whole });
            }
            // No call of the log frees it.
            (Ok(_), None) | (Err(_), _) => {}
        }
    }

    fn resize(
        &mut self,
        object: u64,
        [from, to]: [Layout; 2],
        resized: Option<u64>,
    ) -> Result<(), Impossible> {
        use tripoint::Store as _;
        let pool = self.whole.pool();
        let at = self.objects.take(object, from, pool.reserve_size(from))?;
        // SAFETY: the object was allocated in this pool with the layout `from`, or one of the same size at a point, and
        // is live: `Objects::take` just returned it.
        let now = unsafe { pool.resize(at, from, to) };
        let (layout, at) = now.map_or((from, at), |now| (to, now));
        let logged = resized.filter(|_| now.is_some()).unwrap_or(object);
        let size = pool.reserve_size(layout).unwrap_or(layout.size());
        self.objects.insert(logged, Object { at, size, reserved: size, made: Made::Whole });
        Ok(())
    }
}

impl<'a, P: ManualPool + 'a> Pool for Manual<'a, P> {
    fn call(&mut self, buffer: u64, call: Call) -> Result<(), Impossible> {
        use tripoint::Store as _;
        let hook = self.hook;
        let Self { whole, objects, .. } = self;
        let pool = whole.pool();
        match call {
            Call::CreatePoint(kind) => whole.create_point(buffer, kind, hook),
            Call::DestroyPoint => whole.destroy_point(buffer)?,
            Call::Reserve { layout, object, size, unit, committed } => {
                if let Some((at, reserved)) = whole.reserve(buffer, layout, size, committed)? {
                    let made = if unit < layout.size() { Made::AsBatch } else { Made::Whole };
                    objects.insert(object, Object { at, size: committed, reserved, made });
                }
            }
            Call::Empty => whole.empty(buffer)?,
            Call::FreeAtPoint { object, layout } => {
                let at = objects.take(object, layout, pool.reserve_size(layout))?;
                // SAFETY: the object was allocated in this pool, with this layout or one that takes the same room, and is
                // live: `Objects::take` just took it out.
                unsafe { whole.point(buffer)?.point.free(at, layout) };
            }
            Call::Alloc { layout, object } => self.alloc(layout, object),
            Call::Free { object, layout } => {
                let at = objects.take(object, layout, pool.reserve_size(layout))?;
                // SAFETY: the object was allocated in this pool, with this layout or one that takes the same room, and is
                // live: `Objects::take` just took it out.
                unsafe { pool.free(at, layout) };
            }
            Call::Resize { object, from, to, resized } => self.resize(object, [from, to], resized)?,
            Call::Push { .. } | Call::Pop { .. } => return Err(NO_FRAMES),
            Call::Packet(_) => return Err(NO_PACKETS),
        }
        Ok(())
    }

    fn whole(&self) -> &dyn Points {
        &self.whole
    }
}

/// A pool whose objects are taken back by frames.
pub(super) struct Stack<'a, P: FramePool + 'a> {
    whole: Whole<'a, P>,
    hook: &'a Hook,
}

impl<'a, P: FramePool + 'a> Stack<'a, P> {
    pub(super) fn new(pool: P, hook: &'a Hook) -> Self {
        Self { whole: Whole::new(pool), hook }
    }

    /// Pops the frame that began at this place, that many bytes ago. If there is none, one that began there: then the replay
    /// pops another number of bytes.
    fn pop(&mut self, buffer: u64, init: u64, size: u64) -> Result<(), Impossible> {
        let point = self.whole.point(buffer)?;
        let begun = point.allocated().checked_sub(size);
        let find = |is_it: &dyn Fn(&Pushed) -> bool| {
            point.frames.iter().rposition(|pushed| pushed.init == init && is_it(pushed))
        };
        let at = find(&|pushed| Some(pushed.allocated) == begun).or_else(|| find(&|_| true));
        let Some(Pushed { frame, .. }) = at.and_then(|at| point.frames.drain(at..).next()) else {
            return Err(Impossible("no frame that is there was pushed at this place"));
        };
        // SAFETY: the frame is of this point, and no earlier one was popped since, because later ones leave the list
        // with it. Nothing uses the objects of a replay.
        unsafe { point.point.pop(frame) };
        Ok(())
    }
}

impl<'a, P: FramePool + 'a> Pool for Stack<'a, P> {
    fn call(&mut self, buffer: u64, call: Call) -> Result<(), Impossible> {
        let hook = self.hook;
        let whole = &mut self.whole;
        match call {
            Call::CreatePoint(kind) => whole.create_point(buffer, kind, hook),
            Call::DestroyPoint => whole.destroy_point(buffer)?,
            Call::Reserve { layout, size, committed, .. } => {
                _ = whole.reserve(buffer, layout, size, committed)?;
            }
            Call::Empty => whole.empty(buffer)?,
            Call::Push { init } => {
                let point = whole.point(buffer)?;
                let allocated = point.allocated();
                let frame = point.point.push();
                point.frames.push(Pushed { init, allocated, frame });
            }
            Call::Pop { init, size } => self.pop(buffer, init, size)?,
            Call::FreeAtPoint { .. } | Call::Alloc { .. } | Call::Free { .. } | Call::Resize { .. } => {
                return Err(NO_OBJECTS);
            }
            Call::Packet(_) => return Err(NO_PACKETS),
        }
        Ok(())
    }

    fn whole(&self) -> &dyn Points {
        &self.whole
    }
}
