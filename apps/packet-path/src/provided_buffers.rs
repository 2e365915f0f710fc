//! Datagrams of a UDP socket by io_uring, whose provided buffers are units of the pool (design/packet-path.md `.io-uring`).

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, Ordering};
use std::alloc::{alloc_zeroed, dealloc};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use io_uring::types::{BufRingEntry, CancelBuilder, Fd};
use io_uring::{IoUring, cqueue, opcode};
use tripoint::packets::{PacketBox, PacketCache, PacketRing};

use crate::af_xdp::{FRAME_BYTES, FramePool, RING_ENTRIES};
use crate::recvmmsg::grow;
use crate::source::{BURST, FrameCounts, Source, SourceCounts};

/// The buffers that the kernel may have.
const ENTRIES: u16 = RING_ENTRIES as u16;

/// The requests that may wait: there is one.
const REQUESTS: u32 = 2;

/// The group of the buffers.
const GROUP: u16 = 0;

/// The kernel's way to the buffers, and back. Nothing is written to them once this is dropped.
struct Kernel {
    ring: IoUring,
    socket: UdpSocket,
    buffers: BufferRing,
    /// Whether the kernel has the request.
    is_armed: bool,
}

impl Kernel {
    fn new(socket: UdpSocket) -> io::Result<Self> {
        let ring = IoUring::builder().setup_cqsize(2 * RING_ENTRIES).build(REQUESTS)?;
        let buffers = BufferRing::new()?;
        // SAFETY: the entries are there until the ring has ended, which `Drop` waits for.
        unsafe {
            let entries = buffers.entries.addr().get() as u64;
            ring.submitter().register_buf_ring_with_flags(entries, ENTRIES, GROUP, 0)?;
        }
        Ok(Self { ring, socket, buffers, is_armed: false })
    }

    /// Asks for datagrams from here on, with one call.
    fn arm(&mut self) -> io::Result<()> {
        let request = opcode::RecvMulti::new(Fd(self.socket.as_raw_fd()), GROUP).build();
        // SAFETY: the socket is open as long as the ring, and the buffers are valid to write until they are completed.
        let pushed = unsafe { self.ring.submission().push(&request) };
        pushed.map_err(io::Error::other)?;
        self.ring.submit()?;
        self.is_armed = true;
        Ok(())
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // Waits until the request has ended; without one this is an error.
        let _ = self.ring.submitter().register_sync_cancel(None, CancelBuilder::any());
        let _ = self.ring.submitter().unregister_buf_ring(GROUP);
    }
}

/// The ring in which the kernel finds empty buffers.
struct BufferRing {
    entries: NonNull<BufRingEntry>,
    tail: u16,
}

impl BufferRing {
    /// The kernel wants whole pages.
    const LAYOUT: Layout = match Layout::from_size_align(ENTRIES as usize * size_of::<BufRingEntry>(), 4096) {
        Ok(layout) => layout,
        Err(_) => panic!("the entries of a ring have a layout"),
    };

    fn new() -> io::Result<Self> {
        // SAFETY: the layout has a size.
        let entries = NonNull::new(unsafe { alloc_zeroed(Self::LAYOUT) });
        let entries = entries.ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: allocated just now with this size. Zeroed memory may not be there before it is written.
        unsafe { entries.write_bytes(core::hint::black_box(0), Self::LAYOUT.size()) };
        Ok(Self { entries: entries.cast(), tail: 0 })
    }

    /// Adds a buffer that the kernel may use once [`publish`](Self::publish) was called.
    fn add(&mut self, address: NonNull<u8>, length: u32, number: u16) {
        let index = usize::from(self.tail % ENTRIES);
        // SAFETY: the index is below the number of entries, all zeros are an entry, and the kernel does not read it yet. It
        // writes none.
        let entry = unsafe { self.entries.add(index).as_mut() };
        entry.set_addr(address.addr().get() as u64);
        entry.set_len(length);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the first entry is there, and has the tail in a word that is no part of it. Only this thread writes to it,
        // and the kernel reads it.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entries.as_ptr()).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout. The kernel does not look at it any more: `Kernel` has waited for that.
        unsafe { dealloc(self.entries.as_ptr().cast(), Self::LAYOUT) };
    }
}

