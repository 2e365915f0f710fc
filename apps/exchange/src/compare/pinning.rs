//! Which processor the replaying thread has to itself.

/// Pins this thread to the last processor that it may use, if it may use two or more. Returns that, and the others.
#[cfg(target_os = "linux")]
pub(super) fn pin() -> Option<(usize, Vec<usize>)> {
    let mut numbers = allowed()?;
    let last = numbers.pop().filter(|_| !numbers.is_empty())?;
    stay_on(core::iter::once(last)).then_some((last, numbers))
}

/// Leaves the pinned thread's processor to it.
#[cfg(target_os = "linux")]
pub(super) fn leave(processors: Option<&(usize, Vec<usize>)>) {
    if let Some((_, others)) = processors {
        // What is refused here was allowed a moment ago, and is a matter of speed only.
        let _ = stay_on(others.iter().copied());
    }
}

/// The processors that this thread may use.
#[cfg(target_os = "linux")]
fn allowed() -> Option<Vec<usize>> {
    // SAFETY: a set of processors is an array of bits, of which all zeros are the empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: `set` is valid for writes of its size; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, size, &raw mut set) } != 0 {
        return None;
    }
    // SAFETY: a number below the size of the set in bits.
    let numbers = (0..8 * size).filter(|&at| unsafe { libc::CPU_ISSET(at, &set) }).collect();
    Some(numbers)
}

/// Has this thread use these processors only.
#[cfg(target_os = "linux")]
fn stay_on(processors: impl Iterator<Item = usize>) -> bool {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of processors is an array of bits, of which all zeros are the empty set.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    for processor in processors.filter(|&processor| processor < 8 * size) {
        // SAFETY: the number is below the size of the set in bits.
        unsafe { libc::CPU_SET(processor, &mut set) };
    }
    // SAFETY: `set` is valid for reads of its size; 0 is the calling thread.
    unsafe { libc::sched_setaffinity(0, size, &raw const set) == 0 }
}

#[cfg(not(target_os = "linux"))]
pub(super) const fn leave(_processors: Option<&(usize, Vec<usize>)>) {}

#[cfg(not(target_os = "linux"))]
pub(super) const fn pin() -> Option<(usize, Vec<usize>)> {
    None
}
