//! Objects in the crate `slab`.

use core::num::NonZeroU32;

use slab::Slab;

use super::hand::Index;
use super::{NoMemory, Place, Places};
use crate::book::{Level, Order};

/// Objects by their key, which is one below their name.
pub struct Keyed<T> {
    slab: Slab<T>,
}

impl<T> Keyed<T> {
    /// Room for that many objects. It grows beyond.
    pub fn new(room: usize) -> Self {
        Self { slab: Slab::with_capacity(room) }
    }
}

// SAFETY: a name is one above the key of an entry, and no two live entries of a slab have one. Every key is checked.
unsafe impl<T> Place<T> for Keyed<T> {
    type Name = Index;

    #[inline(always)]
    fn put(&mut self, object: T) -> Result<Index, NoMemory> {
        let entry = self.slab.vacant_entry();
        let name = u32::try_from(entry.key() + 1).ok().and_then(NonZeroU32::new).ok_or(NoMemory)?;
        entry.insert(object);
        Ok(name)
    }

    #[inline(always)]
    unsafe fn get(&self, name: Index) -> &T {
        &self.slab[name.get() as usize - 1]
    }

    #[inline(always)]
    unsafe fn get_mut(&mut self, name: Index) -> &mut T {
        &mut self.slab[name.get() as usize - 1]
    }

    #[inline(always)]
    unsafe fn take(&mut self, name: Index) {
        self.slab.remove(name.get() as usize - 1);
    }
}

/// Orders and levels in slabs.
pub struct Slabs;

impl Places for Slabs {
    type Name = Index;
    type Orders = Keyed<Order<Index>>;
    type Levels = Keyed<Level<Index>>;
    const END_TOGETHER: bool = true;
}
