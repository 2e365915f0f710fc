//! Interfaces that go, queues that are in use, and units that are returned (design/xdp.md `.req.home`).

use core::time::Duration;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use tripoint_packets::PacketBatch;
use tripoint_xdp::{XdpAttach, XdpError, XdpFilter, XdpRedirect, XdpRegion, XdpSocket};
use wire::frames::{frame, number};
use wire::{INTERFACE, PacketSocket};

use super::{OPTIONS, PATIENCE, Patience, Pool, SIZE, assert_whole, close, open, pool, redirect, wire};

/// Sends frames until one has come to the socket.
fn receive_one(raw: &PacketSocket, socket: &mut XdpSocket<'static, SIZE>, pool: &'static Pool<SIZE>) {
    let mut batch = pool.batch::<32>();
    let patience = Patience::new();
    while batch.is_empty() {
        raw.send(&frame(7, 200));
        socket.receive(&mut batch);
        patience.wait(socket.check());
    }
    assert!(batch.iter().all(|frame| number(frame) == Some(7)));
    socket.cache().give_batch(&mut batch);
}

#[test]
fn units_come_back_when_the_kernel_has_let_go() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(128);
    let raw = PacketSocket::open(&far).unwrap();
    // Again and again.
    for _ in 0..5 {
        let mut socket = open(pool, 0, OPTIONS);
        let redirect = redirect(&socket);
        receive_one(&raw, &mut socket, pool);
        drop(redirect);
        let mut closing = socket.close();
        let outstanding = closing.with_kernel();
        assert!(outstanding >= 32, "{closing:?}");
        assert_eq!(pool.counts().rings as u64, outstanding, "they are with the kernel still");
        let mut reclaimed = closing.wait(Duration::ZERO);
        if let Err(error) = &reclaimed {
            let XdpError::StillBound { queue: 0, units, .. } = error else { panic!("{error}") };
            assert_eq!((*units, pool.counts().rings as u64), (outstanding, outstanding));
            reclaimed = closing.wait(PATIENCE);
        }
        assert_eq!(reclaimed.unwrap() as u64, outstanding);
        assert_eq!(closing.wait(Duration::ZERO).unwrap(), 0, "they come back once");
        assert_whole(pool);
    }
    // A socket that is only dropped waits as well.
    drop(open(pool, 0, OPTIONS));
    assert_whole(pool);
    close(open(pool, 0, OPTIONS));
}

