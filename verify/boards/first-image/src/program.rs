use core::mem::MaybeUninit;

use tripoint::{Arena, ClientArena, ClientArenaOptions, Error, Mfs, MfsOptions, PoolBox, UnitOf};

const MEMORY_SIZE: usize = 16 << 10;
static mut MEMORY: [MaybeUninit<u8>; MEMORY_SIZE] = [MaybeUninit::uninit(); MEMORY_SIZE];

struct Reading {
    tick: u32,
    millivolts: u32,
}

pub fn run() -> Result<(), Error> {
    let memory = &raw mut MEMORY;
    // SAFETY: this function runs once and nothing else names the static, so that this is the
    // only reference to it.
    let memory = unsafe { &mut *memory };
    let arena = ClientArena::create(memory, ClientArenaOptions { grain: Some(256), ..Default::default() })?;
    let options = MfsOptions { extend_by: 1 << 10, ..MfsOptions::default() };
    let readings = Mfs::create(&arena, UnitOf::<Reading>::new(), options)?;

    let first = PoolBox::new_in(Reading { tick: 1, millivolts: 1_200 }, &readings)?;
    assert_eq!((first.tick, first.millivolts), (1, 1_200));
    assert!(arena.sizes().reserved <= MEMORY_SIZE);
    Ok(())
}
