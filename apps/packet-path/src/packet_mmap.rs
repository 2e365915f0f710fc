//! Frames of a ring that the kernel shares, PACKET_MMAP: they are copied into units of the pool
//! (design/packet-path.md `.packet`).

use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, offset_of};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use tripoint::packets::{PacketBox, PacketCache};

use crate::af_xdp::{FRAME_BYTES, FramePool, RING_ENTRIES};
use crate::frame::payload;
use crate::source::{BURST, FrameCounts, Source, SourceCounts};

/// The bytes of a slot: a header of the kernel, and a frame.
const SLOT_BYTES: usize = 2048;

/// The bytes that the kernel allocates at once.
const BLOCK_BYTES: usize = 1 << 20;

const RING_BYTES: usize = RING_ENTRIES as usize * SLOT_BYTES;

/// A ring of slots that the kernel writes to.
struct Ring(NonNull<u8>);

impl Ring {
    /// Maps the ring of a socket.
    fn map(socket: &OwnedFd) -> io::Result<Self> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping, where the kernel chooses: it takes the place of no other. Its size is that of the ring.
        let memory = unsafe {
            libc::mmap(core::ptr::null_mut(), RING_BYTES, protection, flags, socket.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(memory.cast()).map(Self).ok_or_else(|| io::Error::other("a ring at address zero"))
    }

    /// Whose slot `index` is: the kernel's or ours.
    fn status(&self, index: usize) -> &AtomicU32 {
        let place = self.slot(index, offset_of!(libc::tpacket2_hdr, tp_status));
        // SAFETY: the word is in the mapping, which is there as long as this, and aligned: a slot begins at a multiple of its
        // size. Both sides use it as an atomic word.
        unsafe { place.cast::<AtomicU32>().as_ref() }
    }

    /// The frame in a slot that is ours.
    ///
    /// # Safety
    /// The kernel has handed the slot over, which was seen by a load with acquire, and does not get it back meanwhile.
    unsafe fn frame(&self, index: usize) -> &[u8] {
        // SAFETY: the slot begins with a header, which the kernel has written and does not write to any more.
        let header = unsafe { self.slot(index, 0).cast::<libc::tpacket2_hdr>().read() };
        let start = usize::from(header.tp_mac).min(SLOT_BYTES);
        let length = (header.tp_snaplen as usize).min(SLOT_BYTES - start);
        // SAFETY: both ends are in the slot, and all of it is bytes of the mapping.
        unsafe { core::slice::from_raw_parts(self.slot(index, start).as_ptr(), length) }
    }

    /// Byte `offset` of a slot.
    fn slot(&self, index: usize, offset: usize) -> NonNull<u8> {
        let place = (index % RING_ENTRIES as usize) * SLOT_BYTES + offset;
        // SAFETY: the place is in the mapping: an offset is at most the size of a slot.
        unsafe { self.0.add(place) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), RING_BYTES) };
    }
}

/// A packet socket with its ring, whose frames are copied into units of the pool.
pub(crate) struct PacketMmap<'pool> {
    pool: &'pool FramePool<'pool>,
    port: u16,
    cache: PacketCache<'pool, FRAME_BYTES>,
    /// Unmapped before the socket is closed.
    ring: Ring,
    socket: OwnedFd,
    next: usize,
    counts: SourceCounts,
}

impl<'pool> PacketMmap<'pool> {
    /// Has datagrams to `port` of an interface, in the namespace of this thread, come into a ring.
    ///
    /// # Errors
    /// The operating system's: without the privilege, [`io::ErrorKind::PermissionDenied`].
    pub(crate) fn open(pool: &'pool FramePool<'pool>, interface: u32, port: u16) -> io::Result<Self> {
        // SAFETY: opens a descriptor. Without a protocol nothing comes before it is bound.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, which nothing else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        set(&socket, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
        let ring = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: (RING_BYTES / BLOCK_BYTES) as u32,
            tp_frame_size: SLOT_BYTES as u32,
            tp_frame_nr: RING_ENTRIES,
        };
        set(&socket, libc::PACKET_RX_RING, &ring)?;
        let ring = Ring::map(&socket)?;
        bind(&socket, interface)?;
        let counts = SourceCounts { call: "no call", ..SourceCounts::default() };
        let cache = pool.cache().map_err(io::Error::other)?;
        Ok(Self { pool, port, cache, ring, socket, next: 0, counts })
    }
}

/// Binds the socket to an interface, for frames of IPv6.
fn bind(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    // SAFETY: all zeros are an address.
    let mut address: libc::sockaddr_ll = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_IPV6 as u16).to_be();
    address.sll_ifindex = interface.cast_signed();
    let size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is valid to read for its size.
    match unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets an option of packet sockets.
fn set<T>(socket: &OwnedFd, option: c_int, value: &T) -> io::Result<()> {
    let (value_at, size) = (core::ptr::from_ref(value).cast::<c_void>(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value is valid to read for its size, and the kernel refuses a size that is not the option's.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value_at, size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How many frames the kernel dropped because no slot was free.
fn dropped(socket: &OwnedFd) -> u64 {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut size = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: the statistics are valid to write for their size, and so is the size.
    unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut size,
        );
    }
    u64::from(statistics.tp_drops)
}

impl<'pool> Source for PacketMmap<'pool> {
    type Frame = PacketBox<'pool, FRAME_BYTES>;

    fn receive(&mut self, frames: &mut Vec<Self::Frame>) {
        for _ in 0..BURST {
            let status = self.ring.status(self.next);
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return;
            }
            // SAFETY: the slot is ours, as a load with acquire says, until the store below.
            let frame = unsafe { self.ring.frame(self.next) };
            match payload(frame, self.port) {
                None => self.counts.foreign += 1,
                Some(range) => {
                    // Without a free unit it waits in the ring.
                    let Some(mut unit) = self.cache.take() else { return };
                    if unit.extend_from_slice(&frame[range]).is_ok() {
                        frames.push(unit);
                    }
                }
            }
            self.ring.status(self.next).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % RING_ENTRIES as usize;
        }
    }

    fn release(&mut self, frame: Self::Frame) {
        self.cache.give(frame);
    }

    fn refill(&mut self) {}

    fn counts(&self) -> SourceCounts {
        SourceCounts { dropped: dropped(&self.socket), ..self.counts }
    }

    fn finish(self) -> FrameCounts {
        drop(self.cache);
        let counts = self.pool.counts();
        let outstanding = counts.units - counts.depot;
        FrameCounts { units: counts.units, home: counts.depot, reclaimed: 0, outstanding }
    }
}
