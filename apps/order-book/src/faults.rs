//! Page faults and context switches of one thread, from the kernel's own count.

/// Page faults since the thread began, and how often it was not done when another thread got its processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageFaults {
    /// Served without reading a device.
    pub minor: u64,
    /// Served from a device.
    pub major: u64,
    pub involuntary_switches: u64,
}

impl PageFaults {
    /// What came since `earlier`.
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            minor: self.minor - earlier.minor,
            major: self.major - earlier.major,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
        }
    }
}

/// The page faults of this thread so far; `None` where the kernel does not say.
#[cfg(target_os = "linux")]
pub fn faults_of_this_thread() -> Option<PageFaults> {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is valid for the kernel to write a `rusage` to.
    let status = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if status != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so the kernel wrote all of it.
    let usage = unsafe { usage.assume_init() };
    Some(PageFaults {
        minor: u64::try_from(usage.ru_minflt).ok()?,
        major: u64::try_from(usage.ru_majflt).ok()?,
        involuntary_switches: u64::try_from(usage.ru_nivcsw).ok()?,
    })
}

/// The page faults of this thread so far; `None` where the kernel does not say.
#[cfg(not(target_os = "linux"))]
pub fn faults_of_this_thread() -> Option<PageFaults> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn sees_a_deliberate_first_touch() {
        // More than any allocator keeps ready, so the pages are fresh.
        let mut fresh = vec![0_u8; 64 << 20];
        let before = faults_of_this_thread().unwrap();
        core::hint::black_box(&mut fresh).iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        assert!(faults_of_this_thread().unwrap().since(before).minor > 0);
    }
}
