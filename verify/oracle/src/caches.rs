//! Operations on caches over a pool: every byte is free, live or cached.

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Arena, Block, Check, CheckLevel, Error, ManualPool, Result, Store};
use tripoint_pools::{Cache, CacheClasses, Depot, Mfs, MfsCache, Returns, Unit};

use crate::Oracle;
use crate::operation::Operation;
use crate::oracle::assert_given;
use crate::run::{Scrutiny, Slack};

/// A place where objects of a pool are allocated and freed. An object from one may
/// be freed in any other of the same run.
pub trait FrontEnd {
    /// Takes an object of this layout.
    ///
    /// # Errors
    /// The pool's.
    fn get(&mut self, layout: Layout) -> Result<NonNull<u8>>;

    /// Frees an object.
    ///
    /// # Safety
    /// - It came from a front end of the same run with this layout, is freed once, and
    ///   nothing uses it any more.
    unsafe fn put(&mut self, object: NonNull<u8>, layout: Layout);

    /// Returns all that it keeps to the pool.
    fn flush(&mut self) {}

    /// Requests that the owner flush.
    fn trip(&mut self) {}

    /// The bytes it keeps.
    fn kept(&self) -> usize {
        0
    }

    /// The bytes that are free in what it has of its pool, and that it cannot return.
    fn unreturned(&self) -> usize {
        0
    }

    /// The layout that it asks its pool for if this one is requested.
    fn block(&self, layout: Layout) -> Layout {
        layout
    }

    /// Checks it deeply.
    fn check(&self) {}
}

/// A cache by size classes, and its classes.
#[derive(Debug)]
pub struct ClassFrontEnd<'c, P: ManualPool> {
    /// The cache.
    pub cache: Cache<'c, P>,
    /// The classes of its descriptor.
    pub classes: CacheClasses,
}

impl<P: ManualPool> FrontEnd for ClassFrontEnd<'_, P> {
    fn get(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        let object = self.cache.alloc(layout);
        if object == Err(Error::Limit) {
            assert_eq!(self.kept(), 0, "{layout:?} was refused while the cache kept blocks");
        }
        object
    }

    unsafe fn put(&mut self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the object is from a cache of the same pool with equal classes;
        // the caller frees it once, and nothing uses it any more.
        unsafe { self.cache.free(object, layout) };
    }

    fn flush(&mut self) {
        self.cache.flush();
    }

    fn trip(&mut self) {
        self.cache.descriptor().trip();
    }

    fn kept(&self) -> usize {
        self.cache.descriptor().cached()
    }

    fn block(&self, layout: Layout) -> Layout {
        self.classes.block(layout).unwrap_or(layout)
    }

    fn check(&self) {
        self.cache.check(CheckLevel::Deep).unwrap();
    }
}

/// A depot, for threads without a cache. It comes after its caches, which flush into it.
impl<P: ManualPool> FrontEnd for &Depot<'_, P> {
    fn get(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        let object = self.alloc(layout);
        if object == Err(Error::Limit) {
            assert_eq!(self.kept(), 0, "{layout:?} was refused while the depot kept batches");
        }
        object
    }

    unsafe fn put(&mut self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the object is from the depot or a cache of it; the caller frees it once, and nothing uses it any more.
        unsafe { self.free(object, layout) };
    }

    fn flush(&mut self) {
        Depot::flush(self);
    }

    fn kept(&self) -> usize {
        Depot::kept(self)
    }

    fn unreturned(&self) -> usize {
        self.free_in_slabs()
    }

    fn block(&self, layout: Layout) -> Layout {
        self.classes().block(layout).unwrap_or(layout)
    }

    fn check(&self) {
        Check::check(*self, CheckLevel::Deep).unwrap();
    }
}

impl<A: Arena, U: Unit> FrontEnd for MfsCache<'_, A, U> {
    fn get(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        self.alloc(layout)
    }

    unsafe fn put(&mut self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: caches take any unit of their pool; the caller frees it once,
        // and nothing uses it any more.
        unsafe { self.free(object, layout) };
    }

    fn flush(&mut self) {
        Self::flush(self);
    }

    fn kept(&self) -> usize {
        self.cached()
    }

    fn check(&self) {
        Check::check(self, CheckLevel::Deep).unwrap();
    }
}

/// Returns for units, and the pool that they belong to.
#[derive(Debug)]
pub struct ReturnFrontEnd<'pool, A: Arena, U: Unit> {
    /// The pool.
    pub pool: &'pool Mfs<A, U>,
    /// What frees units on behalf of other threads.
    pub returns: Returns<'pool, A, U>,
}

impl<A: Arena, U: Unit> FrontEnd for ReturnFrontEnd<'_, A, U> {
    fn get(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        self.pool.alloc(layout)
    }

    unsafe fn put(&mut self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: returns take any unit of their pool; the caller frees it
        // once, and nothing uses it any more.
        unsafe { self.returns.free(object, layout) };
    }

    fn flush(&mut self) {
        self.returns.flush();
    }

    fn kept(&self) -> usize {
        self.returns.kept() * self.pool.unit_size()
    }
}

