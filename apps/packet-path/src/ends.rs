//! The two ends: a socket that sends the feed and takes requests, and one that takes the feed and sends requests.

use core::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use core::time::Duration;
use std::io;
use std::net::UdpSocket;

use wire::End;

/// The port of either end, each in its own namespace.
pub(crate) const PORT: u16 = 26_400;

/// How long a greeting may take.
const GREETING_TIME: Duration = Duration::from_secs(2);

/// The two ends.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Where the feed is sent from, and its address for requests.
    pub(crate) sender: UdpSocket,
    pub(crate) requests_to: SocketAddrV6,
    /// Where the feed comes to, and its address.
    pub(crate) receiver: UdpSocket,
    pub(crate) feed_to: SocketAddrV6,
    /// The end of the receiver, and the other, which is there as long as this.
    wire: Option<[End; 2]>,
}

impl Ends {
    /// The two ends of a wire between two namespaces.
    ///
    /// # Errors
    /// The operating system's: without the privilege, [`io::ErrorKind::PermissionDenied`].
    pub(crate) fn of_a_wire() -> io::Result<Self> {
        let [from, to] = wire::create(1)?;
        let ends = Self {
            sender: from.namespace.within(|| UdpSocket::bind(from.port(PORT)))?,
            requests_to: to.port_of(&from, PORT),
            receiver: to.namespace.within(|| UdpSocket::bind(to.port(PORT)))?,
            feed_to: from.port_of(&to, PORT),
            wire: Some([to, from]),
        };
        greet(&ends.receiver, ends.requests_to, &ends.sender)?;
        greet(&ends.sender, ends.feed_to, &ends.receiver)?;
        Ok(ends)
    }

    /// Two ports of the loopback interface.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn on_loopback() -> io::Result<Self> {
        let bind = || {
            let socket = UdpSocket::bind(SocketAddrV6::new(Ipv6Addr::LOCALHOST, 0, 0, 0))?;
            match socket.local_addr()? {
                SocketAddr::V6(address) => Ok((socket, address)),
                SocketAddr::V4(_) => Err(io::Error::from(io::ErrorKind::AddrNotAvailable)),
            }
        };
        let ((sender, requests_to), (receiver, feed_to)) = (bind()?, bind()?);
        Ok(Self { sender, requests_to, receiver, feed_to, wire: None })
    }

    /// The number of the receiver's interface, if there is a wire.
    pub(crate) fn interface(&self) -> Option<u32> {
        self.wire.as_ref().map(|[to, _]| to.index())
    }

    /// Moves the calling thread to the receiver's end.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn enter_receiver(&self) -> io::Result<()> {
        self.wire.as_ref().map_or(Ok(()), |[to, _]| to.namespace.enter())
    }
}

/// Sends a datagram over the wire and takes it at the other end: so either end knows where the other is before it matters.
fn greet(from: &UdpSocket, address: SocketAddrV6, to: &UdpSocket) -> io::Result<()> {
    to.set_read_timeout(Some(GREETING_TIME))?;
    from.send_to(&[], address)?;
    to.recv(&mut [])?;
    to.set_read_timeout(None)
}
