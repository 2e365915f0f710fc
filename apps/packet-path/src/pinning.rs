//! Which processor the hot thread has to itself.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread.
const HERE: Pid = Pid::from_raw(0);

/// The processor of the hot thread, which the other threads leave to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pinning(Option<usize>);

impl Pinning {
    /// Leaves the last processor that this process may use to the hot thread: the threads that this thread starts have the others.
    /// If there is only one, or the system does not allow it, no thread is pinned.
    pub(crate) fn leave_one() -> Self {
        Self(leave_one())
    }

    /// Pins the calling thread.
    pub(crate) fn pin(self) {
        if let Some(processor) = self.0 {
            let mut one = CpuSet::new();
            // What is refused here was allowed a moment ago, and is a matter of speed only.
            let _ = one.set(processor).and_then(|()| sched_setaffinity(HERE, &one));
        }
    }

    /// The processor of the hot thread.
    pub(crate) const fn processor(self) -> Option<usize> {
        self.0
    }
}

fn leave_one() -> Option<usize> {
    let mut allowed = sched_getaffinity(HERE).ok()?;
    let is_allowed = |&processor: &usize| allowed.is_set(processor).unwrap_or(false);
    let last = (0..CpuSet::count()).rfind(is_allowed)?;
    let others = (0..CpuSet::count()).filter(is_allowed).count() - 1;
    allowed.unset(last).ok()?;
    (others > 0).then(|| sched_setaffinity(HERE, &allowed).ok()).flatten()?;
    Some(last)
}