/// The pool itself.
impl<A: Arena, U: Unit> FrontEnd for &Mfs<A, U> {
    fn get(&mut self, layout: Layout) -> Result<NonNull<u8>> {
        self.alloc(layout)
    }

    unsafe fn put(&mut self, object: NonNull<u8>, layout: Layout) {
        // SAFETY: the pool takes any of its units; the caller frees it once,
        // and nothing uses it any more.
        unsafe { self.free(object, layout) };
    }
}

/// Does operations with front ends of one pool, in which nothing else is live, and after
/// each compares what is free, live and kept. At the end it checks that nothing is lost.
///
/// # Panics
/// If the pool or a front end does something wrong.
pub fn live_with_front_ends<P: ManualPool>(
    pool: &P,
    front_ends: &mut [&mut dyn FrontEnd],
    operations: impl IntoIterator<Item = Operation>,
    slack: Slack,
    scrutiny: Scrutiny,
) {
    let mut run = FrontEndRun { pool, oracle: Oracle::default(), front_ends };
    for operation in operations {
        let (total, before) = (pool.sizes().total, run.slack());
        run.operate(operation);
        if scrutiny == Scrutiny::EveryStep {
            run.agree();
        }
        slack.compare(operation, before, run.slack(), pool.sizes().total == total);
    }
    run.agree();
    run.finish(slack);
}

struct FrontEndRun<'r, 's, P: ManualPool> {
    pool: &'r P,
    oracle: Oracle,
    front_ends: &'r mut [&'s mut dyn FrontEnd],
}

impl<P: ManualPool> FrontEndRun<'_, '_, P> {
    fn kept(&self) -> usize {
        self.front_ends.iter().map(|front_end| front_end.kept()).sum()
    }

    fn slack(&self) -> usize {
        let unreturned: usize = self.front_ends.iter().map(|front_end| front_end.unreturned()).sum();
        self.oracle.slack(self.pool) - self.kept() - unreturned
    }

    fn operate(&mut self, operation: Operation) {
        let count = self.front_ends.len();
        match operation {
            Operation::Get { cache, layout } => self.get(cache % count, layout),
            Operation::Put { cache, object } => {
                if let Some(addr) = self.oracle.live().pick(true, object) {
                    self.put(cache % count, addr);
                }
            }
            Operation::Flush(cache) => {
                self.front_ends[cache % count].flush();
                assert_eq!(self.front_ends[cache % count].kept(), 0, "a front end kept bytes in a flush");
            }
            Operation::Trip(cache) => self.front_ends[cache % count].trip(),
            Operation::Check => self.agree(),
            _ => {}
        }
    }

    fn get(&mut self, front_end: usize, layout: Layout) {
        let front_end = &mut self.front_ends[front_end];
        let size = self.pool.reserve_size(front_end.block(layout));
        match front_end.get(layout) {
            Ok(object) => {
                // SAFETY: the front end handed out the object, which takes `size`
                // bytes.
                let block = unsafe { Block::new(object, size.unwrap()) };
                assert_given(self.pool, block, layout.align().min(self.pool.min_align()));
                let fits =
                    object.addr().get().is_multiple_of(layout.align()) && block.size() >= layout.size();
                assert!(fits, "{block:?} was returned for {layout:?}");
                // SAFETY: the block is the object that the front end just
                // handed out, to this run alone.
                unsafe { self.oracle.live_mut().insert(block, Some(layout), block.size()) };
            }
            Err(Error::Parameter(_)) => {
                assert_eq!(size, None, "{layout:?} is served, and was refused as if not")
            }
            Err(error) => assert_eq!(error, Error::Limit, "{layout:?} was refused with another error"),
        }
    }

    fn put(&mut self, front_end: usize, addr: usize) {
        let object = self.oracle.remove(addr);
        // SAFETY: allocated in a front end of this run with this layout, and taken out of
        // the oracle, so that it is freed once.
        unsafe { self.front_ends[front_end].put(object.block.base(), object.layout.unwrap()) };
    }

    fn agree(&self) {
        self.oracle.live().assert_kept();
        self.oracle.agree(self.pool);
        self.front_ends.iter().for_each(|front_end| front_end.check());
    }

    /// Frees everything and flushes every front end.
    fn finish(mut self, slack: Slack) {
        let left = if let Slack::Within(_) = slack { 0 } else { self.slack() };
        for (which, addr) in self.oracle.addresses(true).into_iter().enumerate() {
            self.put(which % self.front_ends.len(), addr);
        }
        self.front_ends.iter_mut().for_each(|front_end| front_end.flush());
        self.agree();
        assert_eq!((self.slack(), self.kept()), (left, 0), "bytes lost, and bytes kept after a flush");
    }
}
