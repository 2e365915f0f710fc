//! The arena, in a static, and the two pools in it.

use core::mem::MaybeUninit;

use tripoint::packets::{PacketBox, PacketCache, PacketPool, PacketPoolOptions, PacketRing};
use tripoint::{ClientArena, ClientArenaOptions, Mfs, MfsOptions, Result, UnitOf};
use tripoint_core::internal::Once;

/// The bytes of the arena's memory.
const SIZE: usize = 1 << 20;

/// The bytes of a unit of packets: a frame of Ethernet with the header of the device.
pub(crate) const UNIT: usize = 2048;

/// The units of the pool of packets.
const UNITS: u32 = 256;

/// The bytes in front of the data of a packet that is to be sent: room for its headers.
const HEADROOM: u32 = 64;

/// An arena that all code may use forever.
pub(crate) type Arena = &'static ClientArena<'static>;

/// The pool that the device knows.
pub(crate) type Packets = PacketPool<Arena, UNIT>;

/// A packet that is the program's.
pub(crate) type Packet = PacketBox<'static, UNIT>;

/// Free units.
pub(crate) type Cache = PacketCache<'static, UNIT>;

/// Units that are the device's.
pub(crate) type Ring = PacketRing<'static, UNIT>;

/// What a message becomes.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) number: u64,
    pub(crate) digest: u64,
}

/// The pool of records.
pub(crate) type Records = Mfs<Arena, UnitOf<Record>>;

/// The arena.
pub(crate) fn arena() -> Result<Arena> {
    #[repr(align(4096))]
    struct Memory([MaybeUninit<u8>; SIZE]);
    static mut MEMORY: Memory = Memory([MaybeUninit::uninit(); SIZE]);
    static ARENA: Once<ClientArena<'static>> = Once::new();

    ARENA.get_or_try_init(|| {
        let memory = &raw mut MEMORY;
        // SAFETY: nothing else names MEMORY; this is run by one caller at a time, and not again once it has succeeded.
        let memory = unsafe { &mut (*memory).0 };
        ClientArena::create(memory, ClientArenaOptions::default())
    })
}

/// The pool of packets. All its memory is taken here.
pub(crate) fn packets() -> Result<&'static Packets> {
    static PACKETS: Once<Packets> = Once::new();
    let options = PacketPoolOptions { count: UNITS, headroom: HEADROOM, caches: 1, cache_size: 64 };
    PACKETS.get_or_try_init(|| Packets::create(arena()?, options))
}

/// The pool of records.
pub(crate) fn records() -> Result<&'static Records> {
    static RECORDS: Once<Records> = Once::new();
    RECORDS.get_or_try_init(|| Mfs::create(arena()?, UnitOf::new(), MfsOptions::default()))
}
