//! The operations on a pool and on allocation points over it.

use core::alloc::Layout;

/// What happens between a reserve and what ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// How often the allocation point is tripped.
    pub trips: usize,
    /// How often the pool is flipped; nothing in manual pools.
    pub flips: usize,
}

/// Something done to a pool or an allocation point.
///
/// Numbers that choose (a point, an object, a frame) are counted cyclically among
/// what there is; if there is nothing, nothing is done. Operations that a class
/// does not have are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Allocates an object in the pool.
    Alloc(Layout),
    /// Frees an object, however it was allocated.
    Free(usize),
    /// Allocates objects together in the pool.
    AllocMany {
        /// Their layout.
        layout: Layout,
        /// How many at most.
        most: usize,
    },
    /// Frees objects of one layout together.
    FreeMany {
        /// The first of them.
        object: usize,
        /// How many at most, in the order of addresses.
        most: usize,
    },
    /// Resizes an object, if the class says that it may stay where it is.
    Resize {
        /// Which object.
        object: usize,
        /// The new size, in bytes.
        size: usize,
    },
    /// Takes a fill, as a buffer would, and allocates objects in it.
    Fill {
        /// The layout of the objects.
        layout: Layout,
        /// How many, if there is room.
        objects: usize,
    },
    /// Returns the rest of such a fill.
    EmptyFill(usize),
    /// The whole life of an allocation point: objects are allocated in it, then it
    /// is emptied and dropped.
    Point {
        /// The layout of the objects.
        layout: Layout,
        /// How many.
        objects: usize,
    },
    /// Reserves memory for an object, and commits or abandons it.
    Reserve {
        /// In which allocation point.
        point: usize,
        /// The layout of the object.
        layout: Layout,
        /// Whether it is committed.
        commit: bool,
        /// What happens meanwhile.
        between: Between,
    },
    /// Reserves room for several objects, and commits some of them or none.
    Batch {
        /// In which allocation point.
        point: usize,
        /// For how many objects there is room.
        capacity: usize,
        /// How many are offered.
        pushed: usize,
        /// Whether what was pushed is committed.
        commit: bool,
        /// What happens meanwhile.
        between: Between,
    },
    /// Empties an allocation point.
    EmptyPoint(usize),
    /// Trips an allocation point, or a cache.
    Trip(usize),
    /// Flips the pool.
    Flip,
    /// Begins a frame.
    Push(usize),
    /// Ends a frame, and those begun after it.
    Pop {
        /// In which allocation point.
        point: usize,
        /// Which of its frames.
        frame: usize,
    },
    /// From now on the pool refuses to fill buffers, or no longer (test pools only).
    RefuseFills(bool),
    /// From now on that many bytes of each fill are allocated already (test pools only).
    Preallocate(usize),
    /// Takes an object from a cache.
    Get {
        /// From which cache.
        cache: usize,
        /// The layout of the object.
        layout: Layout,
    },
    /// Frees an object in a cache.
    Put {
        /// In which cache.
        cache: usize,
        /// Which object.
        object: usize,
    },
    /// Makes a cache return all that it keeps to the pool.
    Flush(usize),
    /// Checks the pool deeply, and walks it.
    Check,
}
