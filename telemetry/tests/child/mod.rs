//! Work that is done in a forked child.
#![cfg(all(unix, not(miri)))]

/// How many bytes are allocated before each of the next samples.
pub(crate) type Distances = [usize; 16];

/// Runs `work` in a forked child, and returns what it returned there, or how the child ended.
/// `work` takes no lock but those of C's allocator, because other threads of the parent may have
/// done so at the fork.
pub(crate) fn in_child(work: impl FnOnce() -> Distances) -> Result<Distances, i32> {
    let mut ends = [0; 2];
    let mut distances: Distances = [0; 16];
    let size = size_of_val(&distances);
    // SAFETY: the array has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the caller sees to it that the child uses no lock and no memory that another thread
    // may have left in between; C's library lets it allocate.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a fork failed");
    if child == 0 {
        let distances = work();
        // SAFETY: the pipe is open, and holds less than it has room for; the array has `size` bytes.
        let written = unsafe { libc::write(ends[1], distances.as_ptr().cast(), size) };
        // SAFETY: this ends the child without running what the parent has left to do.
        unsafe { libc::_exit(i32::from(written != size as isize)) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's own, and is waited for once.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    if status == 0 {
        // SAFETY: the array has room for `size` bytes.
        let read = unsafe { libc::read(ends[0], distances.as_mut_ptr().cast(), size) };
        assert_eq!(read, size as isize);
    }
    for end in ends {
        // SAFETY: this end is open, and is not used any more.
        assert_eq!(unsafe { libc::close(end) }, 0);
    }
    if status == 0 { Ok(distances) } else { Err(status) }
}
