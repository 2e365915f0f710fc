//! Does operations with a pool and with allocation points over it, and compares
//! after each.

use core::alloc::Layout;

use tripoint_ap::{Buffer, flip_buffers, for_each_buffer};
use tripoint_core::{
    Addr, AddrRange, Arena, BufferKind, Error, FramePool, ManualPool, PoolClass, PoolSizes, Result,
};

use crate::listener::Draws;
use crate::operation::{Between, Operation};
use crate::oracle::Oracle;
use crate::subject::{Fate, Subject};

/// How closely a run looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scrutiny {
    /// A deep check and a walk after every operation.
    EveryStep,
    /// Sums after every operation, all other checks at [`Operation::Check`] and at
    /// the end.
    WhenAsked,
}

/// How much of its pool's memory a class takes for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slack {
    /// Nothing, at any moment.
    None,
    /// An amount that changes only with the extents, whose ends may be of no
    /// use.
    OfExtents,
    /// At most this many bytes, and none if nothing is live or kept.
    Within(usize),
}

impl Slack {
    /// Checks that an operation neither lost memory nor gained any.
    pub(crate) fn compare(self, operation: Operation, before: usize, now: usize, same_extents: bool) {
        match self {
            Self::None => assert_eq!(now, 0, "bytes neither free nor live after {operation:?}"),
            Self::OfExtents => {
                assert!(
                    !same_extents || now == before,
                    "{operation:?}: {now} bytes unaccounted for, {before} before"
                );
            }
            Self::Within(most) => {
                assert!(now <= most, "{now} bytes neither free nor live after {operation:?}")
            }
        }
    }
}

/// A pool, allocation points over it, and what is known of both.
///
/// Its panics are findings, as an [`Oracle`]'s are.
#[derive(Debug)]
pub struct Run<'p, P: PoolClass> {
    pool: &'p P,
    oracle: Oracle,
    /// At most one of each kind, so that the arena counts each by itself.
    points: Vec<Subject<'p, P>>,
    /// What the arena had counted for each point's kind before.
    counted: Vec<u64>,
}

impl<'p, P: PoolClass> Run<'p, P> {
    /// Over a pool in which nothing is live: with a mutator's allocation point for
    /// the first draws, an internal one for the second.
    ///
    /// # Errors
    /// Those of creating the points.
    ///
    /// # Panics
    /// For more than two draws.
    pub fn create(pool: &'p P, draws: &[Draws]) -> Result<Self> {
        assert!(draws.len() <= 2, "the arena counts for two kinds");
        let kinds = [BufferKind::Mutator, BufferKind::Internal].into_iter();
        let subject = |(draws, kind): (&Draws, _)| Subject::create(pool, kind, draws.clone());
        let points = draws.iter().zip(kinds).map(subject).collect::<Result<Vec<_>>>()?;
        let counted = points.iter().map(Subject::counted).collect();
        Ok(Self { pool, oracle: Oracle::default(), points, counted })
    }

    /// What is live.
    #[must_use]
    pub const fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// The bytes left in allocation points.
    #[must_use]
    pub fn room(&self) -> usize {
        self.points.iter().map(Subject::room).sum()
    }

    /// The bytes that are neither live, nor free, nor in a buffer: what the class
    /// itself takes.
    #[must_use]
    pub fn slack(&self) -> usize {
        self.oracle.slack(self.pool) - self.room()
    }

    /// How many live objects an allocation point has, in a pool of stacks.
    #[must_use]
    pub fn objects(&self, point: usize) -> usize {
        self.points[point].objects()
    }

    /// How many frames an allocation point has.
    #[must_use]
    pub fn frames(&self, point: usize) -> usize {
        self.points[point].frames()
    }

    /// Checks all that is quick to compute.
    pub fn check(&mut self) {
        self.points.iter_mut().for_each(Subject::check);
    }

    /// Checks everything: [`Oracle::agree`], the points, and all contents.
    pub fn agree(&mut self) -> PoolSizes {
        self.check();
        self.oracle.live().assert_kept();
        let sizes = self.oracle.agree(self.pool);
        let known = self.oracle.live_size() + self.room() + sizes.free;
        assert!(known <= sizes.total, "{known} bytes are live, in points or free, of {sizes:?}");
        sizes
    }

    /// Does the operations that any class has; skips the others.
    ///
    /// # Errors
    /// The pool's, if it is short of memory. It is no error if a layout that the
    /// class does not serve is refused as such.
    pub fn operate(&mut self, operation: Operation) -> Result<()> {
        match operation {
            Operation::Reserve { point, layout, commit, between } => {
                self.with_point(point, between, |oracle, subject, happen| {
                    subject.reserve(oracle, layout, happen, fate::<P>(commit, between))
                })?;
            }
            Operation::Batch { point, capacity, pushed, commit, between } => {
                self.with_point(point, between, |oracle, subject, happen| {
                    subject.batch(oracle, [capacity, pushed], happen, fate::<P>(commit, between))
                })?;
            }
            Operation::EmptyPoint(point) => self.empty(point),
            Operation::Trip(point) => {
                if let Some(at) = point.checked_rem(self.points.len()) {
                    self.points[at].trip();
                }
            }
            Operation::Flip => self.flip(),
            Operation::Check => drop(self.agree()),
            _ => {}
        }
        Ok(())
    }

