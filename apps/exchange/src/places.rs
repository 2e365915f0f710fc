//! Where orders and levels live: the part of the program that is compared (design/exchange.md `.places`).
//!
//! | file | orders live in |
//! |---|---|
//! | `stored` | units of an `Mfs`, through a cache or directly |
//! | `point` | units of an `Mfs`, through an allocation point |
//! | `hand` | an array with a list of free places, written by hand |
//! | `known` | an array, at places that a plan says: no allocator at all |
//! | `heap` | a general allocator |
//! | `keyed` | the crate `slab` |

use core::fmt;

use crate::book::{Level, Order};

pub mod hand;
pub mod heap;
#[cfg(feature = "slab")]
pub mod keyed;
pub mod known;
pub mod point;
pub mod stored;

/// There is no memory for an object more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory;

/// A home of objects of one type.
///
/// # Safety
/// - [`Place::put`] gives a name that no live object of this place has. Until it is taken, [`Place::get`] and
///   [`Place::get_mut`] give that object for it, wherever the place is moved.
pub unsafe trait Place<T> {
    /// What an object is called: a pointer or an index.
    type Name: Copy + Eq;

    /// Moves an object in.
    ///
    /// # Errors
    /// If there is no memory; the object is dropped.
    fn put(&mut self, object: T) -> Result<Self::Name, NoMemory>;

    /// The object that has this name.
    ///
    /// # Safety
    /// - The name is of an object that was put into this place, and was not taken since.
    unsafe fn get(&self, name: Self::Name) -> &T;

    /// The object that has this name.
    ///
    /// # Safety
    /// - The name is of an object that was put into this place, and was not taken since.
    unsafe fn get_mut(&mut self, name: Self::Name) -> &mut T;

    /// Ends an object, and frees its memory.
    ///
    /// # Safety
    /// - The name is of an object that was put into this place, and was not taken since. It is not used any more.
    unsafe fn take(&mut self, name: Self::Name);
}

/// Homes of orders and of levels, which call their objects alike.
pub trait Places {
    /// What an order or a level is called.
    type Name: Copy + Eq;
    /// The home of orders.
    type Orders: Place<Order<Self::Name>, Name = Self::Name>;
    /// The home of levels.
    type Levels: Place<Level<Self::Name>, Name = Self::Name>;
    /// Whether all objects end with their home, so that it need not be emptied first.
    const END_TOGETHER: bool;
}

/// The homes that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
pub enum Home {
    /// An Mfs, through an MfsCache.
    Pools,
    /// An Mfs, through an allocation point.
    Point,
    /// An Mfs without a lock, and without a cache.
    Owned,
    /// An array with a list of free places, written by hand.
    Hand,
    /// The allocator of the system.
    System,
    /// The crate slab.
    #[cfg(feature = "slab")]
    Slab,
    /// The allocator mimalloc.
    #[cfg(feature = "mimalloc")]
    Mimalloc,
    /// The allocator jemalloc.
    #[cfg(feature = "jemalloc")]
    Jemalloc,
    /// The allocator snmalloc.
    #[cfg(feature = "snmalloc")]
    Snmalloc,
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use clap::ValueEnum;
        self.to_possible_value().map_or(Ok(()), |value| f.pad(value.get_name()))
    }
}
