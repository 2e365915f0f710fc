//! Limits are told as limits: which, its value, and what raises it (design/xdp.md `.req.limits`).

use core::ffi::{c_int, c_long};
use std::process::Command;
use std::thread;

use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_core::{ClientArena, ClientArenaOptions};
use tripoint_packets::{PacketPool, PacketPoolOptions};
use tripoint_xdp::{XdpAttach, XdpError, XdpFilter, XdpOptions, XdpRedirect, XdpRegion};
use wire::frames::{FRAME_MIN, HEADERS, Seen, datagram, frame};
use wire::{End, INTERFACE, PacketSocket};

use super::{OPTIONS, PORT, Patience, SIZE, assert_whole, close, open, pool, redirect, wire};

const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_BPF: u32 = 39;

/// Gives up capabilities, in this thread alone.
fn give_up(capabilities: &[u32]) {
    #[repr(C)]
    struct Header {
        version: u32,
        process: c_int,
    }
    /// Effective, permitted and inheritable ones: the first 32, and the others.
    type Sets = [[u32; 3]; 2];
    let header = Header { version: 0x2008_0522, process: 0 };
    let mut sets: Sets = [[0; 3]; 2];
    // SAFETY: the header and the sets are those of this version, and valid to write.
    assert_eq!(unsafe { libc::syscall(libc::SYS_capget, &raw const header, &raw mut sets) }, 0);
    for capability in capabilities {
        sets[(capability / 32) as usize].iter_mut().for_each(|set| *set &= !(1 << (capability % 32)));
    }
    // SAFETY: the same, valid to read.
    let result: c_long = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const sets) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Does this at an end of a wire, without some capabilities.
fn without<T: Send>(capabilities: &[u32], end: &End, work: impl FnOnce() -> T + Send) -> T {
    let without = || {
        end.namespace.enter().unwrap();
        give_up(capabilities);
        work()
    };
    thread::scope(|scope| scope.spawn(without).join().unwrap())
}

#[test]
fn missing_rights_are_named() {
    let Some([near, _far]) = wire(1) else { return };
    let pool = pool::<SIZE>(128);
    let opened =
        without(&[CAP_NET_RAW], &near, || XdpRegion::of_static(pool).open(INTERFACE, 0, OPTIONS).map(|_| ()));
    let rights = XdpError::Rights { call: "socket(AF_XDP)", capability: "CAP_NET_RAW" };
    assert!(rights.is_refusal());
    assert_eq!(opened, Err(rights));
    let attached = without(&[CAP_BPF, CAP_SYS_ADMIN, CAP_NET_ADMIN], &near, || {
        XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Either).map(|_| ())
    });
    let Err(error @ XdpError::Rights { capability: "CAP_BPF and CAP_NET_ADMIN", .. }) = attached else {
        panic!("{attached:?}");
    };
    assert!(error.to_string().contains("needs CAP_BPF and CAP_NET_ADMIN, as root has"), "{error}");
    assert_whole(pool);
}

/// All that a program needs which is not root's (guide: AF_XDP).
#[test]
fn the_rights_that_are_named_are_enough() {
    let named = [CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF, CAP_IPC_LOCK];
    let others: Vec<u32> = (0..64).filter(|capability| !named.contains(capability)).collect();
    for filter in [XdpFilter::UdpPort(PORT), XdpFilter::All] {
        let Some([near, far]) = wire(1) else { return };
        let (pool, raw, patience) = (pool::<SIZE>(128), PacketSocket::open(&far).unwrap(), Patience::new());
        without(&others, &near, || {
            let mut socket = open(pool, 0, OPTIONS);
            let redirect = XdpRedirect::attach(INTERFACE, filter, XdpAttach::Either).unwrap();
            redirect.add(&socket).unwrap();
            let mut batch = pool.batch::<8>();
            assert!(raw.send(&frame(1, FRAME_MIN)));
            while !batch.iter().any(|data| data == frame(1, FRAME_MIN)) {
                batch.clear();
                socket.receive(&mut batch);
                patience.wait(&socket);
            }
            drop((batch, redirect));
            close(socket);
        });
        assert_whole(pool);
    }
}

/// Runs a test alone in a process whose limits it may change. Returns whether this is that process.
fn is_child(test: &str) -> bool {
    const CHILD: &str = "TRIPOINT_XDP_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let output =
        Command::new(program).args(["--exact", test, "--nocapture"]).env(CHILD, "1").output().unwrap();
    tripoint_oracle::pass_skips_on(&output);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    false
}

