//! Where a thread is, as it answers its supervisor (design/contract.md `.call`).

use tripoint_core::internal::{AtomicBool, AtomicUsize, Ordering};
use tripoint_stack::Site;

use crate::words::atomics::{const_fn, zeros};

/// The site of a thread's last answer, and whether a question is on its way.
#[derive(Debug)]
pub(crate) struct CallSite {
    frames: [AtomicUsize; Site::FRAMES],
    /// The number of answers.
    kept: AtomicUsize,
    /// Set while the supervisor's question is on its way to the thread.
    asked: AtomicBool,
}

impl CallSite {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { frames: zeros(), kept: AtomicUsize::new(0), asked: AtomicBool::new(false) }
        }
    }

    /// Forgets the site and the question. The number of answers goes on.
    pub(crate) fn reset(&self) {
        self.set(&Site::UNKNOWN);
        self.asked.store(false, Ordering::Relaxed);
    }

    fn set(&self, site: &Site) {
        for (to, &frame) in self.frames.iter().zip(site.words()) {
            to.store(frame, Ordering::Relaxed);
        }
    }

    /// Notes that the supervisor is about to ask the thread where it is.
    #[cfg(tripoint_kernel)]
    pub(crate) fn expect_question(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether a question was on its way; it no longer is.
    #[cfg(tripoint_kernel)]
    pub(crate) fn take_question(&self) -> bool {
        self.asked.swap(false, Ordering::AcqRel)
    }

    /// Keeps where the thread is. Called in its signal handler.
    #[cfg(tripoint_kernel)]
    pub(crate) fn keep(&self, site: &Site) {
        self.set(site);
        self.kept.fetch_add(1, Ordering::Release);
    }

    /// How many sites were kept, and the last of them.
    pub(crate) fn last(&self) -> (usize, Site) {
        let kept = self.kept.load(Ordering::Acquire);
        (kept, Site::new(self.frames.iter().map(|frame| frame.load(Ordering::Relaxed))))
    }
}
