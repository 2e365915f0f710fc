//! The sum of a book, which the engine and the builder each keep in their own way (design/exchange.md `.engine.sums`).
//!
//! A book's sum is that of its orders, and of all pairs of orders that follow each other in a queue. Sums wrap, so the
//! order of additions does not matter.

use crate::book::Side;

const fn mix(value: u64) -> u64 {
    let mixed = (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

/// What an order adds to the sum of its book.
#[inline]
pub const fn of_order(id: u64, side: Side, price: u32, shares: u32) -> u64 {
    mix(mix(id ^ ((side as u64) << 63)) ^ ((price as u64) << 32 | shares as u64))
}

/// What two orders add that follow each other in a queue; nothing, if there is only one.
#[inline]
pub const fn of_pair(earlier: Option<u64>, later: Option<u64>) -> u64 {
    match (earlier, later) {
        (Some(earlier), Some(later)) => mix(mix(earlier).wrapping_add(later)),
        _ => 0,
    }
}