fn set_limit(of: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value as libc::rlim_t, rlim_max: value as libc::rlim_t };
    // SAFETY: the limit is valid to read.
    assert_eq!(unsafe { libc::setrlimit(of, &raw const limit) }, 0);
}

#[test]
fn too_little_memory_that_may_be_locked_is_a_limit() {
    if !is_child("limits::too_little_memory_that_may_be_locked_is_a_limit") {
        return;
    }
    let Some([near, _far]) = wire(2) else { return };
    let pool = pool::<SIZE>(128);
    // The region has 256 KiB, and a socket needs a page of its own.
    set_limit(libc::RLIMIT_MEMLOCK, 260 << 10);
    without(&[CAP_IPC_LOCK], &near, || {
        let mut region = XdpRegion::of_static(pool);
        let first = region.open(INTERFACE, 0, OPTIONS).unwrap();
        let second = region.open(INTERFACE, 1, OPTIONS).map(|_| ());
        assert_eq!(second, Err(XdpError::LockedMemory { needed: 4 << 10, limit: 260 << 10 }));
        close(first);
    });
    set_limit(libc::RLIMIT_MEMLOCK, 64 << 10);
    let opened = without(&[CAP_IPC_LOCK], &near, || {
        XdpRegion::of_static(pool).open(INTERFACE, 0, OPTIONS).map(|_| ())
    });
    let limit = XdpError::LockedMemory { needed: 260 << 10, limit: 64 << 10 };
    assert!(!limit.is_refusal(), "it can be had, if the limit is raised");
    assert!(
        limit.to_string().contains("ulimit -l 324") && limit.to_string().contains("CAP_IPC_LOCK"),
        "{limit}"
    );
    assert_eq!(opened, Err(limit));
    assert_whole(pool);
}

