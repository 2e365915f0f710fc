//! Walks over all objects of a heap.

use tripoint_core::{Addr, Arena, BarrierPair, PoolId};

use crate::collect::flip::know_objects;
use crate::heaps::member::Member;
use crate::heaps::own::Own;
use crate::heaps::stopped::Stopped;
use crate::segments::object::Object;

/// How many objects are looked up at a time, with the heap locked: then they are shown, with the heap unlocked.
const AT_ONCE: usize = 32;

/// Where a walk is in the pool that it is at.
#[derive(Debug, Default)]
pub(crate) struct Place {
    pool: Option<PoolId>,
    from: Addr,
}

impl Place {
    /// Where to go on in `pool`, which the walk is at: at its beginning, if the walk was at another before.
    pub(crate) fn within(&mut self, pool: PoolId) -> &mut Addr {
        if self.pool.replace(pool) != Some(pool) {
            self.from = Addr::ZERO;
        }
        &mut self.from
    }
}

impl<A: Arena, B: BarrierPair> Stopped<'_, '_, A, B> {
    /// Passes all objects in the automatic pools of the heap to `visit`: those of a pool in order of addresses. They
    /// are what mutators committed and no collection has freed: after [`Stopped::collect`], what is live.
    ///
    /// `visit` may create and drop pools and roots. Of a pool that it drops, at most 31 more objects are shown, whose memory is
    /// gone; of one that it creates, none. As after a collection, the commit of a reservation that is held over the
    /// stop fails, if its object may have references.
    pub fn walk_objects(&mut self, mut visit: impl FnMut(Object)) {
        self.show_objects(|_, _| 1, |object, _| visit(object));
    }

    /// Passes all objects that `count` counts to `visit`, with that count. The heap is locked for `count`, and not for
    /// `visit`. There is one such walk at a time: the caller has borrowed the stop exclusively.
    pub(crate) fn show_objects(
        &self,
        mut count: impl FnMut(&dyn Member, Object) -> usize,
        mut visit: impl FnMut(Object, usize),
    ) {
        let heap = self.heap();
        let flipped = {
            let members = heap.members().lock();
            members.begin_walk();
            know_objects(self.at_stop(), heap, &members)
        };
        let (mut place, mut is_over) = (Place::default(), false);
        while !is_over {
            let (mut found, mut used) = ([None; AT_ONCE], 0);
            {
                let members = heap.members().lock();
                while used < AT_ONCE
                    && let Some(link) = members.at()
                {
                    let from = place.within(link.id());
                    let first = *from;
                    let mut look = |object: Object| {
                        *from = object.block.range().limit();
                        let count = count(link.member(), object);
                        if count > 0 {
                            found[used] = Some((object, count));
                            used += 1;
                        }
                        used < AT_ONCE
                    };
                    // SAFETY: no collection has begun: the stop is borrowed exclusively.
                    unsafe { link.member().for_each_object_from(flipped, first, &mut look) };
                    if used < AT_ONCE {
                        members.go_on();
                    }
                }
                is_over = members.at().is_none();
            }
            found.into_iter().flatten().for_each(|(object, count)| visit(object, count));
        }
    }

    /// The object that has the byte at `addr`; `None` if `addr` is in no object.
    #[must_use]
    pub fn object_at(&self, addr: *const u8) -> Option<Object> {
        let members = self.heap().members().lock();
        let flipped = know_objects(self.at_stop(), self.heap(), &members);
        Own::new(self.heap().arena(), &members).object_at(flipped, Addr::of(addr))
    }
}
