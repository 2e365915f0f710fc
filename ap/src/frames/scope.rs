//! Frames by scope: a frame is pushed, a closure runs in it, and the frame is popped.
//!
//! The closure has to work for every lifetime `'frame`, so what it allocates can
//! be kept nowhere outside it: neither in its result nor in what it captures
//! (design/frames.md `.scope`, `.req.escape`).

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;

use tripoint_core::{Control, FramePool, Result, aver};

use crate::frames::frame::Frame;
use crate::frames::frame_box::FrameBox;
use crate::point::AllocationPoint;
use crate::reservation::{CommitFailed, Reservation};
use crate::slow::objects::One;

/// The inside of a frame: objects are allocated here for as long as it lasts.
///
/// Objects may refer to each other, to those of outer scopes, and to whatever
/// lives as long as `'env`.
#[doc(alias("mark and release", "region"))]
#[derive(Debug)]
pub struct Scope<'frame, 'env: 'frame, 'pool: 'env, P: FramePool, C: Control = ()> {
    point: &'frame mut AllocationPoint<'pool, P, C>,
    env: PhantomData<&'frame mut &'env ()>,
}

/// Pops a frame, also when the scope is left by a panic.
struct PopOnDrop<'a, 'pool, P: FramePool, C: Control> {
    point: &'a mut AllocationPoint<'pool, P, C>,
    frame: Option<Frame>,
}

impl<P: FramePool, C: Control> Drop for PopOnDrop<'_, '_, P, C> {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            // A `Scope` has no `push` and lends no allocation point: frames that were pushed
            // since belong to inner scopes, which popped them when they ended.
            //
            // SAFETY: it is the last frame, by the above. Objects since are borrowed for a lifetime
            // that the closure cannot name outside itself; what it reserved by hand, it promised
            // not to use after the pop (`Reservation::commit`).
            unsafe { self.point.pop(frame) };
        }
    }
}

impl<'pool, P: FramePool, C: Control> AllocationPoint<'pool, P, C> {
    /// Runs `body` in a frame of its own, and then pops it.
    ///
    /// Called on a fresh allocation point again and again, this is an arena that is
    /// reset after each round.
    ///
    /// ```
    /// # use core::mem::MaybeUninit;
    /// # use tripoint_ap::AllocationPoint;
    /// # use tripoint_core::{Error, FramePool, Result};
    /// fn longest_word<P: FramePool>(point: &mut AllocationPoint<'_, P>, text: &str) -> Result<usize> {
    ///     point.scope(|frame| {
    ///         let lengths = frame.slice(16, |_| 0)?;
    ///         for (length, word) in lengths.iter_mut().zip(text.split(' ')) {
    ///             *length = word.len();
    ///         }
    ///         Ok(*lengths.iter().max().unwrap_or(&0))
    ///     })
    /// }
    /// ```
    /// Nothing allocated in a frame outlives it:
    /// ```compile_fail
    /// # use tripoint_ap::AllocationPoint;
    /// # use tripoint_core::FramePool;
    /// fn escape<P: FramePool>(point: &mut AllocationPoint<'_, P>) {
    ///     let escaped = point.scope(|frame| frame.alloc(1).unwrap());
    /// }
    /// ```
    #[inline]
    pub fn scope<'env, R>(
        &mut self,
        body: impl for<'frame> FnOnce(&mut Scope<'frame, 'env, 'pool, P, C>) -> R,
    ) -> R
    where
        'pool: 'env,
    {
        let frame = Some(self.push());
        let pop = PopOnDrop { point: self, frame };
        body(&mut Scope { point: &mut *pop.point, env: PhantomData })
    }
}

