//! Two network namespaces and a wire between them: traffic that leaves the process not at all, and of which nothing stays
//! (design/packet-path.md `.namespace`, `.link`).

#![cfg(target_os = "linux")]

mod checksums;
pub mod frames;
mod link;
mod namespace;
mod packet_socket;

pub use link::{End, INTERFACE, create, create_uneven};
pub use namespace::Namespace;
pub use packet_socket::PacketSocket;
