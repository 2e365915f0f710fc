//! Threads that extend a pool at once (design/core.md `.lock.arrival`).
//!
//! The pools are not run here, because their free memory is too much for a model; who extends them is a file of its own.
//!
//! Bound: none with two threads.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

#[path = "../../pools/src/growth.rs"]
mod growth;

use std::sync::Arc;

use growth::Growth;
use tests_loom::{model_unbounded, thread};
use tripoint_core::{Error, Lock, Result, Shared};

/// Units that an extent has: what the thread that got it takes, and as many for others.
const EXTENT: usize = 2;

/// A pool of units, and an arena with room for some extents.
struct Pool {
    growth: Growth<Shared>,
    extents: Lock<usize>,
    free: Lock<usize>,
}

impl Pool {
    fn new(extents: usize) -> Arc<Self> {
        Arc::new(Self { growth: Growth::new(), extents: Lock::new(extents), free: Lock::new(0) })
    }

    /// Takes a unit that is free.
    fn look(&self) -> Result<Option<()>> {
        let mut free = self.free.lock();
        let left = free.checked_sub(1);
        *free = left.unwrap_or(0);
        Ok(left.map(|_| ()))
    }

    fn extend(&self) -> Result<()> {
        let mut extents = self.extents.lock();
        *extents = extents.checked_sub(1).ok_or(Error::Limit)?;
        Ok(())
    }

    /// As pools do: `refused` is what becomes of a request that the arena refuses.
    fn take(&self, refused: impl FnOnce() -> Result<Option<()>>) -> Result<()> {
        let asking = self.growth.begin()?;
        if self.look()?.is_some() {
            return Ok(());
        }
        match self.extend() {
            Ok(()) => {
                let _arriving = self.growth.depart(asking);
                *self.free.lock() += EXTENT - 1;
                Ok(())
            }
            Err(error) => refused()?.ok_or(error),
        }
    }

    fn take_waiting(&self) -> Result<()> {
        self.take(|| self.growth.look_until_arrived(|| self.look()))
    }
}

/// Two threads that need a unit each, of an arena with room for one extent. Returns whether both got theirs.
fn two_take(pool: &Arc<Pool>, take: fn(&Pool) -> Result<()>) -> bool {
    let other = {
        let pool = Arc::clone(pool);
        thread::spawn(move || take(&pool).is_ok())
    };
    let own = take(pool).is_ok();
    own & other.join().unwrap()
}

#[test]
fn who_is_refused_finds_what_another_got() {
    model_unbounded(|| {
        assert!(two_take(&Pool::new(1), Pool::take_waiting), "memory that was there was refused")
    });
}

/// The model would find a thread that does not wait for what is on its way.
#[test]
#[should_panic(expected = "memory that was there was refused")]
fn without_waiting_it_does_not() {
    model_unbounded(|| {
        let look_once = |pool: &Pool| pool.take(|| pool.look());
        assert!(two_take(&Pool::new(1), look_once), "memory that was there was refused");
    });
}

/// No more than was there: the others are refused, and end.
#[test]
fn who_finds_nothing_is_refused_in_the_end() {
    model_unbounded(|| {
        let pool = Pool::new(0);
        assert!(!two_take(&pool, Pool::take_waiting), "there was no memory");
        assert_eq!(pool.take_waiting(), Err(Error::Limit));
    });
}