/// A socket whose datagrams the kernel writes into units of the pool.
pub(crate) struct ProvidedBuffers<'pool> {
    pool: &'pool FramePool<'pool>,
    cache: PacketCache<'pool, FRAME_BYTES>,
    units: PacketRing<'pool, FRAME_BYTES>,
    kernel: Kernel,
    counts: SourceCounts,
}

impl<'pool> ProvidedBuffers<'pool> {
    /// Has the datagrams of `socket` come into units of the pool.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn open(pool: &'pool FramePool<'pool>, socket: UdpSocket) -> io::Result<Self> {
        grow(&socket)?;
        // The kernel waits for datagrams by itself.
        socket.set_nonblocking(false)?;
        let counts = SourceCounts {
            call: "io_uring_enter, to ask anew",
            receive_ring_most: Some(0),
            fill_ring_least: Some(usize::from(ENTRIES)),
            ..SourceCounts::default()
        };
        let (cache, units) =
            (pool.cache().map_err(io::Error::other)?, pool.ring().map_err(io::Error::other)?);
        let mut source = Self { pool, cache, units, kernel: Kernel::new(socket)?, counts };
        source.fill(usize::from(ENTRIES));
        source.kernel.arm()?;
        Ok(source)
    }

    /// Gives the kernel up to `count` free units.
    fn fill(&mut self, count: usize) {
        let (base, buffers) = (self.pool.region().base(), &mut self.kernel.buffers);
        self.units.fill(&mut self.cache, count, |unit| {
            // SAFETY: the offset is in the region of the pool.
            let address = unsafe { base.byte_add(unit.offset as usize) };
            buffers.add(address, unit.length, unit.number as u16);
        });
        buffers.publish();
    }
}

// A unit is a buffer, and its number that of the buffer.
const _: () = assert!(crate::receivers::FRAMES <= 1 << 16);

impl<'pool> Source for ProvidedBuffers<'pool> {
    type Frame = PacketBox<'pool, FRAME_BYTES>;

    fn receive(&mut self, frames: &mut Vec<Self::Frame>) {
        let Self { kernel, units, counts, pool, .. } = self;
        let headroom = pool.region().headroom();
        let completions = kernel.ring.completion();
        if completions.is_empty() {
            return;
        }
        counts.receive_ring_most = counts.receive_ring_most.max(Some(completions.len()));
        let left = units.counts().outstanding().saturating_sub(completions.len() as u64) as usize;
        counts.fill_ring_least = counts.fill_ring_least.map(|least| least.min(left));
        for completion in completions.take(BURST) {
            // Without buffers, the request ends. What waits stays with the socket.
            kernel.is_armed &= cqueue::more(completion.flags());
            let Some(number) = cqueue::buffer_select(completion.flags()) else { continue };
            let length = u32::try_from(completion.result()).unwrap_or(0);
            // What the kernel says wrongly is counted by the ring, and is no frame.
            frames.extend(units.complete_number(u32::from(number), headroom, length));
        }
    }

    fn release(&mut self, frame: Self::Frame) {
        self.cache.give(frame);
    }

    fn refill(&mut self) {
        let wanted = u64::from(ENTRIES).saturating_sub(self.units.counts().outstanding()) as usize;
        if wanted >= BURST {
            self.fill(wanted);
        }
        if !self.kernel.is_armed {
            self.counts.calls += 1;
            // A refusal is seen as silence.
            let _ = self.kernel.arm();
        }
    }

    fn counts(&self) -> SourceCounts {
        SourceCounts { refused: self.units.counts().refused, ..self.counts }
    }

    fn finish(self) -> FrameCounts {
        let Self { pool, cache, mut units, kernel, .. } = self;
        drop(kernel);
        // SAFETY: the kernel has no buffer any more: dropping it waited until its request had ended.
        let reclaimed = unsafe { units.reclaim() };
        drop(cache);
        FrameCounts::of(pool.counts(), reclaimed)
    }
}
