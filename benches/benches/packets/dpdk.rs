//! The pools of DPDK: libraries of the system, if they are there.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use core::ptr::NonNull;

use crate::bursts::{CACHE_SIZE, COUNT, SIZE};

#[link(name = "packet_peer", kind = "static")]
#[link(name = "rte_mbuf")]
#[link(name = "rte_mempool")]
#[link(name = "rte_ring")]
#[link(name = "rte_eal")]
unsafe extern "C" {
    fn peer_begin() -> c_int;
    fn peer_begin_thread() -> c_int;
    fn peer_end_thread();
    fn peer_mempool(name: *const c_char, count: c_uint, size: c_uint, cache: c_uint) -> *mut c_void;
    fn peer_pktmbuf_pool(name: *const c_char, count: c_uint, size: c_uint, cache: c_uint) -> *mut c_void;
    fn peer_places(
        name: *const c_char,
        count: c_uint,
        size: c_uint,
        cache: c_uint,
        first: *mut *mut c_char,
    ) -> *mut c_void;
    fn peer_take(pool: *mut c_void, first: *const c_char, places: *mut u64, count: c_uint) -> c_int;
    fn peer_give(pool: *mut c_void, first: *mut c_char, places: *const u64, count: c_uint);
    fn peer_mempool_bursts(pool: *mut c_void, rounds: c_uint, burst: c_uint, writes: c_int) -> c_long;
    fn peer_pktmbuf_bursts(pool: *mut c_void, rounds: c_uint, burst: c_uint, writes: c_int) -> c_long;
}

/// Begins DPDK, without huge pages and devices.
///
/// # Panics
/// If that fails.
pub(crate) fn begin() {
    // SAFETY: the first call of the library, on the main thread.
    assert!(unsafe { peer_begin() } >= 0, "DPDK does not begin");
}

/// A pool of DPDK, with its cache for each thread.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    pool: NonNull<c_void>,
    bursts: unsafe extern "C" fn(*mut c_void, c_uint, c_uint, c_int) -> c_long,
}

// SAFETY: pools of DPDK are shared by threads.
unsafe impl Sync for Peer {}

impl Peer {
    /// An `rte_mempool`.
    pub(crate) fn mempool(name: &CStr) -> Self {
        // SAFETY: DPDK was begun, and the name is a string of C.
        let pool = unsafe { peer_mempool(name.as_ptr(), COUNT, SIZE as c_uint, CACHE_SIZE) };
        Self { pool: NonNull::new(pool).expect("memory for a mempool"), bursts: peer_mempool_bursts }
    }

    /// A pool of `rte_mbuf`s.
    pub(crate) fn pktmbuf(name: &CStr) -> Self {
        // SAFETY: DPDK was begun, and the name is a string of C.
        let pool = unsafe { peer_pktmbuf_pool(name.as_ptr(), COUNT, SIZE as c_uint, CACHE_SIZE) };
        Self { pool: NonNull::new(pool).expect("memory for a pool of mbufs"), bursts: peer_pktmbuf_bursts }
    }

    /// Takes bursts and gives them back.
    pub(crate) fn run(&self, rounds: usize, burst: usize, writes: bool) {
        // SAFETY: a pool of the kind that the function is for.
        let done = unsafe {
            (self.bursts)(self.pool.as_ptr(), rounds as c_uint, burst as c_uint, c_int::from(writes))
        };
        assert_eq!(done, 0, "the pool of DPDK ran out");
    }
}

/// An `rte_mempool` whose objects stand for the units of a region: the first object for the first unit, and so on.
pub(crate) struct Places {
    pool: NonNull<c_void>,
    first: *mut c_char,
}

impl Places {
    /// As many units as a pool has.
    pub(crate) fn new(name: &CStr) -> Self {
        let mut first = core::ptr::null_mut();
        // SAFETY: DPDK was begun, the name is a string of C, and there is a place for the first object.
        let pool = unsafe { peer_places(name.as_ptr(), COUNT, SIZE as c_uint, CACHE_SIZE, &raw mut first) };
        Self { pool: NonNull::new(pool).expect("memory for a mempool"), first }
    }
}

impl crate::receive::Units for Places {
    fn take(&mut self, offsets: &mut [u64]) {
        // SAFETY: the pool, its first object, and places for as many offsets.
        let taken = unsafe {
            peer_take(self.pool.as_ptr(), self.first, offsets.as_mut_ptr(), offsets.len() as c_uint)
        };
        assert_eq!(taken, 0, "the pool of DPDK ran out");
    }

    fn give(&mut self, offsets: &[u64]) {
        // SAFETY: the pool and its first object; the offsets were taken from it, by this thread, and are given back once.
        unsafe { peer_give(self.pool.as_ptr(), self.first, offsets.as_ptr(), offsets.len() as c_uint) };
    }
}

/// A thread's registration with DPDK, which gives it a cache in every pool.
pub(crate) struct Registered;

impl Registered {
    pub(crate) fn new() -> Self {
        // SAFETY: DPDK was begun; this thread is registered once, until it is dropped.
        assert_eq!(unsafe { peer_begin_thread() }, 0, "DPDK takes no more threads");
        Self
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: this thread was registered.
        unsafe { peer_end_thread() };
    }
}
