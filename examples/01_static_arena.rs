//! For firmware: all memory is one static array, and no allocator exists.
//!
//! The file is `no_std`; only `main`, which stands in for the board's reset handler, needs a
//! host. `verify/boards` runs programs like this one on emulated boards.
//!
//! ```sh
//! cargo run --example 01_static_arena
//! ```

#![no_std]

extern crate std; // for `main` alone

use core::mem::MaybeUninit;

use tripoint::{Arena, ClientArena, ClientArenaOptions, Error, Mfs, MfsOptions, PoolBox, UnitOf};

/// All the memory that the program allocates from, in bytes.
const MEMORY_SIZE: usize = 8 << 10;

static mut MEMORY: [MaybeUninit<u8>; MEMORY_SIZE] = [MaybeUninit::uninit(); MEMORY_SIZE];

/// The readings of which the device keeps the median.
const WINDOW: usize = 31;

/// One reading of a sensor.
struct Reading {
    tick: u32,
    millivolts: u32,
}

/// What the device found, to be shown.
struct Summary {
    median: u32,
    oldest_tick: u32,
    readings_that_fit: usize,
    arena_bytes: usize,
}

/// A sensor that swings around 1.2 V, with an outlier now and then.
fn sensor(tick: u32) -> Reading {
    let outlier = if tick % 50 == 7 { 2_000 } else { 0 };
    Reading { tick, millivolts: 1_190 + tick * 7 % 21 + outlier }
}

/// The device's main loop, for `ticks` turns.
fn run(memory: &mut [MaybeUninit<u8>], ticks: u32) -> Result<Summary, Error> {
    // The arena keeps its own tables in the memory, too: nothing lies anywhere else.
    let arena = ClientArena::create(memory, ClientArenaOptions::default())?;
    let options = MfsOptions { extend_by: 512, ..MfsOptions::default() };
    let readings = Mfs::create(&arena, UnitOf::<Reading>::new(), options)?;

    // A ring of boxes. The reading that a new one replaces is dropped, and freed, here.
    let mut window = [const { None }; WINDOW];
    for tick in 0..ticks {
        window[tick as usize % WINDOW] = Some(PoolBox::new_in(sensor(tick), &readings)?);
    }
    let mut sorted: [u32; WINDOW] =
        core::array::from_fn(|index| window[index].as_ref().map_or(0, |reading| reading.millivolts));
    sorted.sort_unstable();
    let oldest_tick = window.iter().flatten().map(|reading| reading.tick).min().unwrap_or(0);

    // What if a burst needs more than there is? A full arena returns an error, and what was
    // allocated before it stands.
    let mut burst = [const { None }; 1_000];
    let mut readings_that_fit = 0;
    for place in &mut burst {
        match PoolBox::new_in(sensor(ticks), &readings) {
            Ok(reading) => *place = Some(reading),
            Err(Error::Limit) => break,
            Err(other) => return Err(other),
        }
        readings_that_fit += 1;
    }
    drop(burst); // the device goes on: this memory is free again
    PoolBox::new_in(sensor(ticks), &readings)?;

    Ok(Summary {
        median: sorted[WINDOW / 2],
        oldest_tick,
        readings_that_fit,
        arena_bytes: arena.sizes().committed,
    })
}

fn main() -> Result<(), Error> {
    let memory = &raw mut MEMORY;
    // SAFETY: `main` runs once and nothing else names the static, so that this is the only
    // reference to it.
    let memory = unsafe { &mut *memory };
    let summary = run(memory, 10_000)?;
    std::println!(
        "median {} mV; room for {} more readings in {} bytes of arena",
        summary.median,
        summary.readings_that_fit,
        summary.arena_bytes
    );
    assert!((1_190..1_211).contains(&summary.median), "outliers do not move a median");
    assert_eq!(summary.oldest_tick, 10_000 - WINDOW as u32);
    assert!(summary.arena_bytes <= MEMORY_SIZE);
    assert!((1..1_000).contains(&summary.readings_that_fit), "the burst met the end of the memory");
    Ok(())
}
