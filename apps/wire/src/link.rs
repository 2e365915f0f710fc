//! A wire of two ends, each in a namespace of its own (design/packet-path.md `.link`).

use core::net::{Ipv6Addr, SocketAddrV6};
use std::io;
use std::os::fd::AsRawFd;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeader, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::net::if_::if_nametoindex;

use crate::checksums;
use crate::namespace::Namespace;

/// What both ends are called, each in its namespace.
pub const INTERFACE: &str = "wire";

/// The addresses of the ends. They are valid on the wire only.
const ADDRESSES: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2)];

const PREFIX_BITS: u8 = 64;

/// Room for an answer of the kernel.
const ANSWER_BYTES: usize = 8 << 10;

/// An end of the wire, in a namespace that nothing else is in.
#[derive(Debug)]
pub struct End {
    /// The namespace. The wire goes with it.
    pub namespace: Namespace,
    address: Ipv6Addr,
    index: u32,
}

impl End {
    /// The number of the interface in its namespace.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The address of a port of this end, as this end sees it.
    pub const fn port(&self, port: u16) -> SocketAddrV6 {
        SocketAddrV6::new(self.address, port, 0, self.index)
    }

    /// The address of a port of the other end, as this end sees it.
    pub const fn port_of(&self, other: &Self, port: u16) -> SocketAddrV6 {
        SocketAddrV6::new(other.address, port, 0, self.index)
    }

    /// Switches this end on or off. Frames come only if both ends are on.
    ///
    /// # Errors
    /// The operating system's.
    pub fn switch(&self, is_on: bool) -> io::Result<()> {
        self.namespace.within(|| switch(self.index, is_on))
    }

    /// Changes the most bytes of a packet.
    ///
    /// # Errors
    /// The operating system's.
    pub fn set_mtu(&self, mtu: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        message.attributes = vec![LinkAttribute::Mtu(mtu)];
        self.namespace.within(|| ask(RouteNetlinkMessage::SetLink(message), 0))
    }

    /// Deletes the wire, both ends of it.
    ///
    /// # Errors
    /// The operating system's.
    pub fn delete(&self) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        self.namespace.within(|| ask(RouteNetlinkMessage::DelLink(message), 0))
    }
}

/// Makes two namespaces and a wire between them, with this many queues at each end. There is no way out of either.
///
/// # Errors
/// The operating system's: without the privilege, [`io::ErrorKind::PermissionDenied`].
pub fn create(queues: u32) -> io::Result<[End; 2]> {
    create_uneven([queues, queues])
}

/// The same, with that many queues at the first end and at the second.
///
/// # Errors
/// Those of [`create`].
pub fn create_uneven(queues: [u32; 2]) -> io::Result<[End; 2]> {
    let [left, right] = [Namespace::create()?, Namespace::create()?];
    left.within(|| add_pair(&right, queues))?;
    let [one, two] = ADDRESSES;
    Ok([end(left, one)?, end(right, two)?])
}

/// Makes a pair of interfaces, one here and one in the namespace of the `peer`.
fn add_pair(peer: &Namespace, [here, there]: [u32; 2]) -> io::Result<()> {
    let other = interface(LinkAttribute::NetNsFd(peer.as_raw_fd()), there);
    let pair = LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
    ]);
    ask(RouteNetlinkMessage::NewLink(interface(pair, here)), NEW)
}

fn interface(attribute: LinkAttribute, queues: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(INTERFACE.to_owned()),
        LinkAttribute::NumRxQueues(queues),
        LinkAttribute::NumTxQueues(queues),
        attribute,
    ];
    message
}

/// Gives the end in this namespace its address, and switches it on.
fn end(namespace: Namespace, address: Ipv6Addr) -> io::Result<End> {
    let index = namespace.within(|| {
        let index = if_nametoindex(INTERFACE)?;
        let mut message = AddressMessage::default();
        message.header = AddressHeader {
            family: AddressFamily::Inet6,
            prefix_len: PREFIX_BITS,
            scope: AddressScope::Link,
            index,
            ..AddressHeader::default()
        };
        // Nothing else is on the wire that could have this address: no need to ask, which takes a second.
        let flags = AddressFlags::Nodad | AddressFlags::Permanent;
        message.attributes = vec![AddressAttribute::Address(address.into()), AddressAttribute::Flags(flags)];
        ask(RouteNetlinkMessage::NewAddress(message), NEW)?;
        checksums::make()?;
        switch(index, true)?;
        Ok(index)
    })?;
    Ok(End { namespace, address, index })
}

/// Switches an interface on or off.
fn switch(index: u32, is_on: bool) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = if is_on { LinkFlags::Up } else { LinkFlags::empty() };
    message.header.change_mask = LinkFlags::Up;
    ask(RouteNetlinkMessage::SetLink(message), 0)
}

/// Asks for what is not there yet.
const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;

/// Asks the kernel for something, in the namespace of this thread.
fn ask(what: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let mut message = NetlinkMessage::from(what);
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let kernel = SocketAddr::new(0, 0);
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.send_to(&bytes, &kernel, 0)?;
    let mut answer = Vec::with_capacity(ANSWER_BYTES);
    socket.recv(&mut answer, 0)?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(io::Error::other)?;
    match answer.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        NetlinkPayload::Error(_) => Ok(()),
        other => Err(io::Error::other(format!("the kernel answers {other:?}"))),
    }
}
