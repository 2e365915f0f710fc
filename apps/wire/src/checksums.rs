//! Checksums that are there on the wire, as a card makes them (design/packet-path.md `.link`).

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use crate::INTERFACE;

/// What `SIOCETHTOOL` takes to switch something: the command, and whether it is switched on (`struct ethtool_value`).
#[repr(C)]
struct Switch {
    command: u32,
    is_on: u32,
}

/// Switches checksums on or off that a card would make, those of what is sent.
const ETHTOOL_STXCSUM: u32 = 0x17;

const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// Has the kernel make the checksums of what it sends by the wire, in the namespace of this thread. By itself it leaves them to a
/// card that there is not, and what comes has none.
pub(crate) fn make() -> io::Result<()> {
    let mut switch = Switch { command: ETHTOOL_STXCSUM, is_on: 0 };
    let ifru_data = (&raw mut switch).cast();
    let mut request = libc::ifreq { ifr_name: [0; 16], ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data } };
    for (place, byte) in request.ifr_name.iter_mut().zip(INTERFACE.bytes()) {
        *place = byte as libc::c_char;
    }
    let any = UdpSocket::bind((core::net::Ipv6Addr::UNSPECIFIED, 0))?;
    // SAFETY: the request is valid to read and write, and so is what it points to, for as much as the command says.
    match unsafe { libc::ioctl(any.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
