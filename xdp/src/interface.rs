//! A network interface, by its name.

use core::ffi::{c_char, c_int, c_ulong};
use core::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::XdpError;
use crate::abi;

/// A network interface of the namespace in which it was found.
#[derive(Debug)]
pub(crate) struct Interface {
    name: String,
    pub(crate) index: u32,
    /// The most bytes of a packet, without the header of Ethernet.
    pub(crate) mtu: u32,
    /// Asks about interfaces of that namespace, whichever the thread is in.
    control: OwnedFd,
}

impl Interface {
    /// The interface with this name, in the namespace of the calling thread.
    pub(crate) fn find(name: &str) -> Result<Self, XdpError> {
        let control = abi::socket(libc::AF_UNIX, libc::SOCK_DGRAM)
            .map_err(|error| XdpError::of("socket for questions about interfaces", &error, ""))?;
        let index = index(&control, name).map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV) => XdpError::NoInterface { name: name.to_owned() },
            _ => XdpError::of("SIOCGIFINDEX", &error, ""),
        })?;
        let mtu = ask(&control, name, libc::SIOCGIFMTU, |answer| {
            // SAFETY: the kernel has written this member.
            unsafe { answer.ifr_ifru.ifru_mtu }
        })
        .map_err(|error| XdpError::of("SIOCGIFMTU", &error, ""))?;
        Ok(Self { name: name.to_owned(), index, mtu: mtu.cast_unsigned(), control })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is still there and switched on.
    pub(crate) fn check(&self) -> Result<(), XdpError> {
        if !index(&self.control, &self.name).is_ok_and(|index| index == self.index) {
            return Err(XdpError::InterfaceGone { name: self.name.clone() });
        }
        let flags = ask(&self.control, &self.name, libc::SIOCGIFFLAGS, |answer| {
            // SAFETY: the kernel has written this member.
            c_int::from(unsafe { answer.ifr_ifru.ifru_flags })
        });
        if flags.is_ok_and(|flags| flags & libc::IFF_UP == 0) {
            return Err(XdpError::InterfaceDown { name: self.name.clone() });
        }
        Ok(())
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn index(control: &OwnedFd, name: &str) -> io::Result<u32> {
    let index = ask(control, name, libc::SIOCGIFINDEX, |answer| {
        // SAFETY: the kernel has written this member.
        unsafe { answer.ifr_ifru.ifru_ifindex }
    })?;
    Ok(index.cast_unsigned())
}

/// Asks the kernel about the interface with this name.
fn ask<T>(
    control: &OwnedFd,
    name: &str,
    question: c_ulong,
    read: impl FnOnce(&libc::ifreq) -> T,
) -> io::Result<T> {
    let mut ifr_name = [0; libc::IFNAMSIZ];
    // The last place is the end of the name.
    if name.is_empty() || name.len() >= ifr_name.len() || name.bytes().any(|byte| byte == 0) {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (place, byte) in ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte.cast_signed() as c_char;
    }
    let mut request = libc::ifreq { ifr_name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_ifindex: 0 } };
    // SAFETY: these questions take a request, which is valid to read and write, and answer in it.
    match unsafe { libc::ioctl(control.as_raw_fd(), question as _, &raw mut request) } {
        0 => Ok(read(&request)),
        _ => Err(io::Error::last_os_error()),
    }
}
