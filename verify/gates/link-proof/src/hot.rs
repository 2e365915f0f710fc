//! The hot path: objects from pools on memory that is there from the start.

use core::hint::black_box;
use core::mem::MaybeUninit;

use tripoint::{
    AllocationPoint, ClientArena, ClientArenaOptions, ManualPool, Mfs, MfsOptions, Mvff, MvffOptions,
    PoolBox, Result, UnitOf,
};

/// Bytes the arena has.
const MEMORY: usize = 256 << 10;

/// Turns of the loop.
const TURNS: u64 = 1_000;

/// An order, as an example.
struct Order {
    price: u64,
    quantity: u64,
}

/// Makes the pools and runs some turns.
///
/// # Errors
/// Those of the arena and the pools.
pub(crate) fn run() -> Result<()> {
    let mut memory = [MaybeUninit::uninit(); MEMORY];
    let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
    let orders = Mfs::create(&arena, UnitOf::<Order>::new(), MfsOptions::default())?;
    let scratch = Mvff::create(&arena, MvffOptions::default())?;
    let mut point = AllocationPoint::create(&scratch)?;
    for number in 0..TURNS {
        black_box(turn(number, &orders, &mut point)?);
    }
    Ok(())
}

/// One turn: an object of its own, and a batch.
fn turn<P: ManualPool, S: ManualPool>(
    number: u64,
    orders: &P,
    point: &mut AllocationPoint<'_, S>,
) -> Result<u64> {
    let order = PoolBox::new_in(Order { price: number, quantity: 1 }, orders)?;
    let mut prices = point.batch(4)?;
    for level in 0..4 {
        // There is room for four.
        let _ = prices.push(order.price + level);
    }
    #[cfg(feature = "vec-push")]
    push(order.price);
    Ok(prices.commit_boxed().iter().sum::<u64>() * order.quantity)
}

/// This is what the proof must refuse.
#[cfg(feature = "vec-push")]
#[cfg_attr(feature = "unaudited", allow(clippy::disallowed_types))]
fn push(price: u64) {
    let mut prices = alloc::vec::Vec::new();
    prices.push(price);
    black_box(prices);
}
