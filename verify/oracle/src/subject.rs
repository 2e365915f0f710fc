//! One allocation point, and an account of it that is kept without asking it.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_ap::{AllocationPoint, Frame, Tripper};
use tripoint_core::{Addr, Arena, Block, BufferKind, Check, CheckLevel, Error, FramePool, PoolClass, Result};

use crate::listener::{Draws, Listener, Stops};
use crate::oracle::{Oracle, assert_given};

/// What batches are made of.
type Element = [u8; 48];

const fn element(index: usize) -> Element {
    [index as u8; size_of::<Element>()]
}

/// A reservation's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fate {
    pub(crate) commit: bool,
    /// Whether flips let a commit stand.
    pub(crate) stands: bool,
}

/// A frame, and what there was at its push.
#[derive(Debug)]
struct Pushed {
    frame: Frame,
    objects: usize,
    allocated: u64,
}

/// An allocation point and the naive account of it.
#[derive(Debug)]
pub(crate) struct Subject<'p, P: PoolClass> {
    point: AllocationPoint<'p, P, Listener>,
    /// The number of trips requested of the owner.
    pub(crate) trips: usize,
    stops: Stops,
    /// Bytes committed, or skipped to an alignment, and not popped.
    allocated: u64,
    /// In pools of stacks: the objects, oldest first, and the frames.
    objects: Vec<usize>,
    frames: Vec<Pushed>,
}

impl<'p, P: PoolClass> Subject<'p, P> {
    pub(crate) fn create(pool: &'p P, kind: BufferKind, draws: Draws) -> Result<Self> {
        let stops = Stops::new(draws.clone());
        let point = AllocationPoint::create_with(pool, kind, Listener::new(draws))?;
        Ok(Self { point, trips: 0, stops, allocated: 0, objects: Vec::new(), frames: Vec::new() })
    }

