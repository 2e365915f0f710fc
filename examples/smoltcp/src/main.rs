//! Serves a file to one client by smoltcp's own TCP. Its frames are units of a pool, which AF_XDP shares with the kernel.
//!
//! ```text
//! smoltcp-over-a-pool INTERFACE ADDRESS PORT FILE
//! ```
//!
//! It takes all frames of the first queue of the interface, so the address, of IPv6, is one that the kernel does not have.
//! `verify/smoltcp` runs it on a wire of its own.

use std::error::Error;
use std::net::Ipv6Addr;
use std::time::Duration;

use smoltcp::iface::{Config, Interface, PollResult, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use tripoint::packets::{PacketPool, PacketPoolOptions};
use tripoint::xdp::smoltcp::XdpDevice;
use tripoint::xdp::{XdpAttach, XdpFilter, XdpOptions, XdpRedirect, XdpRegion};
use tripoint::{ArenaVm, ArenaVmOptions};

/// The bytes of either buffer of the socket.
const BUFFER: usize = 1 << 18;

/// How long the client may be silent.
const PATIENCE: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [interface, address, port, file] = &arguments[..] else {
        return Err("usage: smoltcp-over-a-pool INTERFACE ADDRESS PORT FILE".into());
    };
    serve(interface, address.parse()?, port.parse()?, &std::fs::read(file)?)
}

fn serve(interface: &str, address: Ipv6Addr, port: u16, contents: &[u8]) -> Result<(), Box<dyn Error>> {
    let arena = ArenaVm::create(ArenaVmOptions::default())?;
    let pool = PacketPool::<_, 2048>::create(arena, PacketPoolOptions { count: 8192, ..Default::default() })?;
    let pool = Box::leak(Box::new(pool));
    let socket = XdpRegion::of_static(pool).open(interface, 0, XdpOptions::default())?;
    let redirect = XdpRedirect::attach(interface, XdpFilter::All, XdpAttach::Either)?;
    redirect.add(&socket)?;
    let mut device = XdpDevice::new(socket);

    // From here on it is a program of smoltcp, and nothing but `flush` is ours.
    let config = Config::new(EthernetAddress([2, 0, 0, 0, 0, 1]).into());
    let mut stack = Interface::new(config, &mut device, Instant::now());
    stack.update_ip_addrs(|addresses| {
        addresses.push(IpCidr::new(IpAddress::Ipv6(address), 64)).expect("room for the first address");
    });
    let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER]);
    let mut server = tcp::Socket::new(buffer(), buffer());
    server.set_timeout(Some(PATIENCE));
    server.listen(port)?;
    let mut storage = [smoltcp::iface::SocketStorage::EMPTY];
    let mut sockets = SocketSet::new(&mut storage[..]);
    let server = sockets.add(server);

    let mut sent = 0;
    loop {
        let is_idle = stack.poll(Instant::now(), &mut device, &mut sockets) == PollResult::None;
        let server = sockets.get_mut::<tcp::Socket>(server);
        if server.can_send() {
            sent += server.send_slice(&contents[sent..])?;
            if sent == contents.len() {
                server.close();
            }
        }
        if !server.is_open() {
            break;
        }
        if is_idle {
            device.flush()?;
        }
    }
    device.flush()?;
    println!("{}", device.socket().report());
    drop(redirect);
    device.close().wait(Duration::from_secs(5))?;
    if sent < contents.len() {
        return Err(format!("the client left after {sent} bytes of {}", contents.len()).into());
    }
    Ok(())
}
