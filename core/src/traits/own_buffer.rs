//! The token of a buffer's owner.

use core::fmt;
use core::marker::PhantomData;

/// A buffer of a pool `P`, in the hands of its owner: functions that only the owner may call take this.
///
/// It consists of the pool and of what that keeps in the buffer, a `K`. An allocation point makes one for each call
/// that takes one, and a class that wraps another makes one of the pool inside. It stays in the thread that made it.
pub struct OwnBuffer<'a, P, K> {
    pool: &'a P,
    kept: &'a K,
    of_this_thread: PhantomData<*mut ()>,
}

impl<P, K> Clone for OwnBuffer<'_, P, K> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, K> Copy for OwnBuffer<'_, P, K> {}

impl<'a, P, K> OwnBuffer<'a, P, K> {
    /// Says that the caller is the owner of a buffer.
    ///
    /// # Safety
    /// - `kept` was made by [`new_buffer`](crate::KeepsInBuffer::new_buffer) of `pool`, of a pool with the same header, or
    ///   of one that wraps it and passes on what it makes; for the buffer's owner or an earlier one, since when it was
    ///   [renewed](crate::BufferClass::renew).
    /// - As long as this value or a copy of it is used, the caller is the buffer's owner.
    #[inline(always)]
    #[must_use]
    pub const unsafe fn new(pool: &'a P, kept: &'a K) -> Self {
        Self { pool, kept, of_this_thread: PhantomData }
    }

    /// The pool that the buffer is of.
    #[inline(always)]
    #[must_use]
    pub const fn pool(self) -> &'a P {
        self.pool
    }

    /// What the pool keeps in the buffer.
    #[inline(always)]
    #[must_use]
    pub const fn kept(self) -> &'a K {
        self.kept
    }
}

impl<P, K: fmt::Debug> fmt::Debug for OwnBuffer<'_, P, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnBuffer").field(self.kept).finish()
    }
}
