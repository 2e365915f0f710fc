//! What the first program of a machine has to do itself, and what it asks of its kernel.

use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::ptr;
use std::fs;

/// Mounts what the kernel says about itself, and a file system of huge pages.
pub(crate) fn mount_all() {
    for (kind, place, options) in [
        (c"proc", c"/proc", c""),
        (c"sysfs", c"/sys", c""),
        (c"hugetlbfs", c"/huge", c"pagesize=2M,size=16M"),
    ] {
        let _ = fs::create_dir(place.to_str().expect("plain names"));
        // SAFETY: all texts end with a zero byte; the options are one too.
        let mounted =
            unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) };
        assert_eq!(mounted, 0, "{kind:?} is mounted");
    }
}

/// Ends the machine.
pub(crate) fn switch_off() -> ! {
    // SAFETY: nothing is left to do or to keep.
    unsafe {
        libc::sync();
        libc::reboot(libc::LINUX_REBOOT_CMD_POWER_OFF);
        libc::_exit(0)
    }
}

/// Lets this thread run only on a processor: processor `n` belongs to node `n`.
pub(crate) fn run_on(processor: usize) {
    // SAFETY: all zeros are an empty set.
    let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the set has many more bits than the machine has processors.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the pointer is to a whole set, of this size; zero is this thread.
    assert_eq!(unsafe { libc::sched_setaffinity(0, size_of_val(&set), ptr::from_ref(&set)) }, 0);
}

/// Page faults of this thread so far.
pub(crate) fn faults() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a `rusage`, which the call fills.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) }, 0);
    // SAFETY: filled by the call; zeroed before.
    let usage = unsafe { usage.assume_init() };
    usage.ru_minflt + usage.ru_majflt
}

fn pool_of(node: usize, kib: usize) -> String {
    format!("/sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB")
}

/// Sets huge pages of 2 MiB aside on a node.
pub(crate) fn set_aside(node: usize, count: usize) {
    let pool = pool_of(node, 2048);
    fs::write(format!("{pool}/nr_hugepages"), count.to_string()).expect("the first program may");
    assert_eq!(free(node, 2 << 20), count, "set aside on node {node}");
}

/// How many huge pages of a size are free on a node.
pub(crate) fn free(node: usize, size: usize) -> usize {
    let text = fs::read_to_string(format!("{}/free_hugepages", pool_of(node, size >> 10)));
    text.expect("the kernel has such pages").trim().parse().expect("a number")
}

/// The mounted file system of huge pages of 2 MiB.
pub(crate) const MOUNT: &CStr = c"/huge";

/// Binds a range to a node behind the back of the arena that it belongs to.
pub(crate) fn bind_behind_its_back(base: usize, size: usize, node: usize) {
    let (bind, mask, bits) = (2, [1_usize << node], usize::BITS + 1);
    // SAFETY: the mask has as many bits as the call reads. The policy changes no byte of the range.
    let answer = unsafe { libc::syscall(libc::SYS_mbind, base, size, bind, mask.as_ptr(), bits, 0) };
    assert_eq!(answer, 0, "the kernel knows the node");
}