    /// Lets one point do something, and things happen meanwhile.
    fn with_point(
        &mut self,
        point: usize,
        between: Between,
        act: impl FnOnce(&mut Oracle, &mut Subject<'p, P>, &mut dyn FnMut()) -> Result<()>,
    ) -> Result<()> {
        let Some(at) = point.checked_rem(self.points.len()) else { return Ok(()) };
        let (pool, subject, mut happened) = (self.pool, &mut self.points[at], false);
        let tripper = subject.tripper();
        let mut happen = || {
            happened = true;
            (0..between.trips).for_each(|_| tripper.trip());
            (0..between.flips).for_each(|_| flip_each(pool));
        };
        let done = act(&mut self.oracle, subject, &mut happen);
        if happened {
            subject.trips += between.trips;
            self.note_flips(between.flips);
        }
        done
    }

    /// A flip trips every buffer of the pool.
    fn note_flips(&mut self, flips: usize) {
        if P::FLIPPABLE {
            self.points.iter_mut().for_each(|subject| subject.trips += flips);
        }
    }

    fn flip(&mut self) {
        flip_buffers(self.pool, |buffer, objects| {
            assert!(P::FLIPPABLE, "a flip of a pool that is not flippable reached a buffer");
            assert_seen(buffer, objects);
        });
        self.note_flips(1);
    }

    /// Once a point is empty, the arena counted what it allocated
    /// (design/conformance.md `.req.identity`).
    fn empty(&mut self, point: usize) {
        let Some(at) = point.checked_rem(self.points.len()) else { return };
        let subject = &mut self.points[at];
        subject.empty();
        if !P::KEEPS_UNUSED {
            let mutator = subject.kind() == BufferKind::Mutator;
            let elsewhere = if mutator { self.oracle.in_points() } else { 0 };
            let allocated = subject.allocated() + elsewhere;
            assert_eq!(
                subject.counted() - self.counted[at],
                allocated,
                "bytes that the arena counted as allocated"
            );
        }
    }

    /// Makes every point observe its trips, empties it and drops it. Returns what
    /// is left.
    pub fn finish(mut self) -> Oracle {
        for point in 0..self.points.len() {
            let layout = Layout::new::<u8>();
            let abandon = Operation::Reserve { point, layout, commit: false, between: Between::default() };
            // Refused or not, the point has observed its trips.
            let _ = self.operate(abandon);
            self.empty(point);
        }
        self.points.into_iter().for_each(|subject| subject.finish(&mut self.oracle));
        self.oracle
    }
}

/// Flips every buffer, one by one, and checks what each flip saw.
fn flip_each<P: PoolClass>(pool: &P) {
    if P::FLIPPABLE {
        for_each_buffer(pool, |buffer| {
            // SAFETY: the pool's own pair, with which its allocation points commit.
            assert_seen(buffer, unsafe { buffer.flip(pool.barrier()) });
        });
    }
}

/// A flip fixed these objects of a buffer whose owner waits.
fn assert_seen(buffer: &Buffer, objects: Option<AddrRange>) {
    let now = buffer.snapshot().unwrap();
    let seen = AddrRange::new(now.base, now.scan_limit).filter(|_| now.base != Addr::ZERO);
    assert_eq!(objects, seen, "the objects that a flip returned, and those up to the scan limit");
    assert!(now.scan_limit <= now.init, "a scan limit of {} beyond {}", now.scan_limit, now.init);
}

fn fate<P: PoolClass>(commit: bool, between: Between) -> Fate {
    Fate { commit, stands: !(P::FLIPPABLE && between.flips > 0) }
}

impl<P: ManualPool> Run<'_, P> {
    /// Does the operations that a manual class has; skips the others.
    ///
    /// # Errors
    /// Those of [`Run::operate`].
    pub fn operate_manually(&mut self, operation: Operation) -> Result<()> {
        let (oracle, pool) = (&mut self.oracle, self.pool);
        match operation {
            Operation::Alloc(layout) => {
                let largest_free = pool.sizes().largest_free;
                let done = oracle.alloc(pool, layout).map(drop);
                served_or(done, layout, pool, || assert_short(pool, layout, largest_free))
            }
            Operation::Fill { layout, objects } => match pool.reserve_size(layout) {
                Some(_) => oracle.fill(pool, layout, objects).map(drop),
                None => Ok(()),
            },
            Operation::Point { layout, objects } => {
                served_or(oracle.point(pool, layout, objects), layout, pool, || ())
            }
            Operation::Free(which) => {
                if let Some(addr) = oracle.live().pick(true, which) {
                    oracle.free(pool, addr);
                }
                Ok(())
            }
            Operation::AllocMany { layout, most } => {
                oracle.alloc_many(pool, layout, most);
                Ok(())
            }
            Operation::FreeMany { object, most } => {
                if let Some(addr) = oracle.live().pick(true, object) {
                    oracle.free_many(pool, addr, most);
                }
                Ok(())
            }
            Operation::EmptyFill(which) => {
                if let Some(addr) = oracle.live().pick(false, which) {
                    oracle.empty(pool, addr);
                }
                Ok(())
            }
            Operation::Resize { object, size } => {
                if let Some(addr) = oracle.live().pick(true, object) {
                    oracle.resize(pool, addr, size);
                }
                Ok(())
            }
            other => self.operate(other),
        }
    }
}