impl<'frame, 'pool, P: FramePool, C: Control> Scope<'frame, '_, 'pool, P, C> {
    /// Allocates `value` for as long as the frame lasts. It is never dropped:
    /// if that matters, use [`Scope::boxed`].
    ///
    /// # Errors
    /// Those of [`AllocationPoint::reserve`]; `value` is dropped.
    #[inline(always)]
    pub fn alloc<T>(&mut self, value: T) -> Result<&'frame mut T> {
        let mut object = self.place(value)?;
        // SAFETY: `place` returned an initialised object, to which this is the only
        // pointer, and which stays until the frame is popped.
        Ok(unsafe { object.as_mut() })
    }

    /// Allocates `value` in a box that drops it, at the latest when the closure that
    /// holds the box returns. Its memory stays until the frame is popped.
    ///
    /// # Errors
    /// Those of [`AllocationPoint::reserve`]; `value` is dropped.
    #[inline(always)]
    pub fn boxed<T>(&mut self, value: T) -> Result<FrameBox<'frame, T>> {
        let object = self.place(value)?;
        // SAFETY: `place` returned an initialised object, to which this is the only
        // pointer, and which stays until the frame is popped.
        Ok(unsafe { FrameBox::new(object) })
    }

    /// Allocates `count` objects in a row, each made from its index. They are never
    /// dropped, unless `make` panics.
    ///
    /// # Errors
    /// Those of [`AllocationPoint::batch`].
    #[inline]
    pub fn slice<T>(&mut self, count: usize, mut make: impl FnMut(usize) -> T) -> Result<&'frame mut [T]> {
        let mut batch = self.point.batch(count)?;
        for index in 0..count {
            let pushed = batch.push(make(index));
            aver!(pushed.is_ok(), "a batch of {count} objects is full at {index}");
        }
        // SAFETY: a pool with frames has no readers of its objects. They are lent for
        // `'frame`, which ends before the frame is popped.
        match unsafe { batch.commit_raw() } {
            // SAFETY: the objects are initialised, this is the only pointer to them, and
            // they stay until the frame is popped.
            Ok(mut objects) => Ok(unsafe { objects.as_mut() }),
            Err(CommitFailed) => {
                aver!(false, "a commit of {count} objects failed in a pool with frames");
                Ok(&mut [])
            }
        }
    }

    /// Copies a text into the frame.
    ///
    /// # Errors
    /// Those of [`AllocationPoint::reserve`].
    pub fn text(&mut self, text: &str) -> Result<&'frame mut str> {
        let bytes = text.as_bytes();
        let copy = self.slice(bytes.len(), |index| bytes[index])?;
        // SAFETY: these are the bytes of a text, which are UTF-8.
        Ok(unsafe { core::str::from_utf8_unchecked_mut(copy) })
    }

    /// Reserves memory in the frame, as [`AllocationPoint::reserve`] does.
    ///
    /// # Errors
    /// Those of [`AllocationPoint::reserve`].
    #[inline(always)]
    pub fn reserve(&mut self, layout: Layout) -> Result<Reservation<'_, 'pool, P, C>> {
        self.point.reserve(layout)
    }

    /// Runs `body` in a frame within this one.
    #[inline]
    pub fn scope<'env, R>(
        &mut self,
        body: impl for<'inner> FnOnce(&mut Scope<'inner, 'env, 'pool, P, C>) -> R,
    ) -> R
    where
        'pool: 'env,
    {
        self.point.scope(body)
    }

    /// The control, which is notified of trips and stops.
    #[must_use]
    pub fn control(&mut self) -> &mut C {
        self.point.control()
    }

    /// Moves `value` into a new object. A `T` of size zero takes no memory.
    #[inline(always)]
    fn place<T>(&mut self, value: T) -> Result<NonNull<T>> {
        if size_of::<T>() == 0 {
            let object = NonNull::dangling();
            // SAFETY: a dangling aligned pointer is valid for a write of no bytes.
            unsafe { object.write(value) };
            return Ok(object);
        }
        let reservation = self.point.reserve_for::<One<T>>(Layout::new::<T>())?;
        let object = reservation.as_ptr().cast::<T>();
        // SAFETY: the reserved memory is ours, and has the size and alignment of `T`.
        unsafe { object.write(value) };
        // SAFETY: the object was just initialised. It is lent for `'frame`, which ends
        // before the frame is popped.
        let stands = unsafe { reservation.commit() };
        aver!(stands.is_ok(), "a commit at {object:p} failed in a pool with frames");
        Ok(object)
    }
}
