//! A network interface, which is found by its name.

use core::ffi::{CStr, c_char, c_int, c_ulong};
use core::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use crate::XdpError;
use crate::abi;

/// Which interface it is, whatever it is called: no other has this on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The network namespace, as a file: its device and its number there.
    namespace: (u64, u64),
    /// The number in the namespace. Interfaces of other namespaces have it, too.
    pub(crate) index: u32,
}

/// A network interface of the namespace in which it was found.
#[derive(Debug)]
pub(crate) struct Interface {
    /// What it was called when it was found.
    name: String,
    pub(crate) identity: Identity,
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
        let missing = || XdpError::NoInterface { name: name.to_owned() };
        let ifr_name = name_of(name).ok_or_else(missing)?;
        let index =
            ask(&control, libc::SIOCGIFINDEX, ifr_name, 0).map_err(|error| match error.raw_os_error() {
                Some(libc::ENODEV) => missing(),
                _ => XdpError::of("SIOCGIFINDEX", &error, ""),
            })?;
        // SAFETY: the kernel has written this member.
        let index = unsafe { index.ifr_ifru.ifru_ifindex }.cast_unsigned();
        let mtu = ask(&control, libc::SIOCGIFMTU, ifr_name, 0)
            .map_err(|error| XdpError::of("SIOCGIFMTU", &error, ""))?;
        // SAFETY: the kernel has written this member.
        let mtu = unsafe { mtu.ifr_ifru.ifru_mtu }.cast_unsigned();
        let namespace = namespace().map_err(|error| XdpError::of(NAMESPACE, &error, ""))?;
        Ok(Self { name: name.to_owned(), identity: Identity { namespace, index }, mtu, control })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is still there and switched on, whatever it is called by now.
    pub(crate) fn check(&self) -> Result<(), XdpError> {
        let index = self.identity.index.cast_signed();
        let Ok(ifr_name) =
            ask(&self.control, libc::SIOCGIFNAME, Name::default(), index).map(|it| it.ifr_name)
        else {
            return Err(XdpError::InterfaceGone { name: self.name.clone() });
        };
        let is_down = ask(&self.control, libc::SIOCGIFFLAGS, ifr_name, 0).is_ok_and(|answer| {
            // SAFETY: the kernel has written this member.
            c_int::from(unsafe { answer.ifr_ifru.ifru_flags }) & libc::IFF_UP == 0
        });
        if is_down { Err(XdpError::InterfaceDown { name: text_of(&ifr_name) }) } else { Ok(()) }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Where the kernel says which network namespace a thread is in. Its interfaces are told apart from those of others by it.
const NAMESPACE: &str = "/proc/thread-self/ns/net";

/// The network namespace of the calling thread.
fn namespace() -> io::Result<(u64, u64)> {
    std::fs::metadata(NAMESPACE).map(|file| (file.dev(), file.ino()))
}

/// A name as the kernel takes and returns it, with a zero at its end.
type Name = [c_char; libc::IFNAMSIZ];

/// `None` if no interface can be called this.
fn name_of(name: &str) -> Option<Name> {
    let mut places = Name::default();
    // The last place is the end of the name.
    if name.is_empty() || name.len() >= places.len() || name.bytes().any(|byte| byte == 0) {
        return None;
    }
    for (place, byte) in places.iter_mut().zip(name.bytes()) {
        *place = byte.cast_signed() as c_char;
    }
    Some(places)
}

fn text_of(name: &Name) -> String {
    let bytes = name.map(|byte| byte as u8);
    CStr::from_bytes_until_nul(&bytes).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Asks the kernel about the interface with this name, or about the one with this number.
fn ask(control: &OwnedFd, question: c_ulong, ifr_name: Name, ifru_ifindex: c_int) -> io::Result<libc::ifreq> {
    let mut request = libc::ifreq { ifr_name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_ifindex } };
    // SAFETY: these questions take a request, which is valid to read and write, and answer in it.
    match unsafe { libc::ioctl(control.as_raw_fd(), question as _, &raw mut request) } {
        0 => Ok(request),
        _ => Err(io::Error::last_os_error()),
    }
}
