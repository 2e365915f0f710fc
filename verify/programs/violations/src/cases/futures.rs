//! Asynchronous code, polled on the steady thread.

use core::future::{Future, poll_fn};
use core::hint::black_box;
use core::pin::Pin;
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::sync::Arc;
use std::task::Wake;

use crate::case::{Act, Case, Facts, Group, LIBRARY, RUST_HEAP, discard, once};

const HEAP: Facts = RUST_HEAP | LIBRARY;

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

/// A waker that each clone allocates anew, as wakers do that carry a count or a queue of their own.
static ALLOCATES: RawWakerVTable = RawWakerVTable::new(
    |_| RawWaker::new(Box::into_raw(Box::new(7_u64)).cast(), &ALLOCATES),
    |_| (),
    |_| (),
    |_| (),
);

/// Polls a future once.
fn polled(future: impl Future<Output = u64> + 'static, waker: Waker) -> Act {
    let mut future: Pin<Box<dyn Future<Output = u64>>> = Box::pin(future);
    once(move || {
        let _ = black_box(future.as_mut().poll(&mut Context::from_waker(&waker)));
        core::mem::forget(waker);
        core::mem::forget(future);
    })
}

async fn number() -> u64 {
    black_box(7)
}

pub(crate) const GROUP: Group = Group {
    name: "asynchronous code",
    cases: &[
        Case::new("a poll makes a box", HEAP, || {
            polled(async { *black_box(Box::new(number().await)) }, Waker::noop().clone())
        }),
        Case::new("a future is boxed in each turn", HEAP, || {
            once(|| discard(Box::pin(number()) as Pin<Box<dyn Future<Output = u64>>>))
        }),
        Case::new("a waker is cloned that allocates", HEAP, || {
            // SAFETY: the functions of the table need no data, and any thread may call them.
            let waker = unsafe { Waker::from_raw(RawWaker::new(core::ptr::null(), &ALLOCATES)) };
            let keeps = poll_fn(|context| {
                core::mem::forget(context.waker().clone());
                Poll::<u64>::Pending
            });
            polled(keeps, waker)
        }),
        Case::new("a waker is made of an Arc", HEAP, || once(|| discard(Waker::from(Arc::new(Nothing))))),
    ],
};