/// The kernel lets go of a queue some time after it was closed, which another that opens it does not see.
#[test]
fn a_queue_that_was_closed_is_waited_for() {
    let Some([near, _far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pools = [pool::<SIZE>(128), pool::<SIZE>(128)];
    for _ in 0..20 {
        let mut closing = open(pools[0], 0, OPTIONS).close();
        close(open(pools[1], 0, OPTIONS));
        assert!(closing.wait(PATIENCE).unwrap() > 0);
    }
    pools.iter().for_each(|pool| assert_whole(pool));
}

/// A duplicate of the descriptor keeps the queue, and so no unit comes back before it is closed.
#[test]
fn a_duplicate_of_the_descriptor_keeps_the_units() {
    let Some([near, _far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(128);
    let socket = open(pool, 0, OPTIONS);
    let duplicate = socket.as_fd().try_clone_to_owned().unwrap();
    let mut closing = socket.close();
    let units = closing.with_kernel();
    assert!(units > 0);
    let still_bound = XdpError::StillBound { interface: INTERFACE.to_owned(), queue: 0, units };
    assert_eq!(closing.wait(Duration::from_millis(20)), Err(still_bound));
    assert_eq!(pool.counts().rings as u64, units);
    drop(duplicate);
    assert_eq!(closing.wait(PATIENCE).unwrap() as u64, units);
    assert_whole(pool);
}

/// Closed in another namespace than that of its interface, which has an interface of the same name and number.
#[test]
fn a_socket_may_be_closed_in_any_namespace() {
    let (Some([near, _far]), Some([other, _end])) = (wire(1), wire(1)) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(128);
    let socket = open(pool, 0, OPTIONS);
    other.namespace.enter().unwrap();
    assert_eq!(near.index(), other.index());
    let in_the_way = open(self::pool::<SIZE>(128), 0, OPTIONS);
    assert_eq!(socket.check(), Ok(()));
    close(socket);
    assert_whole(pool);
    near.namespace.enter().unwrap();
    close(open(pool, 0, OPTIONS));
    close(in_the_way);
}

#[test]
fn a_queue_has_one_socket_and_an_interface_one_program() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pools = [pool::<SIZE>(256), pool::<SIZE>(256)];
    let mut regions = pools.map(XdpRegion::of_static);
    let mut socket = regions[0].open(INTERFACE, 0, OPTIONS).unwrap();
    let _redirect = redirect(&socket);
    for region in &mut regions {
        let refused = region.open(INTERFACE, 0, OPTIONS).map(|_| ());
        assert_eq!(refused, Err(XdpError::QueueInUse { interface: INTERFACE.to_owned(), queue: 0 }));
    }
    let attached = XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Either).map(|_| ());
    assert_eq!(attached, Err(XdpError::ProgramInUse { interface: INTERFACE.to_owned() }));
    // The first has lost nothing by it.
    receive_one(&PacketSocket::open(&far).unwrap(), &mut socket, pools[0]);
    close(socket);
    pools.iter().for_each(|pool| assert_whole(pool));
}

/// Each queue of an interface may be with another program, or with another region.
#[test]
fn a_region_leaves_other_queues_to_others() {
    let Some([near, _far]) = wire(2) else { return };
    near.namespace.enter().unwrap();
    let pools = [pool::<SIZE>(256), pool::<SIZE>(256)];
    let mut regions = pools.map(XdpRegion::of_static);
    let sockets = [0, 1].map(|queue| regions[queue as usize].open(INTERFACE, queue, OPTIONS).unwrap());
    let refused = regions[0].open(INTERFACE, 1, OPTIONS).map(|_| ());
    assert_eq!(refused, Err(XdpError::QueueInUse { interface: INTERFACE.to_owned(), queue: 1 }));
    sockets.into_iter().for_each(|socket| assert!(close(socket) > 0));
    pools.iter().for_each(|pool| assert_whole(pool));
}

#[test]
fn an_interface_that_is_down_is_named_and_comes_back() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(256);
    let mut socket = open(pool, 0, OPTIONS);
    let _redirect = redirect(&socket);
    let raw = PacketSocket::open(&far).unwrap();
    receive_one(&raw, &mut socket, pool);
    near.switch(false).unwrap();
    let down = XdpError::InterfaceDown { name: INTERFACE.to_owned() };
    assert_eq!(socket.check(), Err(down.clone()));
    let mut batch: PacketBatch<'_, SIZE, 4> = pool.batch();
    let mut packet = socket.cache().take().unwrap();
    packet.extend_from_slice(&frame(8, 100)).unwrap();
    batch.push(packet).unwrap();
    assert_eq!(socket.send(&mut batch), 1);
    assert_eq!(socket.wake(), Err(down));
    near.switch(true).unwrap();
    assert_eq!(socket.check(), Ok(()));
    receive_one(&raw, &mut socket, pool);
    // What was handed over meanwhile is sent now.
    let patience = Patience::new();
    while socket.report().transmit.outstanding() > 0 {
        socket.wake().unwrap();
        socket.complete();
        patience.wait(socket.report());
    }
    drop(batch);
    close(socket);
    assert_whole(pool);
}

#[test]
fn an_interface_that_is_deleted_keeps_no_unit() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(256);
    let mut socket = open(pool, 0, OPTIONS);
    let redirect = redirect(&socket);
    receive_one(&PacketSocket::open(&far).unwrap(), &mut socket, pool);
    far.delete().unwrap();
    let gone = XdpError::InterfaceGone { name: INTERFACE.to_owned() };
    assert_eq!(socket.check(), Err(gone.clone()));
    let mut batch: PacketBatch<'_, SIZE, 4> = pool.batch();
    assert_eq!(socket.receive(&mut batch), 0);
    let mut packet = socket.cache().take().unwrap();
    packet.extend_from_slice(&frame(8, 100)).unwrap();
    batch.push(packet).unwrap();
    assert_eq!(socket.send(&mut batch), 1);
    assert_eq!(socket.wake(), Err(gone));
    drop((batch, redirect));
    assert!(close(socket) > 0);
    assert_whole(pool);
    let missing = XdpRegion::of_static(pool).open(INTERFACE, 0, OPTIONS).map(|_| ());
    assert_eq!(missing, Err(XdpError::NoInterface { name: INTERFACE.to_owned() }));
}

