//! Memory nodes on Linux: which there are, on which memory is to lie, and on which it does
//! ([design/arena-vm.md `.place`](crate::design::arena_vm)).

use core::ffi::{c_int, c_long, c_void};
use core::ptr::{self, NonNull};

use tripoint_core::NodeSet;

use super::PlatformError;
use super::errno::errno;
use crate::chosen_memory::Placement;

/// The most nodes that any kernel has: it refuses a shorter mask to write to.
const NODES_MAX: usize = 1024;
/// `MPOL_DEFAULT`, `MPOL_BIND`, `MPOL_INTERLEAVE`
const ANY: c_int = 0;
const BIND: c_int = 2;
const INTERLEAVE: c_int = 3;
/// `MPOL_F_MEMS_ALLOWED`
const ALLOWED: c_int = 1 << 2;
/// The pages that one call is asked about.
const PAGES: usize = 128;

fn refusal(call: &'static str, base: NonNull<u8>, size: usize) -> PlatformError {
    PlatformError { call, code: errno(), addr: base.addr().get(), size, limit: None }
}

/// The nodes whose memory the process may use. Nodes beyond those that a set can have are left out.
pub(super) fn usable() -> Result<NodeSet, PlatformError> {
    let mut mask = [0_usize; NODES_MAX / usize::BITS as usize];
    let (most, none) = (NODES_MAX, ptr::null_mut::<c_void>());
    // SAFETY: the mask has as many bits as the call may write. It writes nothing else, because there is no place for
    // a policy, and reads no memory.
    let answer: c_long =
        unsafe { libc::syscall(libc::SYS_get_mempolicy, none, mask.as_mut_ptr(), most, none, ALLOWED) };
    if answer != 0 {
        return Err(PlatformError { call: "memory_nodes", code: errno(), addr: 0, size: 0, limit: None });
    }
    Ok(NodeSet::from_mask(mask[0]))
}

/// Sets on which nodes pages of a range will lie.
///
/// # Safety
/// - The range is pages of a reservation.
pub(super) unsafe fn place(
    base: NonNull<u8>,
    size: usize,
    placement: Placement,
) -> Result<(), PlatformError> {
    let (policy, nodes) = match placement {
        Placement::Any => (ANY, NodeSet::default()),
        Placement::Bind(nodes) => (BIND, nodes),
        Placement::Interleave(nodes) => (INTERLEAVE, nodes),
    };
    // The kernel takes one bit fewer than this number says.
    let (mask, most) = ([nodes.mask()], NodeSet::MAX + 1);
    // SAFETY: the mask has as many bits as the call reads. The policy changes no byte of the range.
    let answer: c_long =
        unsafe { libc::syscall(libc::SYS_mbind, base.as_ptr(), size, policy, mask.as_ptr(), most, 0) };
    if answer == 0 { Ok(()) } else { Err(refusal("place", base, size)) }
}

/// Passes the address of each page of a range and the node that it lies on.
pub(super) fn locate(
    base: NonNull<u8>,
    size: usize,
    page_size: usize,
    visit: &mut dyn FnMut(usize, Option<usize>),
) -> Result<(), PlatformError> {
    let (mut pages, mut nodes) = ([ptr::null::<u8>(); PAGES], [0; PAGES]);
    // On 32-bit targets that many pages of 1 GiB are more than there are addresses.
    for first in (0..size).step_by(PAGES.saturating_mul(page_size)) {
        let count = PAGES.min((size - first).div_ceil(page_size));
        for (index, page) in pages[..count].iter_mut().enumerate() {
            *page = base.as_ptr().wrapping_add(first + index * page_size);
        }
        ask(&pages[..count], &mut nodes[..count]).map_err(|()| refusal("locate", base, size))?;
        for (page, &node) in pages[..count].iter().zip(&nodes) {
            visit(page.addr(), usize::try_from(node).ok());
        }
    }
    Ok(())
}

/// Asks for the node of each page; what has no memory has a negative number.
fn ask(pages: &[*const u8], nodes: &mut [c_int]) -> Result<(), ()> {
    let (this_process, query) = (0, ptr::null::<c_int>());
    // SAFETY: both slices have the same length, which the call gets. It writes to the second one, and moves nothing
    // because there are no nodes to move to. What pages point to is not accessed.
    let answer: c_long = unsafe {
        let (count, from, to) = (pages.len().min(nodes.len()), pages.as_ptr(), nodes.as_mut_ptr());
        libc::syscall(libc::SYS_move_pages, this_process, count, from, query, to, 0)
    };
    if answer == 0 { Ok(()) } else { Err(()) }
}
