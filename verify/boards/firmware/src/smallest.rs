//! The smallest image of use: an arena in a static, one pool, one allocation
//! point.

use core::mem::MaybeUninit;

use tripoint::{AllocationPoint, ClientArena, ClientArenaOptions, Mfs, MfsOptions, Result, UnitOf};

/// 32 bytes, which the caller writes.
pub type Packet = MaybeUninit<[u32; 8]>;

/// The pool of packets.
pub type Packets<'a> = Mfs<&'a ClientArena<'static>, UnitOf<Packet>>;

const GRAIN: usize = 256;

static mut MEMORY: [MaybeUninit<u8>; 8 * GRAIN] = [MaybeUninit::uninit(); 8 * GRAIN];

/// Allocates packets until memory is exhausted. Returns true if there were
/// enough.
///
/// # Safety
/// - It is called once.
#[must_use]
pub unsafe fn run() -> bool {
    let memory = &raw mut MEMORY;
    // SAFETY: no other code names MEMORY, and the caller calls this once.
    let memory = unsafe { &mut *memory };
    allocate_all(memory).is_ok_and(|count| count >= 32)
}

fn allocate_all(memory: &'static mut [MaybeUninit<u8>]) -> Result<u32> {
    let arena = ClientArena::create(memory, ClientArenaOptions { grain: Some(GRAIN), event_hook: None })?;
    let options = MfsOptions { extend_by: GRAIN, fill_size: GRAIN };
    let packets = Mfs::create(&arena, UnitOf::new(), options)?;
    let mut point = AllocationPoint::create(&packets)?;
    let mut count = 0;
    while let Some(packet) = alloc_packet(&mut point) {
        packet.write([count; 8]);
        count += 1;
    }
    Ok(count)
}

/// One allocation, outlined so that its size can be read from the image.
#[inline(never)]
#[unsafe(no_mangle)]
pub fn alloc_packet<'a>(point: &mut AllocationPoint<'a, Packets<'a>>) -> Option<&'a mut Packet> {
    point.alloc(Packet::uninit()).ok()
}
