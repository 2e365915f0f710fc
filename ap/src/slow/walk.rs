//! Visiting and flipping every buffer of a pool.

use core::ptr::NonNull;

use tripoint_core::internal::registry_of;
use tripoint_core::{AddrRange, Arena, Event, PoolClass};

use crate::slow::descriptor::PoolBuffer;

/// Flips every buffer of a pool that has an owner. Calls `visit` for each, after its
/// flip, with the memory of the objects that the flip fixed, as
/// [`Buffer::flip`](crate::Buffer::flip) returns it.
///
/// As with [`Buffer::flip`](crate::Buffer::flip), a handler that may interrupt this must
/// not flip the same pool.
///
/// Does nothing for pools of manual classes: their buffers have no rank, and their
/// commits have no test ([design/ap.md `.commit.manual`](crate::design::ap)). This may miss
/// a buffer that is created, or gets a rank, while it runs. So a class that flips publishes
/// its new phase first, and checks the phase in its fills.
pub fn flip_buffers<P: PoolClass>(
    pool: &P,
    mut visit: impl FnMut(&PoolBuffer<P::Buffer>, Option<AddrRange>),
) {
    if !P::FLIPPABLE {
        return;
    }
    for_each_buffer(pool, |buffer| {
        // SAFETY: this is the pool's own pair, with which its allocation points commit.
        let objects = unsafe { buffer.flip(pool.barrier()) };
        visit(buffer, objects);
        if let Some(objects) = objects {
            let header = pool.header();
            header.arena().counts().flips.add(1);
            header.arena().event(Event::Flip { pool: header.id(), buffer: buffer.id(), objects });
        }
    });
}

/// Passes every buffer of a pool that has an owner to `visit`. Takes no lock. A buffer
/// that is created or dropped meanwhile may be visited or not.
pub fn for_each_buffer<P: PoolClass>(pool: &P, mut visit: impl FnMut(&PoolBuffer<P::Buffer>)) {
    for node in registry_of(pool.header()).iter() {
        // SAFETY: the nodes of a pool's registry are valid while the pool is borrowed.
        if unsafe { node.as_ref() }.is_claimed() {
            let buffer: NonNull<PoolBuffer<P::Buffer>> = node.cast();
            // Only descriptors of the pool's buffer class are in its registry. The first field
            // of each is the `PoolBuffer`, whose first field is the node.
            // SAFETY: so it points to a `PoolBuffer`, which stays valid while the pool is
            // borrowed, and is only ever borrowed shared.
            visit(unsafe { buffer.as_ref() });
        }
    }
}
