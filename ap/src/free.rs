//! Objects freed through an allocation point: the point goes on to allocate in their memory (design/ap.md `.free`).

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use tripoint_core::internal::Defer;
use tripoint_core::{Control, ManualPool, PoolBox};

use crate::point::AllocationPoint;

/// An object that is freed through a point when this is dropped.
struct FreedAtEnd<'a, 'pool, P: ManualPool, C: Control> {
    point: &'a mut AllocationPoint<'pool, P, C>,
    object: NonNull<u8>,
    layout: Layout,
}

impl<P: ManualPool, C: Control> Drop for FreedAtEnd<'_, '_, P, C> {
    fn drop(&mut self) {
        let Self { point, object, layout } = self;
        // SAFETY: only `free_reported` makes this value, once, of an object that its caller gives up.
        unsafe { P::free_in_buffer(point.own(), *object, *layout) };
    }
}

impl<P: ManualPool, C: Control> AllocationPoint<'_, P, C> {
    /// Drops an object, and keeps its memory for the next objects of this point, without a lock. `Mfs` keeps up to a fill,
    /// `Mvff` and `Tlsf` up to 256 small objects; what is more goes to the pool. Other classes free as usual.
    ///
    /// Any box of the pool may be freed here, whichever point or thread made it. A box of another pool is dropped as usual.
    /// Boxes of a cache are of another type: drop them.
    ///
    /// What is kept counts as in use for the pool until it is allocated again, or until the point is
    /// [emptied](AllocationPoint::empty) or dropped.
    ///
    /// ```
    /// use tripoint_ap::AllocationPoint;
    /// use tripoint_core::{ManualPool, Result};
    ///
    /// fn replace<P: ManualPool>(pool: &P) -> Result<u64> {
    ///     let mut point = AllocationPoint::create(pool)?;
    ///     let mut order = point.boxed(10_250_u64)?;
    ///     for price in 10_251..10_300 {
    ///         point.free_box(order);
    ///         order = point.boxed(price)?;
    ///     }
    ///     Ok(*order)
    /// }
    /// ```
    #[inline]
    pub fn free_box<T: ?Sized>(&mut self, object: PoolBox<'_, T, P>) {
        if !ptr::eq(PoolBox::store(&object), self.pool()) {
            return;
        }
        let layout = Layout::for_value(&*object);
        let object = PoolBox::into_raw(object);
        let _freed = Defer::new(|| {
            if layout.size() != 0 {
                // SAFETY: the box owned the object, whose memory is of this pool and has its layout. This runs once, after
                // the object was dropped below or while that unwinds; nothing uses it then.
                unsafe { self.free(object.cast(), layout) };
            }
        });
        // SAFETY: the box owned the object, which is initialised, and is dropped only here.
        unsafe { object.drop_in_place() };
    }

    /// Memory that was freed here, for an object of this layout, unless something else is to be done first: a trip waits, or
    /// the control has set a stop (design/ap.md `.free`).
    #[inline(always)]
    pub(crate) fn alloc_freed(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        if !P::KEEPS_FREED || self.slow().is_due() {
            return None;
        }
        P::alloc_in_buffer(self.own(), layout)
    }

    /// Frees the memory of an object, and keeps it as [`AllocationPoint::free_box`] does. The object is not dropped.
    ///
    /// # Safety
    /// - Those of [`Store::free`](tripoint_core::Store::free) of the pool.
    #[inline]
    pub unsafe fn free(&mut self, object: NonNull<u8>, layout: Layout) {
        if self.slow().stops.observes_calls() {
            // SAFETY: the caller gives up an object of the pool, of this layout, once.
            unsafe { self.free_reported(object, layout) };
        } else {
            // SAFETY: the caller gives up an object of the pool, of this layout, once.
            unsafe { P::free_in_buffer(self.own(), object, layout) };
        }
    }

    /// Frees an object, and notifies the control just before. If that unwinds, the object is freed nevertheless.
    ///
    /// # Safety
    /// - Those of [`AllocationPoint::free`].
    #[cold]
    unsafe fn free_reported(&mut self, object: NonNull<u8>, layout: Layout) {
        let call = self.begin_call();
        let freed = FreedAtEnd { point: &mut *call.0, object, layout };
        freed.point.slow().report_free(object, layout);
    }
}
