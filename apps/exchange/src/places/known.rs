//! Objects at places that are known beforehand: what is left of the work if there is no allocator.

use super::hand::{Hand, Index};
use super::{NoMemory, Place, Places};
use crate::book::{Books, Level, Order};
use crate::places::hand::Slots;

/// An array, and the places that the next objects get.
pub struct Known<T> {
    objects: Vec<T>,
    plan: Vec<Index>,
    at: usize,
}

impl<T: Copy> Known<T> {
    /// Room for that many objects, all equal to `filler` until they are used.
    pub fn new(most: usize, filler: T) -> Self {
        Self { objects: vec![filler; most + 1], plan: Vec::new(), at: 0 }
    }

    /// Replaces what is left of the plan.
    pub fn follow(&mut self, plan: &[Index]) {
        self.plan.clear();
        self.plan.extend_from_slice(plan);
        self.at = 0;
    }
}

// SAFETY: a plan has the names that an array gave for the same calls, and that array gave no name of a live object; a plan of
// other calls would mix up objects, which are plain values. Every index is checked.
unsafe impl<T: Copy> Place<T> for Known<T> {
    type Name = Index;

    #[inline(always)]
    fn put(&mut self, object: T) -> Result<Index, NoMemory> {
        let name = *self.plan.get(self.at).ok_or(NoMemory)?;
        self.at += 1;
        self.objects[name.get() as usize] = object;
        Ok(name)
    }

    #[inline(always)]
    unsafe fn get(&self, name: Index) -> &T {
        &self.objects[name.get() as usize]
    }

    #[inline(always)]
    unsafe fn get_mut(&mut self, name: Index) -> &mut T {
        &mut self.objects[name.get() as usize]
    }

    #[inline(always)]
    unsafe fn take(&mut self, _name: Index) {}
}

/// An array that notes which names it gave.
pub struct Planner<T: Copy> {
    slots: Slots<T>,
    /// The names, in the order of the calls.
    pub plan: Vec<Index>,
}

impl<T: Copy> Planner<T> {
    /// Room for that many objects.
    pub fn new(most: usize) -> Self {
        Self { slots: Slots::new(most), plan: Vec::new() }
    }
}

// SAFETY: it is an array of slots, which is a place.
unsafe impl<T: Copy> Place<T> for Planner<T> {
    type Name = Index;

    fn put(&mut self, object: T) -> Result<Index, NoMemory> {
        let name = self.slots.put(object)?;
        self.plan.push(name);
        Ok(name)
    }

    unsafe fn get(&self, name: Index) -> &T {
        // SAFETY: a name of a live object of the slots, as the caller says.
        unsafe { self.slots.get(name) }
    }

    unsafe fn get_mut(&mut self, name: Index) -> &mut T {
        // SAFETY: a name of a live object of the slots, as the caller says.
        unsafe { self.slots.get_mut(name) }
    }

    unsafe fn take(&mut self, name: Index) {
        // SAFETY: a name of a live object of the slots, which the caller gives up.
        unsafe { self.slots.take(name) };
    }
}

/// Orders and levels at places that a plan says.
pub struct Planned;

impl Places for Planned {
    type Name = Index;
    type Orders = Known<Order<Index>>;
    type Levels = Known<Level<Index>>;
    const END_TOGETHER: bool = true;
}

/// Orders and levels whose places are noted.
pub struct Planning;

impl Places for Planning {
    type Name = Index;
    type Orders = Planner<Order<Index>>;
    type Levels = Planner<Level<Index>>;
    const END_TOGETHER: bool = Hand::END_TOGETHER;
}

impl Books<Planned> {
    /// Says which places the next orders and levels get.
    pub fn follow(&mut self, orders: &[Index], levels: &[Index]) {
        let (home, levels_home) = self.homes_mut();
        home.follow(orders);
        levels_home.follow(levels);
    }
}

impl Books<Planning> {
    /// Which places orders and levels got since this was asked last.
    pub fn take_plan(&mut self) -> [Vec<Index>; 2] {
        let (orders, levels) = self.homes_mut();
        [core::mem::take(&mut orders.plan), core::mem::take(&mut levels.plan)]
    }
}