    pub(crate) fn tripper(&self) -> Tripper<'p> {
        self.point.tripper()
    }

    pub(crate) fn room(&self) -> usize {
        self.point.room()
    }

    pub(crate) const fn allocated(&self) -> u64 {
        self.allocated
    }

    pub(crate) fn kind(&self) -> BufferKind {
        self.point.buffer().kind()
    }

    pub(crate) const fn objects(&self) -> usize {
        self.objects.len()
    }

    pub(crate) const fn frames(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn trip(&mut self) {
        self.point.tripper().trip();
        self.trips += 1;
    }

    /// Reserves, lets things happen, and commits or not; the reserve observes every
    /// trip before it, and a commit fails exactly when a flip came between
    /// (design/ap.md `.req.trip`, `.req.exact`).
    pub(crate) fn reserve(
        &mut self,
        oracle: &mut Oracle,
        layout: Layout,
        happen: impl FnOnce(),
        fate: Fate,
    ) -> Result<()> {
        let pool = self.point.pool();
        let served = pool.reserve_size(layout);
        let before = self.position();
        let reservation = match self.point.reserve(layout) {
            Ok(reservation) => reservation,
            Err(error) => return self.refused(error, served),
        };
        let (object, reserved) = (reservation.as_ptr(), reservation.size());
        let content = oracle.live_mut().next_content();
        // SAFETY: the reservation is valid for writes of its size.
        unsafe { object.write_bytes(content, reserved) };
        happen();
        // SAFETY: the object was just filled whole, and is read as bytes only.
        let stands = fate.commit && unsafe { reservation.commit() }.is_ok();
        let (written, reserved) = (reserved, reserved + P::SEAL_SIZE);
        assert_eq!(served, Some(reserved), "the size reserved for {layout:?} is not its reserve size");
        assert_eq!(
            stands,
            fate.commit && fate.stands,
            "whether a commit stands, which only a flip prevents: {fate:?}"
        );
        self.assert_observed();
        self.note_skip(before, object);
        let committed = if stands { reserved } else { 0 };
        self.note(object, reserved, layout.align(), committed);
        if stands {
            // SAFETY: committed, with this size.
            let block = unsafe { Block::new(object, reserved) };
            // SAFETY: the pool handed it out to no other, and it was filled but for what the class keeps.
            unsafe { oracle.live_mut().insert_written(block, Some(layout), written, content) };
            self.enter(block);
        }
        Ok(())
    }

    /// The same with several objects, of which some are committed.
    pub(crate) fn batch(
        &mut self,
        oracle: &mut Oracle,
        [capacity, pushed]: [usize; 2],
        happen: impl FnOnce(),
        fate: Fate,
    ) -> Result<()> {
        let pool = self.point.pool();
        let layout = |count| Layout::array::<Element>(count).unwrap();
        let served = if capacity == 0 { Some(0) } else { pool.reserve_size(layout(capacity)) };
        let before = self.position();
        let mut refusal = Error::Limit;
        let Ok(mut batch) = self.point.batch::<Element>(capacity).map_err(|error| refusal = error) else {
            return self.refused(refusal, served);
        };
        for index in 0..pushed {
            let fits = batch.push(element(index)).is_ok();
            assert_eq!(fits, index < capacity, "whether object {index} fits in a batch of {capacity}");
        }
        let pushed = pushed.min(capacity);
        assert_eq!((batch.len(), batch.capacity(), batch.is_empty()), (pushed, capacity, pushed == 0));
        let first = NonNull::from(batch.as_slice()).cast::<u8>();
        happen();
        // SAFETY: the objects have no format.
        let result = fate.commit.then(|| unsafe { batch.commit_raw() });
        // An empty batch needs no commit, so none can fail.
        let stands = fate.commit && (pushed == 0 || fate.stands);
        let objects = result.and_then(Result::ok);
        assert_eq!(
            objects.is_some(),
            stands,
            "whether a commit stands, which only a flip prevents: {fate:?}"
        );
        let (Some(served), true) = (served, capacity != 0) else { return Ok(()) };
        self.assert_observed();
        self.note_skip(before, first);
        let committed = match objects {
            Some(_) if pushed != 0 => pool.reserve_size(layout(pushed)).unwrap(),
            _ => 0,
        };
        self.note(first, served, align_of::<Element>(), committed);
        if let Some(objects) = objects.filter(|_| committed != 0) {
            // SAFETY: committed just now, and initialised.
            let elements = unsafe { objects.as_ref() };
            let changed = (0..).zip(elements).find(|&(index, &found)| found != element(index));
            assert_eq!(changed, None, "an object of a batch is not as it was pushed");
            // SAFETY: committed, with this size. Not through `first`, which may only
            // be used for reading.
            let block = unsafe { Block::new(objects.cast(), committed) };
            // SAFETY: the pool handed it out to no other.
            unsafe { oracle.live_mut().insert(block, Some(layout(pushed)), committed - P::SEAL_SIZE) };
            self.enter(block);
        }
        Ok(())
    }

    /// Empties, and compares what was counted (design/ap.md `.req.count`).
    pub(crate) fn empty(&mut self) {
        self.point.empty();
        assert!(
            self.point.is_reset() && self.point.room() == 0,
            "{} bytes are left in it",
            self.point.room()
        );
        assert_eq!(self.point.control().stops(), self.stops.found, "the stops that were reported");
        self.check();
    }

    /// The identities of the counters hold at every moment; the stops reported are
    /// those found, except perhaps the last.
    pub(crate) fn check(&mut self) {
        self.point.check(CheckLevel::Deep).unwrap();
        let buffer = self.point.buffer();
        let held = self.allocated + self.point.room() as u64;
        assert_eq!(
            buffer.fill_size() - buffer.empty_size(),
            held,
            "filled and not emptied, against allocated and room"
        );
        if P::KEEPS_UNUSED {
            return;
        }
        let found = &self.stops.found;
        let reported = self.point.control().stops();
        assert!(
            found.len() - reported.len() <= 1,
            "{} of {} stops were reported",
            reported.len(),
            found.len()
        );
        assert_eq!(reported, found[..reported.len()], "the stops that were reported");
    }

    /// Where the buffer's memory begins, and up to where it is allocated.
    fn position(&self) -> (Addr, Addr) {
        let now = self.point.buffer().snapshot().unwrap();
        (now.base, now.init)
    }

    /// What a stack skips to an alignment in a block counts as allocated.
    fn note_skip(&mut self, (base, init): (Addr, Addr), object: NonNull<u8>) {
        if P::KEEPS_UNUSED && self.position().0 == base {
            self.allocated += (object.addr().get() - init.get()) as u64;
        }
    }

    /// An object was reserved, and this much of it committed.
    fn note(&mut self, object: NonNull<u8>, reserved: usize, align: usize, committed: usize) {
        // SAFETY: reserved just now, and so large.
        let block = unsafe { Block::new(object, reserved) };
        assert_given(self.point.pool(), block, align);
        let buffer = self.point.buffer().snapshot().unwrap();
        assert!(buffer.range().covers(block.range()), "{block:?} is not in its buffer, {}", buffer.range());
        self.stops.object(block.range().base(), committed);
        self.allocated += committed as u64;
    }

    fn enter(&mut self, block: Block) {
        if P::KEEPS_UNUSED {
            self.objects.push(block.range().base().get());
        }
    }

    fn refused(&mut self, error: Error, served: Option<usize>) -> Result<()> {
        if matches!(error, Error::Parameter(_)) {
            assert_eq!(served, None, "a layout of this reserve size was refused as if not served");
            return Ok(());
        }
        assert!(served.is_some(), "a layout that is not served was refused with {error:?}");
        let is_empty = self.point.is_reset() && self.point.room() == 0;
        assert!(P::KEEPS_UNUSED || is_empty, "{} bytes are left after {error:?}", self.point.room());
        self.assert_observed();
        Err(error)
    }

    /// No trip is lost, and none is reported twice.
    fn assert_observed(&mut self) {
        assert_eq!(
            self.point.control().trips(),
            self.trips,
            "trips that the reserve observed, and trips before it"
        );
    }

    /// The bytes that the arena counted for buffers of this kind.
    pub(crate) fn counted(&self) -> u64 {
        let counts = self.point.pool().header().arena().counts();
        match self.kind() {
            BufferKind::Mutator => counts.fill_mutator.get() - counts.empty_mutator.get(),
            BufferKind::Internal => counts.fill_internal.get() - counts.empty_internal.get(),
        }
    }

    /// Drops the allocation point, and with it a stack's objects.
    pub(crate) fn finish(self, oracle: &mut Oracle) {
        for addr in self.objects {
            oracle.remove(addr);
        }
    }
}

impl<P: FramePool> Subject<'_, P> {
    pub(crate) fn push(&mut self) {
        let (objects, allocated) = (self.objects.len(), self.allocated);
        self.frames.push(Pushed { frame: self.point.push(), objects, allocated });
    }

    /// Pops one of the frames and those above it: this frees what was allocated since,
    /// and nothing else (design/conformance.md `.req.frames`).
    pub(crate) fn pop(&mut self, oracle: &mut Oracle, which: usize) {
        let Some(at) = which.checked_rem(self.frames.len()) else { return };
        let Some(pushed) = self.frames.drain(at..).next() else { return };
        for object in self.objects.drain(pushed.objects..) {
            oracle.remove(object);
        }
        self.allocated = pushed.allocated;
        // SAFETY: the frame is of this point, and no earlier one was popped since, or
        // it would not be in the list. The objects and frames since then have left
        // the lists.
        unsafe { self.point.pop(pushed.frame) };
    }
}
