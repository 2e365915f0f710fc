//! What is written by hand: an array, and in its free places the list of them.

use core::num::NonZeroU32;

use super::{NoMemory, Place, Places};
use crate::book::{Level, Order};
use crate::wide::room;

/// The name of an object in an array: its place, the first of which is 1.
pub type Index = NonZeroU32;

/// A place of the array. Nothing in it says which it is.
union Slot<T: Copy> {
    object: T,
    /// The next free place; 0 is the end.
    free: u32,
}

/// An array of objects, and the free place that was freed last.
pub struct Slots<T: Copy> {
    slots: Vec<Slot<T>>,
    free: u32,
    most: usize,
}

impl<T: Copy> Slots<T> {
    /// Room for that many objects. What it takes is untouched until it is used.
    pub fn new(most: usize) -> Self {
        Self::with(Vec::with_capacity(most + 1), most)
    }

    /// The same, all of it touched.
    pub fn touched(most: usize) -> Self {
        Self::touch(Vec::with_capacity(most + 1), most)
    }

    /// The same, on huge pages if the system has some.
    pub fn huge(most: usize) -> Self {
        Self::touch(room(most + 1), most)
    }

    fn touch(mut slots: Vec<Slot<T>>, most: usize) -> Self {
        slots.extend((0..=most).map(|_| Slot { free: 1 }));
        slots.clear();
        Self::with(slots, most)
    }

    fn with(mut slots: Vec<Slot<T>>, most: usize) -> Self {
        slots.push(Slot { free: 0 });
        Self { slots, free: 0, most }
    }
}

// SAFETY: a name is of a place that was in the list of free ones, or behind all that were used: of no live object. The
// array grows by `push` within its capacity, and objects stay at their index.
unsafe impl<T: Copy> Place<T> for Slots<T> {
    type Name = Index;

    #[inline(always)]
    fn put(&mut self, object: T) -> Result<Index, NoMemory> {
        if let Some(name) = NonZeroU32::new(self.free) {
            let slot = &mut self.slots[name.get() as usize];
            // SAFETY: places in the list of free ones have the next of them.
            self.free = unsafe { slot.free };
            *slot = Slot { object };
            return Ok(name);
        }
        let next = self.slots.len();
        if next > self.most {
            return Err(NoMemory);
        }
        self.slots.push(Slot { object });
        u32::try_from(next).ok().and_then(NonZeroU32::new).ok_or(NoMemory)
    }

    #[inline(always)]
    unsafe fn get(&self, name: Index) -> &T {
        // SAFETY: the place has a live object, as the caller says.
        unsafe { &self.slots[name.get() as usize].object }
    }

    #[inline(always)]
    unsafe fn get_mut(&mut self, name: Index) -> &mut T {
        // SAFETY: the place has a live object, as the caller says.
        unsafe { &mut self.slots[name.get() as usize].object }
    }

    #[inline(always)]
    unsafe fn take(&mut self, name: Index) {
        self.slots[name.get() as usize] = Slot { free: self.free };
        self.free = name.get();
    }
}

/// Orders and levels in arrays.
pub struct Hand;

impl Places for Hand {
    type Name = Index;
    type Orders = Slots<Order<Index>>;
    type Levels = Slots<Level<Index>>;
    const END_TOGETHER: bool = true;
}
