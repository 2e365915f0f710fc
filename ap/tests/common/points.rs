//! Allocation points with what tests ask of them, in short forms.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;

use tripoint_ap::{AllocationPoint, BufferMode, CommitFailed, flip_buffers};
use tripoint_core::{BufferKind, Control, Error, PoolClass, SymmetricFence};

use super::{BumpPool, Draws, FlipPool, Form, TestControl, TestPool, with_arena};

pub(crate) const ARENA: usize = 1 << 20;
pub(crate) const FILL: usize = 4096;
pub(crate) const OBJECT: Layout = Layout::new::<[u64; 4]>();

pub(crate) fn with_bump<R>(test: impl FnOnce(&BumpPool<'_>) -> R) -> R {
    with_arena(ARENA, |arena| test(&BumpPool::create(arena, FILL)))
}

pub(crate) fn with_flip<R>(test: impl FnOnce(&FlipPool<'_>) -> R) -> R {
    with_arena(ARENA, |arena| test(&FlipPool::create(arena, FILL, SymmetricFence)))
}

/// An allocation point whose control remembers its notices.
pub(crate) fn listening<'p, 'a, F: Form>(
    pool: &'p TestPool<'a, F>,
    draws: Draws,
) -> AllocationPoint<'p, TestPool<'a, F>, TestControl> {
    AllocationPoint::create_with(pool, BufferKind::Mutator, TestControl::new(draws)).unwrap()
}

/// Reserves and commits a whole object of zeros. Returns its address, or that it failed.
pub(crate) fn allocate<P: PoolClass, C: Control>(
    point: &mut AllocationPoint<'_, P, C>,
    layout: Layout,
) -> Result<NonNull<u8>, CommitFailed> {
    allocate_through(point, layout, || {})
}

/// The same, and something happens between reserve and commit.
pub(crate) fn allocate_through<P: PoolClass, C: Control>(
    point: &mut AllocationPoint<'_, P, C>,
    layout: Layout,
    between: impl FnOnce(),
) -> Result<NonNull<u8>, CommitFailed> {
    let Ok(reservation) = point.reserve(layout) else { panic!("refused") };
    // SAFETY: the reservation is valid for writes of its size.
    unsafe { reservation.as_ptr().write_bytes(0, reservation.size()) };
    between();
    // SAFETY: the object was just written whole.
    unsafe { reservation.commit() }
}

pub(crate) fn refusal<P: PoolClass, C: Control>(
    point: &mut AllocationPoint<'_, P, C>,
    layout: Layout,
) -> Error {
    match point.reserve(layout) {
        Ok(_) => panic!("not refused"),
        Err(error) => error,
    }
}

pub(crate) fn flip<F: Form>(pool: &TestPool<'_, F>) {
    flip_buffers(pool, |_, _| {});
}

pub(crate) fn mode<P: PoolClass, C: Control>(point: &AllocationPoint<'_, P, C>) -> BufferMode {
    point.buffer().snapshot().unwrap().mode
}

pub(crate) const RESET: BufferMode = BufferMode::empty();
pub(crate) const READY: BufferMode = BufferMode::ATTACHED;
pub(crate) const TRAPPED: BufferMode = BufferMode::ATTACHED.union(BufferMode::TRAPPED);
pub(crate) const FLIPPED: BufferMode = TRAPPED.union(BufferMode::FLIPPED);

/// Counts its drops. Eight bytes on every target.
#[repr(align(8))]
pub(crate) struct Counted<'c>(pub(crate) &'c Cell<u32>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}
