//! A packet on the receive side: from the kernel's receive ring to the program, and its unit back to the fill ring.
//!
//! Frames are sent over wires of the benchmark's own until some wait, and what is timed is how they are taken: what the kernel does
//! to bring them is not, but for `recvmmsg`, which has them brought. The others have the same rings of AF_XDP and other free lists.

use core::hint::black_box;
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

use benches::compare::{Contender, compare, print};
use crossbeam_queue::ArrayQueue;
use tripoint::packets::PacketBatch;
use tripoint::xdp::{XdpAttach, XdpFilter, XdpOptions, XdpRedirect, XdpRegion, XdpSocket};
use wire::{End, INTERFACE, PacketSocket, frames};

use crate::bare::Bare;
use crate::bursts::{self, COUNT, Pool, SIZE};

/// Frames that are taken at once.
pub(crate) const BURST: usize = 32;
/// The entries of the fill ring and of the receive ring.
pub(crate) const ENTRIES: u32 = 1024;
/// Frames that wait at once: fewer than a wire keeps.
const CHUNK: usize = 192;
/// How often, in a round.
const CHUNKS: usize = 16;
/// How long frames may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// A list of free units of a region, by the offsets of their first bytes.
pub(crate) trait Units {
    /// Takes as many as there are places.
    fn take(&mut self, offsets: &mut [u64]);
    /// Has units back that were taken.
    fn give(&mut self, offsets: &[u64]);
}

/// All offsets that are free.
fn free(is_free: &dyn Fn(u64) -> bool) -> impl Iterator<Item = u64> {
    (0..u64::from(COUNT)).filter(|&unit| is_free(unit)).map(|unit| unit * SIZE as u64)
}

/// A stack that checks nothing.
impl Units for Vec<u64> {
    fn take(&mut self, offsets: &mut [u64]) {
        let rest = self.len() - offsets.len();
        offsets.copy_from_slice(&self[rest..]);
        self.truncate(rest);
    }

    fn give(&mut self, offsets: &[u64]) {
        self.extend_from_slice(offsets);
    }
}

impl Units for ArrayQueue<u64> {
    fn take(&mut self, offsets: &mut [u64]) {
        offsets.fill_with(|| self.pop().expect("a free unit"));
    }

    fn give(&mut self, offsets: &[u64]) {
        offsets.iter().for_each(|offset| self.push(*offset).expect("a place"));
    }
}

/// What a program does with a frame.
#[derive(Clone, Copy)]
enum Read {
    /// Reads its first byte.
    First,
    /// Sums all its words, as a checksum does.
    All,
}

impl Read {
    #[inline(always)]
    fn read(self, frame: &[u8]) {
        match self {
            Self::First => black_box(frame[0]),
            Self::All => {
                let words = frame.as_chunks::<4>().0;
                let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
                black_box(sum as u8)
            }
        };
    }
}

/// What sends the frames of a contender.
struct Sender {
    far: PacketSocket,
    frames: Vec<Vec<u8>>,
}

impl Sender {
    fn send(&self) {
        assert!(self.frames.iter().all(|frame| self.far.send(frame)), "the wire takes no more");
    }
}

/// Sends frames and takes them, many times; returns how long they took to be taken. `waiting` says how many have come,
/// and `take` takes them.
fn round<T>(
    sender: &Sender,
    receiver: &mut T,
    waiting: impl Fn(&T) -> usize,
    take: impl Fn(&mut T),
) -> Duration {
    let mut time = Duration::ZERO;
    for _ in 0..CHUNKS {
        sender.send();
        let start = Instant::now();
        while waiting(receiver) < CHUNK {
            assert!(start.elapsed() < PATIENCE, "{} of {CHUNK} frames have come", waiting(receiver));
        }
        let start = Instant::now();
        take(receiver);
        time += start.elapsed();
    }
    time
}

/// A wire, whose near end hands its frames to a socket over a pool of its own.
fn socket(frames: &[Vec<u8>]) -> (Sender, XdpSocket<'static, SIZE>, &'static Pool) {
    let (sender, near) = sender(frames);
    let pool: &'static Pool = Box::leak(Box::new(bursts::pool()));
    let options = XdpOptions { receive_entries: ENTRIES, ..XdpOptions::default() };
    let open = || {
        let socket = XdpRegion::of_static(pool).open(INTERFACE, 0, options).unwrap();
        let redirect = XdpRedirect::attach(INTERFACE, XdpFilter::All, XdpAttach::Driver).unwrap();
        redirect.add(&socket).unwrap();
        // Until the process ends.
        core::mem::forget(redirect);
        Ok(socket)
    };
    let socket = near.namespace.within(open).unwrap();
    core::mem::forget(near);
    (sender, socket, pool)
}

fn sender(frames: &[Vec<u8>]) -> (Sender, End) {
    let [near, far] = wire::create(1).unwrap();
    let sender = Sender { far: PacketSocket::open(&far).unwrap(), frames: frames.to_vec() };
    core::mem::forget(far);
    (sender, near)
}

/// One that has the rings of a socket, and a free list.
fn bare<U: Units + 'static>(
    name: &'static str,
    frames: &[Vec<u8>],
    read: Read,
    make: impl FnOnce(&dyn Fn(u64) -> bool) -> U,
) -> Contender<'static> {
    let (sender, socket, pool) = socket(frames);
    let mut bare = Bare::new(socket, pool, make);
    let waiting = |bare: &Bare<U>| bare.waiting() as usize;
    Contender::new(name, move || {
        round(&sender, &mut bare, waiting, |bare| while bare.receive(|frame| read.read(frame)) > 0 {})
    })
}

