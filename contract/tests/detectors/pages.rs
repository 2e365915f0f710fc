//! Pages to fault on.

use tripoint_contract::Record;

use crate::PAGE;

/// Fresh pages of the test's own.
pub(crate) struct Pages {
    pub(crate) base: *mut u8,
    count: usize,
}

impl Pages {
    pub(crate) fn map(count: usize) -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), count * PAGE, access, flags, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        Self { base: base.cast(), count }
    }

    #[inline(never)]
    pub(crate) fn culprit_touch(&self) {
        for page in 0..self.count {
            // SAFETY: the first byte of a page of the mapping, ours alone.
            unsafe { self.base.add(page * PAGE).write_volatile(1) };
        }
    }

    pub(crate) fn contains(&self, fault: &Record) -> bool {
        (self.base.addr()..self.base.addr() + self.count * PAGE).contains(&fault.address)
    }

    pub(crate) fn advise(&self, advice: i32) {
        // SAFETY: the whole mapping, ours alone.
        assert_eq!(unsafe { libc::madvise(self.base.cast(), self.count * PAGE, advice) }, 0);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, not used any more.
        unsafe { libc::munmap(self.base.cast(), self.count * PAGE) };
    }
}