/// A packet without data cannot be sent. Its unit is not lost: the kernel completes it, or it comes back at the end.
#[test]
fn what_the_kernel_refuses_to_send_comes_back_at_the_end() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(256);
    let mut socket = open(pool, 0, OPTIONS);
    let (raw, mut batch) = (PacketSocket::open(&far).unwrap(), pool.batch::<4>());
    batch.push(socket.cache().take().unwrap()).unwrap();
    let mut packet = socket.cache().take().unwrap();
    packet.extend_from_slice(&frame(3, 100)).unwrap();
    batch.push(packet).unwrap();
    assert_eq!(socket.send(&mut batch), 2);
    let patience = Patience::new();
    while raw.receive().is_none_or(|frame| number(&frame) != Some(3)) {
        socket.wake().unwrap();
        patience.wait(socket.report());
    }
    while socket.report().transmit.outstanding() > 1 {
        socket.complete();
        patience.wait(socket.report());
    }
    let report = socket.report();
    assert_eq!((report.kernel.transmit_invalid, report.transmit.refused), (1, 0), "{report}");
    drop(batch);
    close(socket);
    assert_whole(pool);
}

/// The memory of a region is known to the kernel by a socket that is bound, which that of a deleted interface is no more.
#[test]
fn a_socket_of_a_deleted_interface_is_in_no_others_way() {
    let (Some([near, far]), Some([other, _end])) = (wire(1), wire(1)) else { return };
    let pool = pool::<SIZE>(256);
    let mut region = XdpRegion::of_static(pool);
    near.namespace.enter().unwrap();
    let gone = region.open(INTERFACE, 0, OPTIONS).unwrap();
    far.delete().unwrap();
    assert_eq!(gone.check(), Err(XdpError::InterfaceGone { name: INTERFACE.to_owned() }));
    other.namespace.enter().unwrap();
    let open = [(); 2].map(|()| close(region.open(INTERFACE, 0, OPTIONS).unwrap()));
    assert!(open.iter().all(|units| *units > 0), "{open:?}");
    close(gone);
    assert_whole(pool);
}

/// Calls the interface with this number in the namespace of the calling thread by another name.
fn rename(index: u32, name: &core::ffi::CStr) {
    // SAFETY: all zeros are a request.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    // SAFETY: opens a descriptor.
    let control = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    assert!(control >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: a new descriptor, which nothing else owns.
    let control = unsafe { OwnedFd::from_raw_fd(control) };
    request.ifr_ifru.ifru_ifindex = index.cast_signed();
    // SAFETY: the request is valid to read and write, and both questions take one.
    let result = unsafe {
        let found = libc::ioctl(control.as_raw_fd(), libc::SIOCGIFNAME as _, &raw mut request);
        let bytes = name.to_bytes_with_nul().iter().map(|byte| *byte as libc::c_char);
        (0..).zip(bytes).for_each(|(place, byte)| request.ifr_ifru.ifru_newname[place] = byte);
        found | libc::ioctl(control.as_raw_fd(), libc::SIOCSIFNAME as _, &raw mut request)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Whatever it is called, and whatever else has its name by now.
#[test]
fn an_interface_that_is_renamed_is_not_gone() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(256);
    let mut socket = open(pool, 0, OPTIONS);
    let _redirect = redirect(&socket);
    // Older kernels rename only what is switched off.
    near.switch(false).unwrap();
    rename(near.index(), c"other");
    assert_eq!(socket.check(), Err(XdpError::InterfaceDown { name: "other".to_owned() }));
    near.switch(true).unwrap();
    assert_eq!(socket.check(), Ok(()));
    receive_one(&PacketSocket::open(&far).unwrap(), &mut socket, pool);
    assert_eq!(socket.interface(), INTERFACE, "as it was opened");
    close(socket);
    assert_whole(pool);
}

/// The number of an interface says nothing without its namespace.
#[test]
fn a_program_takes_no_socket_of_another_namespace() {
    let (Some([near, _far]), Some([other, _end])) = (wire(1), wire(1)) else { return };
    assert_eq!(near.index(), other.index());
    let pool = pool::<SIZE>(256);
    let mut region = XdpRegion::of_static(pool);
    other.namespace.enter().unwrap();
    let socket = region.open(INTERFACE, 0, OPTIONS).unwrap();
    near.namespace.enter().unwrap();
    let redirect = XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Either).unwrap();
    let is_other = XdpError::OtherInterface { program: INTERFACE.to_owned(), socket: INTERFACE.to_owned() };
    assert_eq!(redirect.add(&socket), Err(is_other));
    close(socket);
    assert_whole(pool);
}