fn pooled(frames: &[Vec<u8>], read: Read) -> Contender<'static> {
    let (sender, socket, pool) = socket(frames);
    let mut receiver = (socket, pool.batch::<BURST>());
    let waiting =
        |(socket, _): &(XdpSocket<'static, SIZE>, PacketBatch<'static, SIZE, BURST>)| socket.waiting();
    Contender::new("XdpSocket over a pool", move || {
        round(&sender, &mut receiver, waiting, |(socket, batch)| {
            while socket.receive(batch) > 0 {
                batch.iter().for_each(|frame| read.read(frame));
                socket.cache().give_batch(batch);
            }
        })
    })
}

/// `recvmmsg` into buffers that are always the same.
fn plain(frames: &[Vec<u8>], read: Read) -> Contender<'static> {
    let (sender, near) = sender(frames);
    let socket = PacketSocket::open(&near).unwrap();
    core::mem::forget(near);
    let buffers: &'static mut [[u8; SIZE]] = Box::leak(vec![[0; SIZE]; BURST].into_boxed_slice());
    let parts: &'static mut [libc::iovec] = buffers
        .iter_mut()
        .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: SIZE })
        .collect::<Vec<_>>()
        .leak();
    let mut messages: Vec<libc::mmsghdr> = parts
        .iter_mut()
        .map(|part| {
            // SAFETY: numbers and pointers, for which zeros are a value.
            let mut message: libc::mmsghdr = unsafe { core::mem::zeroed() };
            (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (part, 1);
            message
        })
        .collect();
    Contender::new("recvmmsg into plain buffers", move || {
        let take = |messages: &mut Vec<libc::mmsghdr>| {
            let (mut taken, start) = (0, Instant::now());
            while taken < CHUNK {
                // SAFETY: as many messages, each with a part, which is a buffer of its own.
                let count = unsafe {
                    libc::recvmmsg(
                        socket.as_fd().as_raw_fd(),
                        messages.as_mut_ptr(),
                        BURST as u32,
                        libc::MSG_DONTWAIT,
                        core::ptr::null_mut(),
                    )
                };
                let count = usize::try_from(count).unwrap_or(0);
                for message in &messages[..count] {
                    // SAFETY: the kernel has written as many bytes to the buffer of the message.
                    read.read(unsafe {
                        let part = &*message.msg_hdr.msg_iov;
                        core::slice::from_raw_parts(part.iov_base.cast(), message.msg_len as usize)
                    });
                }
                taken += count;
                assert!(start.elapsed() < PATIENCE, "{}", io::Error::last_os_error());
            }
        };
        round(&sender, &mut messages, |_| CHUNK, take)
    })
}

/// The frames of a chunk, of `shortest` to `longest` bytes.
fn of(shortest: usize, longest: usize) -> Vec<Vec<u8>> {
    let bytes = |number: usize| shortest + number * 7_919 % (longest - shortest + 1);
    (0..CHUNK).map(|number| frames::unnumbered(bytes(number))).collect()
}

/// Prints the worse of two measurements: that in which the pool stands worse beside the stack.
pub(crate) fn measure(rounds: usize) {
    if let Err(error) = wire::create(1) {
        println!("\nreceived packets are left out: wires between network namespaces need root: {error}");
        return;
    }
    for (title, frames, read) in [
        ("60 bytes, a byte read", of(60, 60), Read::First),
        ("60 bytes, all read", of(60, 60), Read::All),
        ("60 to 1,514 bytes, all read", of(60, 1514), Read::All),
    ] {
        let mut contenders = vec![
            pooled(&frames, read),
            bare("an unchecked stack (goal 0.97)", &frames, read, |is_free| {
                let mut stack = Vec::with_capacity(COUNT as usize);
                stack.extend(free(is_free));
                stack
            }),
            bare("ArrayQueue", &frames, read, |is_free| {
                let queue = ArrayQueue::new(COUNT as usize);
                free(is_free).for_each(|offset| queue.push(offset).unwrap());
                queue
            }),
        ];
        #[cfg(dpdk)]
        contenders.push(bare("rte_mempool (goal 1.00)", &frames, read, |is_free| places(title, is_free)));
        contenders.push(plain(&frames, read));
        let runs = [(); 2].map(|()| compare(&mut contenders, rounds, CHUNK * CHUNKS));
        let worse = runs.iter().min_by(|a, b| a[1].ratio.median.total_cmp(&b[1].ratio.median)).unwrap();
        print(&format!("a packet received in bursts of {BURST}, the worse of two runs; {title}"), worse);
    }
}

/// An `rte_mempool` in which what the kernel has is missing.
#[cfg(dpdk)]
fn places(name: &str, is_free: &dyn Fn(u64) -> bool) -> crate::dpdk::Places {
    let name = std::ffi::CString::new(&name[..name.len().min(20)]).unwrap();
    let mut places = crate::dpdk::Places::new(&name);
    let mut all = vec![0; COUNT as usize];
    all.chunks_mut(BURST).for_each(|some| places.take(some));
    all.sort_unstable();
    assert!(free(&|_| true).eq(all), "one behind the other");
    let free: Vec<u64> = free(is_free).collect();
    free.chunks(BURST).for_each(|some| places.give(some));
    places
}