#[test]
fn too_few_open_files_are_a_limit() {
    if !is_child("limits::too_few_open_files_are_a_limit") {
        return;
    }
    let Some([near, _far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(128);
    // Each call that opens a file is the one that has no room, in its turn.
    let first_free = std::os::fd::AsRawFd::as_raw_fd(&std::fs::File::open("/").unwrap()) as u64;
    let mut refused = 0;
    for files in first_free..first_free + 8 {
        set_limit_softly(files);
        let told = XdpError::Descriptors { limit: files };
        let opened = XdpRegion::of_static(pool).open(INTERFACE, 0, OPTIONS).map(close);
        let attached = XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Either).map(|_| ());
        assert!(opened.as_ref().is_ok_and(|_| true) || opened == Err(told.clone()), "{opened:?}");
        assert!(attached == Ok(()) || attached == Err(told), "{attached:?}");
        refused += u32::from(opened.is_err()) + u32::from(attached.is_err());
        assert_whole(pool);
    }
    assert!(refused >= 4, "{refused}");
    set_limit_softly(256);
    close(open(pool, 0, OPTIONS));
}

/// Changes the limit of open files, which may be raised again.
fn set_limit_softly(files: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is valid to write, and then to read.
    let result = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = files as libc::rlim_t;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn queues_and_interfaces_that_are_not_there_are_named() {
    let Some([near, _far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(128);
    let mut region = XdpRegion::of_static(pool);
    let queue = region.open(INTERFACE, 5, OPTIONS).map(|_| ());
    assert_eq!(queue, Err(XdpError::NoQueue { interface: INTERFACE.to_owned(), queue: 5 }));
    for name in ["none", "", "a\0", "a name that is longer than the kernel has"] {
        let missing = XdpError::NoInterface { name: name.to_owned() };
        assert_eq!(region.open(name, 0, OPTIONS).map(|_| ()), Err(missing.clone()));
        let attached = XdpRedirect::attach(name, XdpFilter::All, XdpAttach::Either).map(|_| ());
        assert_eq!(attached, Err(missing));
    }
    assert_whole(pool);
}

/// An MTU that no unit has room for is an error, unless longer frames are to be dropped; these are counted.
#[test]
fn an_mtu_is_a_limit() {
    let Some([near, far]) = wire(1) else { return };
    [&near, &far].iter().for_each(|end| end.set_mtu(3400).unwrap());
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(128);
    let mut region = XdpRegion::of_static(pool);
    let mtu = XdpError::Mtu { interface: INTERFACE.to_owned(), mtu: 3400, frame_max: Some(1792) };
    assert!(mtu.to_string().contains("ip link set dev wire mtu 1774"), "{mtu}");
    assert_eq!(region.open(INTERFACE, 0, OPTIONS).map(|_| ()), Err(mtu));
    let mut socket = region.open(INTERFACE, 0, XdpOptions { drop_long_frames: true, ..OPTIONS }).unwrap();
    let link = redirect(&socket);
    let (raw, mut batch, patience) = (PacketSocket::open(&far).unwrap(), pool.batch::<8>(), Patience::new());
    let bodies = [1793 - HEADERS, 3000, 1792 - HEADERS];
    for bytes in bodies {
        assert!(raw.send(&datagram(PORT, &vec![7; bytes])));
    }
    while batch.is_empty() {
        socket.receive(&mut batch);
        patience.wait(socket.report());
    }
    assert_eq!(batch.iter().map(<[u8]>::len).collect::<Vec<_>>(), [region.frame_max() as usize]);
    assert_eq!(socket.report().kernel.receive_dropped, 2);
    drop((batch, link));
    close(socket);
    // The driver has a limit of its own.
    [&near, &far].iter().for_each(|end| end.set_mtu(9000).unwrap());
    let attached = XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Driver).map(|_| ());
    assert_eq!(attached, Err(XdpError::Mtu { interface: INTERFACE.to_owned(), mtu: 9000, frame_max: None }));
    let in_stack = XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Either).unwrap();
    assert_eq!(in_stack.attached(), XdpAttach::Stack);
    assert_whole(pool);
}

/// In the stack frames may be much longer than a unit, and in parts. Those between two that are dropped come whole.
#[test]
fn in_the_stack_frames_that_no_unit_has_room_for_are_dropped_and_counted() {
    const JUMBO: u32 = 9000;
    let Some([near, far]) = wire(1) else { return };
    [&near, &far].iter().for_each(|end| end.set_mtu(JUMBO).unwrap());
    near.namespace.enter().unwrap();
    let pool = pool::<4096>(128);
    let mut region = XdpRegion::of_static(pool);
    let longest = region.frame_max();
    assert_eq!(
        region.open(INTERFACE, 0, OPTIONS).map(|_| ()),
        Err(XdpError::Mtu { interface: INTERFACE.to_owned(), mtu: JUMBO, frame_max: Some(longest) })
    );
    let mut socket = region.open(INTERFACE, 0, XdpOptions { drop_long_frames: true, ..OPTIONS }).unwrap();
    let link = XdpRedirect::attach(INTERFACE, XdpFilter::UdpPort(PORT), XdpAttach::Either).unwrap();
    assert_eq!(link.attached(), XdpAttach::Stack);
    link.add(&socket).unwrap();
    let raw = PacketSocket::open(&far).unwrap();
    let longest = longest as usize;
    let (mut batch, mut seen, mut fitting, mut dropped) = (pool.batch::<8>(), Seen::new(1000), 0, 0);
    for number in 0..1000 {
        let bytes = [FRAME_MIN, longest, longest + 1, JUMBO as usize + 14, longest - 1][number as usize % 5];
        *if bytes > longest { &mut dropped } else { &mut fitting } += 1;
        assert!(raw.send(&frame(number, bytes)));
        let patience = Patience::new();
        while (seen.count, socket.report().kernel.receive_dropped) != (fitting, dropped) {
            socket.receive(&mut batch);
            batch.iter().for_each(|frame| seen.note(frame));
            socket.cache().give_batch(&mut batch);
            patience.wait((number, bytes, socket.report()));
        }
    }
    drop((batch, link));
    close(socket);
    assert_whole(pool);
}

#[test]
fn a_driver_without_xdp_is_named() {
    let Some([near, _far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let attached = XdpRedirect::attach("lo", XdpFilter::All, XdpAttach::Driver).map(|_| ());
    let none = XdpError::NoDriverXdp { interface: "lo".to_owned() };
    assert!(!none.is_refusal(), "the stack has it");
    assert_eq!(attached, Err(none));
    let attached = XdpRedirect::attach("lo", XdpFilter::All, XdpAttach::Either).unwrap();
    assert_eq!(attached.attached(), XdpAttach::Stack);
}

/// veth has no XDP with fewer queues to receive than the other end has to send.
#[test]
fn queues_that_the_driver_cannot_serve_are_named() {
    if wire(1).is_none() {
        return;
    }
    let [near, _far] = wire::create_uneven([1, 2]).unwrap();
    near.namespace.enter().unwrap();
    let attached = XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Driver).map(|_| ());
    let too_few = XdpError::DriverQueues { interface: INTERFACE.to_owned() };
    assert_eq!(attached, Err(too_few.clone()));
    assert!(!too_few.is_refusal() && too_few.to_string().contains("ethtool -L wire"), "{too_few}");
    let attached = XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Either).unwrap();
    assert_eq!(attached.attached(), XdpAttach::Stack);
}

/// The kernel keeps some of each unit, and newer ones want room for a frame as well.
#[test]
fn a_headroom_that_leaves_no_room_is_named() {
    let Some([near, _far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let options = PacketPoolOptions { count: 64, headroom: 1792, ..PacketPoolOptions::default() };
    let pool = Box::leak(Box::new(PacketPool::<_, SIZE>::create(arena, options).unwrap()));
    let options = XdpOptions { drop_long_frames: true, ..OPTIONS };
    let opened = XdpRegion::of_static(pool).open(INTERFACE, 0, options).map(|_| ());
    assert_eq!(opened, Err(XdpError::Headroom { headroom: 1792, unit: 2048 }));
    assert_whole(pool);
}

/// As many queues as large cards have.
#[test]
fn a_program_serves_every_queue_of_an_interface() {
    let Some([near, _far]) = wire(300) else { return };
    near.namespace.enter().unwrap();
    let pool = pool::<SIZE>(128);
    let socket = open(pool, 299, OPTIONS);
    let _redirect = redirect(&socket);
    close(socket);
    assert_whole(pool);
}

/// The kernel wants whole pages.
#[test]
fn a_region_in_the_middle_of_a_page_is_refused() {
    let Some([near, _far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let options = PacketPoolOptions { count: 1, caches: 1, cache_size: 1, headroom: 0 };
    // In an arena whose grains are smaller than a page, where a region begins depends on where the memory does.
    let begins_at = |shift: usize| {
        let memory = &mut Box::leak(Box::new_uninit_slice(64 << 10))[shift..];
        let arena = Box::leak(Box::new(ClientArena::create(memory, ClientArenaOptions::default()).unwrap()));
        &*Box::leak(Box::new(PacketPool::<_, SIZE>::create(&*arena, options).unwrap()))
    };
    let mut pools = (0..4096).step_by(256).map(begins_at);
    let pool = pools.find(|pool| pool.region().base().addr().get() % 4096 == 2048);
    let pool = pool.expect("a region in the middle of a page");
    let refused = XdpRegion::of_static(pool).open(INTERFACE, 0, OPTIONS).map(|_| ());
    assert_eq!(refused, Err(XdpError::Misaligned { offset: 2048, page: 4096 }));
}

#[test]
fn a_pool_without_a_cache_for_the_socket_says_so() {
    let Some([near, far]) = wire(1) else { return };
    near.namespace.enter().unwrap();
    let arena = ArenaVm::create(ArenaVmOptions::default()).unwrap();
    let options = PacketPoolOptions { count: 16, caches: 1, ..PacketPoolOptions::default() };
    let pool = PacketPool::<_, SIZE>::create(arena, options).unwrap();
    let cache = pool.cache().unwrap();
    // SAFETY: no socket is forgotten, and the one that is opened is closed before the pool is dropped.
    let mut region = unsafe { XdpRegion::new(&pool) };
    let refused = region.open(INTERFACE, 0, OPTIONS).map(|_| ());
    assert!(matches!(refused, Err(XdpError::Pool(tripoint_core::Error::Parameter(_)))), "{refused:?}");
    drop(cache);
    let mut socket = region.open(INTERFACE, 0, OPTIONS).unwrap();
    // Fewer units than the rings have entries.
    assert_eq!(socket.fill_waiting(), 16);
    let _redirect = redirect(&socket);
    let (raw, mut batch, patience) = (PacketSocket::open(&far).unwrap(), pool.batch::<1>(), Patience::new());
    assert!(raw.send(&frame(1, FRAME_MIN)));
    while batch.is_empty() {
        socket.receive(&mut batch);
        patience.wait(socket.report());
    }
    drop(batch);
    drop(socket);
    let counts = pool.counts();
    assert_eq!((counts.depot, counts.rings), (16, 0), "{counts:?}");
}
