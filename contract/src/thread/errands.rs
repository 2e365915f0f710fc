//! What the coordinator asks of a guard, and the answers.

use tripoint_core::internal::AtomicUsize;

use crate::thread::standing::Mode;
use crate::words::atomics::const_fn;

/// What the coordinator asks of a guard, and the answers.
#[derive(Debug)]
pub(crate) struct Errands {
    /// The [`Mode`] that is wanted in Init and Warmup.
    pub(crate) mode: AtomicUsize,
    pub(crate) poll_wanted: AtomicUsize,
    pub(crate) poll_done: AtomicUsize,
    pub(crate) turn_wanted: AtomicUsize,
    pub(crate) turn_done: AtomicUsize,
    /// Classes of the events of the last turn asked for.
    pub(crate) turn_classes: AtomicUsize,
}

impl Errands {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self {
                mode: AtomicUsize::new(Mode::Counting as usize),
                poll_wanted: AtomicUsize::new(0),
                poll_done: AtomicUsize::new(0),
                turn_wanted: AtomicUsize::new(0),
                turn_done: AtomicUsize::new(0),
                turn_classes: AtomicUsize::new(0),
            }
        }
    }
}
