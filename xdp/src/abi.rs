//! The calls that AF_XDP is made of: sockets, their options, and memory that is shared with the kernel.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// What a socket is bound with so that frames may lie in several units. The oldest libc that is allowed does not have it.
pub(crate) const XDP_USE_SG: u16 = 1 << 4;

/// What a descriptor says of which the next one goes on with the frame.
pub(crate) const XDP_PKT_CONTD: u32 = 1 << 0;

/// A new socket. It belongs to the network namespace of the calling thread.
pub(crate) fn socket(domain: c_int, kind: c_int) -> io::Result<OwnedFd> {
    // SAFETY: opens a descriptor, and takes no pointer.
    let descriptor = unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Values that are plain bytes for the kernel.
///
/// # Safety
/// - All zeros are a value, and any bytes that the kernel writes are one. It names no memory.
pub(crate) unsafe trait Plain: Copy {
    /// The value whose bytes are zeros.
    fn zeroed() -> Self {
        // SAFETY: all zeros are a value of the type.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }
}

// SAFETY: a number.
unsafe impl Plain for c_int {}
// SAFETY: a number.
unsafe impl Plain for u32 {}
// SAFETY: consists of numbers.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: consists of numbers.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: consists of numbers.
unsafe impl Plain for libc::xdp_options {}
// SAFETY: consists of numbers.
unsafe impl Plain for libc::sockaddr_xdp {}

/// Sets an option of a socket.
pub(crate) fn set<T: Plain>(socket: &impl AsFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: a plain value names no memory.
    unsafe { set_any(socket, level, option, value) }
}

/// Memory of frames of `frame` bytes, each of which has `headroom` at its front, as the kernel wants it described.
pub(crate) fn memory(base: NonNull<u8>, bytes: usize, frame: u32, headroom: u32) -> libc::xdp_umem_reg {
    // SAFETY: it consists of numbers. Newer versions of libc have more of them, for which zero says that there is nothing.
    let mut memory: libc::xdp_umem_reg = unsafe { MaybeUninit::zeroed().assume_init() };
    memory.addr = base.as_ptr().expose_provenance() as u64;
    memory.len = bytes as u64;
    memory.chunk_size = frame;
    memory.headroom = headroom;
    memory
}

/// Registers memory with a socket, which the kernel reads and writes from then on.
///
/// # Safety
/// - The memory is writable for as long as the kernel knows it: as long as a socket is bound with it, and until the kernel has
///   let go of the queue (design/xdp.md `.home`).
/// - The program neither reads nor writes a part of it that is with the kernel.
pub(crate) unsafe fn register(socket: &impl AsFd, memory: &libc::xdp_umem_reg) -> io::Result<()> {
    // SAFETY: the caller answers for the memory that is named.
    unsafe { set_any(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, memory) }
}

/// # Safety
/// - The kernel may use what the value names.
unsafe fn set_any<T>(socket: &impl AsFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let (value_at, size) = (ptr::from_ref(value).cast::<c_void>(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value is valid to read for its size, and the caller answers for what it names.
    let result = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, value_at, size) };
    outcome(result).map(|_| ())
}

/// An option of a socket. What an older kernel does not have of it is zero.
pub(crate) fn get<T: Plain>(socket: &impl AsFd, level: c_int, option: c_int) -> io::Result<T> {
    let (mut value, mut size) = (T::zeroed(), size_of::<T>() as libc::socklen_t);
    let (value_at, size_at) = ((&raw mut value).cast::<c_void>(), &raw mut size);
    // SAFETY: the value is valid to write for its size, and so is the size.
    outcome(unsafe { libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, value_at, size_at) })?;
    Ok(value)
}

/// Binds a socket of AF_XDP.
pub(crate) fn bind(socket: &impl AsFd, address: &libc::sockaddr_xdp) -> io::Result<()> {
    let (address_at, size) = (ptr::from_ref(address).cast(), size_of_val(address) as libc::socklen_t);
    // SAFETY: the address is valid to read for its size.
    outcome(unsafe { libc::bind(socket.as_fd().as_raw_fd(), address_at, size) }).map(|_| ())
}

/// Has the kernel look at the fill ring of a socket.
pub(crate) fn wake_receiver(socket: &impl AsFd) -> io::Result<()> {
    let (nowhere, no_address) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: nothing is written: the buffer has no bytes, and no address is asked for.
    let result = unsafe {
        libc::recvfrom(
            socket.as_fd().as_raw_fd(),
            nowhere,
            0,
            libc::MSG_DONTWAIT,
            no_address,
            ptr::null_mut(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the kernel look at the transmit ring of a socket.
pub(crate) fn wake_sender(socket: &impl AsFd) -> io::Result<()> {
    // SAFETY: nothing is read: the buffer has no bytes, and there is no address.
    let result = unsafe {
        libc::sendto(socket.as_fd().as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A limit of the process.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    LockedMemory,
    OpenFiles,
}

/// A limit as it is now: `None` if there is none.
pub(crate) fn limit(of: Limit) -> Option<u64> {
    let of = match of {
        Limit::LockedMemory => libc::RLIMIT_MEMLOCK,
        Limit::OpenFiles => libc::RLIMIT_NOFILE,
    };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is valid to write.
    unsafe { libc::getrlimit(of, &raw mut limit) };
    // Half as wide on some targets.
    #[allow(clippy::useless_conversion, reason = "32-bit targets")]
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(u64::from(limit.rlim_cur))
}

/// The bytes of a page.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

fn outcome(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Memory that is mapped until this is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is an address and a number; its owner unmaps it, on any thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// The ring at `offset` of a socket.
    pub(crate) fn of_socket(socket: &impl AsFd, bytes: usize, offset: u64) -> io::Result<Self> {
        let descriptor = socket.as_fd().as_raw_fd();
        Self::new(bytes, libc::MAP_SHARED | libc::MAP_POPULATE, descriptor, offset)
    }

    /// Pages of zeros.
    pub(crate) fn of_zeros(bytes: usize) -> io::Result<Self> {
        Self::new(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    fn new(bytes: usize, flags: c_int, descriptor: c_int, offset: u64) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let offset = libc::off64_t::try_from(offset).unwrap_or(0);
        // SAFETY: a new mapping, where the kernel chooses: it takes the place of no other.
        let base = unsafe { libc::mmap64(ptr::null_mut(), bytes, protection, flags, descriptor, offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("a mapping at address zero"))?;
        Ok(Self { base, bytes })
    }

    pub(crate) const fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this size by `new`, and its owner, which alone refers to it, is gone.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
