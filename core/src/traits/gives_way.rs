//! Pool classes with a collector.

use crate::traits::keeps_in_buffer::KeepsInBuffer;
use crate::traits::own_buffer::OwnBuffer;

/// Whether the allocation points of a class give way to a collector, and how. A class without a collector implements it
/// without items.
pub trait GivesWay: KeepsInBuffer {
    /// Whether allocation points of this class give way. If so, each asks [`GivesWay::wants_stop`] in the slow path of
    /// reserve, and answers by [`GivesWay::give_way`]. Other classes pay no instruction for it.
    // (design/gc.md `.stop.reserve`)
    const GIVES_WAY: bool = false;

    /// Whether a collector waits for the threads that allocate in this pool. Once a thread has
    /// observed a trip that was requested after a stop began, this is true until that stop ends.
    fn wants_stop(&self) -> bool {
        false
    }

    /// Waits until no stop is wanted any more. The owner is in the slow path of reserve: it has no object in this buffer
    /// that is reserved and not committed.
    ///
    /// # Safety
    /// - The buffer is reset.
    unsafe fn give_way(own: OwnBuffer<'_, Self, Self::Buffer>) {
        let _ = own;
    }
}