/// Either the class does not serve this layout, which is no error, or there was
/// no room.
fn served_or<P: PoolClass>(done: Result<()>, layout: Layout, pool: &P, used_up: impl FnOnce()) -> Result<()> {
    match done {
        Err(Error::Parameter(_)) => {
            assert_eq!(pool.reserve_size(layout), None, "{layout:?} is served, and was refused as if not");
            return Ok(());
        }
        // Not if a platform fails: a class may need it beyond the memory.
        Err(Error::Limit) => used_up(),
        _ => {}
    }
    done
}

/// A request that fits is not refused: a free block this large holds the object, however it
/// is aligned (design/conformance.md `.req.fits`). The exception is an arena that also has
/// no memory for descriptors, which a class may need.
fn assert_short<P: PoolClass>(pool: &P, layout: Layout, largest_free: usize) {
    let surely_fits = pool.reserve_size(layout).unwrap() + layout.align() - 1;
    let short = largest_free < surely_fits || !supplies_tables(pool.header().arena());
    assert!(short, "{layout:?} fits in {largest_free} bytes and is refused");
}

/// Whether an arena supplies as many tables as the refused object may need.
fn supplies_tables<A: Arena>(arena: &A) -> bool {
    let table = Layout::new::<[usize; 64]>();
    let tables = [(); 6].map(|()| arena.alloc_descriptor(table));
    for &descriptor in tables.iter().flatten() {
        // SAFETY: allocated from this arena just now, with this layout; freed once, and not used.
        unsafe { arena.free_descriptor(descriptor, table) };
    }
    tables.iter().all(Result::is_ok)
}

impl<P: FramePool> Run<'_, P> {
    /// Does the operations that a class of stacks has; skips the others.
    ///
    /// # Errors
    /// Those of [`Run::operate`].
    pub fn operate_in_frames(&mut self, operation: Operation) -> Result<()> {
        let count = self.points.len();
        match operation {
            Operation::Push(point) => {
                if let Some(at) = point.checked_rem(count) {
                    self.points[at].push();
                }
                Ok(())
            }
            Operation::Pop { point, frame } => {
                if let Some(at) = point.checked_rem(count) {
                    self.points[at].pop(&mut self.oracle, frame);
                }
                Ok(())
            }
            other => self.operate(other),
        }
    }
}

impl Scrutiny {
    fn look<P: PoolClass>(self, run: &mut Run<'_, P>) -> PoolSizes {
        match self {
            Self::EveryStep => run.agree(),
            Self::WhenAsked => run.pool.sizes(),
        }
    }
}

/// Does the operations with a new pool, whose arena refuses nothing that it has,
/// and compares pool and oracle after each. At the end it checks that nothing is lost
/// (design/conformance.md `.req.lost`; for MVFF, design/pool-mvff.md `.req.lost`).
pub fn live_manually<P: ManualPool>(
    pool: &P,
    draws: &[Draws],
    operations: impl IntoIterator<Item = Operation>,
    slack: Slack,
    scrutiny: Scrutiny,
) {
    let mut run = Run::create(pool, draws).unwrap();
    for operation in operations {
        let (total, before) = (pool.sizes().total, run.slack());
        let done = run.operate_manually(operation);
        assert!(matches!(done, Ok(()) | Err(Error::Limit)), "{operation:?}: {done:?}");
        let same_extents = scrutiny.look(&mut run).total == total;
        slack.compare(operation, before, run.slack(), same_extents);
    }
    run.agree();
    let mut oracle = run.finish();
    let slack = oracle.slack(pool);
    oracle.clear(pool);
    let sizes = oracle.agree(pool);
    assert_eq!(sizes.free == 0, sizes.largest_free == 0, "{sizes:?}");
    assert_eq!(oracle.slack(pool), slack, "bytes unaccounted for, after and before all was freed");
}

/// The same for a pool whose allocation points are stacks. Once these are dropped, all memory
/// is free.
pub fn live_in_frames<P: FramePool>(
    pool: &P,
    draws: &[Draws],
    operations: impl IntoIterator<Item = Operation>,
    scrutiny: Scrutiny,
) {
    let mut run = Run::create(pool, draws).unwrap();
    for operation in operations {
        let done = run.operate_in_frames(operation);
        assert!(matches!(done, Ok(()) | Err(Error::Limit)), "{operation:?}: {done:?}");
        run.check();
        scrutiny.look(&mut run);
    }
    run.agree();
    let oracle = run.finish();
    oracle.agree(pool);
    assert_eq!(oracle.slack(pool), 0, "bytes unaccounted for when all points were dropped");
}
