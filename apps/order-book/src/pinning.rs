//! Which processor the hot thread has to itself.

/// The processor of the hot thread, which the other threads leave to it.
#[derive(Clone, Copy, Debug)]
pub struct Pinning(Option<usize>);

impl Pinning {
    /// No thread is pinned.
    pub const NONE: Self = Self(None);

    /// Leaves the last processor that this process may use to the hot thread: the threads that this thread starts have
    /// the others. If there is only one, or the system does not allow it, no thread is pinned.
    pub fn leave_one() -> Self {
        Self(system::leave_one())
    }

    /// Pins the calling thread.
    pub fn pin(self) {
        if let Some(processor) = self.0 {
            system::pin(processor);
        }
    }

    /// The processor of the hot thread.
    pub const fn processor(self) -> Option<usize> {
        self.0
    }
}

#[cfg(target_os = "linux")]
mod system {
    use core::mem::MaybeUninit;

    /// Processors that a set can have.
    const PROCESSORS: usize = libc::CPU_SETSIZE as usize;

    pub(super) fn leave_one() -> Option<usize> {
        let mut allowed = allowed()?;
        // SAFETY: the number is below the size of the set.
        let is_allowed = |&processor: &usize| unsafe { libc::CPU_ISSET(processor, &allowed) };
        let last = (0..PROCESSORS).rfind(is_allowed)?;
        let others = (0..PROCESSORS).filter(is_allowed).count() - 1;
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_CLR(last, &mut allowed) };
        (others > 0 && set(&allowed)).then_some(last)
    }

    pub(super) fn pin(processor: usize) {
        // SAFETY: all zeros are the empty set.
        let mut one: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_SET(processor, &mut one) };
        // What is refused here was allowed a moment ago, and is a matter of speed only.
        set(&one);
    }

    fn allowed() -> Option<libc::cpu_set_t> {
        // SAFETY: all zeros are the empty set.
        let mut allowed: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the set is valid to write, of the size that is named; 0 is the calling thread.
        let status = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut allowed) };
        (status == 0).then_some(allowed)
    }

    fn set(processors: &libc::cpu_set_t) -> bool {
        // SAFETY: the set is valid to read, of the size that is named; 0 is the calling thread.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), processors) == 0 }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) const fn leave_one() -> Option<usize> {
        None
    }

    pub(super) const fn pin(_processor: usize) {}
}
