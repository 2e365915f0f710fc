//! AF_XDP without a pool: the rings of a socket, written and read by hand, and units that nothing checks.

use core::ffi::c_int;
use core::mem;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use tripoint::xdp::XdpSocket;

use crate::bursts::{Pool, SIZE};
use crate::receive::{BURST, ENTRIES, Units};

/// A ring of a socket.
struct Ring<T> {
    produced: NonNull<AtomicU32>,
    consumed: NonNull<AtomicU32>,
    first: NonNull<T>,
    next: u32,
}

impl<T: Copy> Ring<T> {
    /// Maps a ring. It stays mapped until the process ends.
    fn map(socket: BorrowedFd<'_>, place: libc::off64_t, offsets: libc::xdp_ring_offset) -> Self {
        let bytes = offsets.desc as usize + ENTRIES as usize * size_of::<T>();
        let (protection, descriptor) = (libc::PROT_READ | libc::PROT_WRITE, socket.as_raw_fd());
        // SAFETY: a new mapping, where the kernel chooses.
        let base = unsafe {
            libc::mmap64(
                ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                descriptor,
                place,
            )
        };
        assert_ne!(base, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        let base = NonNull::new(base.cast::<u8>()).unwrap();
        // SAFETY: the kernel has the parts of the ring at these offsets of the mapping.
        let at = |offset: u64| unsafe { base.add(offset as usize) };
        let (produced, consumed) = (at(offsets.producer).cast(), at(offsets.consumer).cast());
        Self { produced, consumed, first: at(offsets.desc).cast(), next: 0 }
    }

    fn word(word: NonNull<AtomicU32>) -> &'static AtomicU32 {
        // SAFETY: the word is in a mapping that stays.
        unsafe { word.as_ref() }
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the ring has this many entries, a power of two.
        unsafe { self.first.add((index & (ENTRIES - 1)) as usize) }
    }
}

/// The receiving rings of a socket, and units that are free.
pub(crate) struct Bare<U> {
    fill: Ring<u64>,
    received: Ring<libc::xdp_desc>,
    region: NonNull<u8>,
    units: U,
}

impl<U: Units> Bare<U> {
    /// Takes the rings of a socket. `units` are those of the pool that the kernel does not have.
    pub(crate) fn new(
        socket: XdpSocket<'static, SIZE>,
        pool: &'static Pool,
        make: impl FnOnce(&dyn Fn(u64) -> bool) -> U,
    ) -> Self {
        // SAFETY: numbers, for which zeros are a value.
        let mut offsets: libc::xdp_mmap_offsets = unsafe { mem::zeroed() };
        let mut size = size_of_val(&offsets) as libc::socklen_t;
        let descriptor = socket.as_fd().as_raw_fd();
        // SAFETY: a place for the answer, and one for its size.
        let result: c_int = unsafe {
            libc::getsockopt(
                descriptor,
                libc::SOL_XDP,
                libc::XDP_MMAP_OFFSETS,
                (&raw mut offsets).cast(),
                &raw mut size,
            )
        };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        let mut fill =
            Ring::<u64>::map(socket.as_fd(), libc::XDP_UMEM_PGOFF_FILL_RING as libc::off64_t, offsets.fr);
        let received = Ring::map(socket.as_fd(), libc::XDP_PGOFF_RX_RING, offsets.rx);
        fill.next = Ring::<u64>::word(fill.produced).load(Ordering::Relaxed);
        assert_eq!(fill.next, ENTRIES, "the kernel has as many units as the ring has entries");
        let has = |index: u32| {
            // SAFETY: the entry was written when the socket was opened.
            unsafe { fill.entry(index).read() }
        };
        let given: std::collections::BTreeSet<u64> =
            (0..ENTRIES).map(|index| has(index) / SIZE as u64).collect();
        let units = make(&|unit| !given.contains(&unit));
        // The socket stays, and the pool is there as long as the process.
        mem::forget(socket);
        Self { fill, received, region: pool.region().base(), units }
    }

    /// How many frames wait.
    pub(crate) fn waiting(&self) -> u32 {
        Ring::<u64>::word(self.received.produced).load(Ordering::Acquire).wrapping_sub(self.received.next)
    }

    /// Receives a burst, has the kernel have as many other units, calls `read` for each frame, and gives the units back.
    pub(crate) fn receive(&mut self, mut read: impl FnMut(&[u8])) -> usize {
        let count = (self.waiting() as usize).min(BURST);
        let mut frames = [(0, 0); BURST];
        for (place, frame) in frames[..count].iter_mut().enumerate() {
            // SAFETY: the kernel has written it, as `waiting` says.
            let entry = unsafe { self.received.entry(self.received.next + place as u32).read() };
            *frame = (entry.addr, entry.len);
        }
        self.received.next += count as u32;
        Ring::<u64>::word(self.received.consumed).store(self.received.next, Ordering::Release);
        let mut offsets = [0; BURST];
        self.units.take(&mut offsets[..count]);
        for offset in &offsets[..count] {
            // SAFETY: the kernel has taken as many entries as frames came.
            unsafe { self.fill.entry(self.fill.next).write(*offset) };
            self.fill.next += 1;
        }
        Ring::<u64>::word(self.fill.produced).store(self.fill.next, Ordering::Release);
        for ((address, length), offset) in frames[..count].iter().zip(&mut offsets) {
            // SAFETY: the kernel has written a frame there, and does not have the unit any more.
            read(unsafe {
                core::slice::from_raw_parts(self.region.as_ptr().add(*address as usize), *length as usize)
            });
            *offset = address & !(SIZE as u64 - 1);
        }
        self.units.give(&offsets[..count]);
        count
    }
}
