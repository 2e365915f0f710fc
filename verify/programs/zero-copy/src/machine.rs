//! What the first program of a machine has to do itself.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;

/// The modules of the kernel's driver for the cards, each before those that need it.
const MODULES: [&str; 3] = ["failover", "net_failover", "virtio_net"];

/// A flag of `finit_module`: the kernel decompresses the file.
const IS_COMPRESSED: i32 = 4;

/// Mounts what the kernel says about itself, and loads the driver of the cards.
pub(crate) fn begin() {
    fs::create_dir("/proc").expect("an empty file system");
    // SAFETY: all texts end with a zero byte; there are no options.
    let mounted =
        unsafe { libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, core::ptr::null()) };
    assert_eq!(mounted, 0, "/proc is mounted");
    // So that the kernel sends no frames of its own.
    fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("a kernel with IPv6");
    for module in MODULES {
        let file = File::open(format!("/{module}.ko.xz")).expect("a module");
        // SAFETY: a descriptor of a module, and a text without parameters.
        let loaded =
            unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), c"".as_ptr(), IS_COMPRESSED) };
        assert_eq!(loaded, 0, "{module}: {}", std::io::Error::last_os_error());
    }
}

/// Switches an interface on; returns its number.
pub(crate) fn switch_on(interface: &str) -> u32 {
    let name = CString::new(interface).expect("a name");
    // SAFETY: all zeros are a request, whose name ends with a zero.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *place = byte.cast_signed();
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as i16;
    // SAFETY: opens a descriptor, which the program keeps to its end.
    let control = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0) };
    // SAFETY: the request is valid to read.
    let switched = unsafe { libc::ioctl(control, libc::SIOCSIFFLAGS as _, &raw const request) };
    assert_eq!(switched, 0, "{interface}: {}", std::io::Error::last_os_error());
    // SAFETY: a text that ends with a zero byte.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

/// Ends the machine.
pub(crate) fn switch_off() -> ! {
    // SAFETY: nothing is left to do or to keep.
    unsafe {
        libc::reboot(libc::LINUX_REBOOT_CMD_POWER_OFF);
        libc::_exit(0)
    }
}
