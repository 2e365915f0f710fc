//! Another thread, which allocates and frees in the same home.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;

use super::pinning;
use crate::book::Order;
use crate::places::stored::Pointer;
use crate::random::Random;

/// What another thread does in the same home, until the flag is raised.
pub(super) type Neighbour<'a> = Box<dyn Fn(&AtomicBool) + Sync + 'a>;

/// Replays a chunk while a neighbour is at work on another processor.
pub(super) fn beside(
    processors: Option<&(usize, Vec<usize>)>,
    neighbour: &Neighbour<'_>,
    replay: impl FnOnce() -> Result<Duration, String>,
) -> Result<Duration, String> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pinning::leave(processors);
            neighbour(&is_over);
        });
        let time = replay();
        is_over.store(true, Ordering::Relaxed);
        time
    })
}

/// A neighbour in another home: what one thread owns cannot be shared.
pub(super) fn elsewhere<'a>() -> Neighbour<'a> {
    Box::new(on_heap_too(|| std::alloc::System))
}

/// A neighbour that uses a general allocator.
pub(super) fn on_heap_too<A: GlobalAlloc>(allocator: fn() -> A) -> impl Fn(&AtomicBool) + Sync {
    move |is_over| churn(is_over, || OneOrder::new(allocator()))
}

/// Objects that a neighbour has at a time, and its way to get and free them: memory for an order.
pub(super) fn churn<M>(is_over: &AtomicBool, mut alloc: impl FnMut() -> M) {
    const HELD: usize = 512;
    let mut held: Vec<_> = (0..HELD).map(|_| None).collect();
    let mut random = Random::new(13);
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..HELD {
            held[random.below(HELD as u64) as usize] = Some(alloc());
        }
    }
}

/// Memory for an order.
struct OneOrder<A: GlobalAlloc>(A, *mut u8);

impl<A: GlobalAlloc> OneOrder<A> {
    const LAYOUT: Layout = Layout::new::<Order<Pointer>>();

    fn new(allocator: A) -> Self {
        // SAFETY: an order has a size.
        let memory = unsafe { allocator.alloc(Self::LAYOUT) };
        Self(allocator, memory)
    }
}

impl<A: GlobalAlloc> Drop for OneOrder<A> {
    fn drop(&mut self) {
        if !self.1.is_null() {
            // SAFETY: this allocator allocated it with this layout; it is freed once.
            unsafe { self.0.dealloc(self.1, Self::LAYOUT) };
        }
    }
}
