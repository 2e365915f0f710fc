//! Objects from a general allocator, each in memory of its own.

use core::alloc::{GlobalAlloc, Layout};
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::stored::Pointer;
use super::{NoMemory, Place, Places};
use crate::book::{Level, Order};

/// The allocator of the whole program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Global;

// SAFETY: each call is passed on to the global allocator, with the same arguments.
unsafe impl GlobalAlloc for Global {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is not empty, as the caller says.
        unsafe { std::alloc::alloc(layout) }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the global allocator allocated it, with this layout, and the caller gives it up.
        unsafe { std::alloc::dealloc(object, layout) }
    }
}

/// Objects of one type, each of them a request to an allocator.
pub struct Heap<T, A: GlobalAlloc> {
    allocator: A,
    objects: PhantomData<T>,
}

impl<T, A: GlobalAlloc> Heap<T, A> {
    const NOT_EMPTY: () = assert!(size_of::<T>() > 0, "objects have a size");

    /// Objects of this allocator.
    pub const fn new(allocator: A) -> Self {
        Self { allocator, objects: PhantomData }
    }
}

// SAFETY: a name is the address of an allocation, and no two live ones have the same. It stays where it is until it is
// freed, wherever this is moved: a `GlobalAlloc` has no memory in itself.
unsafe impl<T, A: GlobalAlloc> Place<T> for Heap<T, A> {
    type Name = Pointer;

    #[inline(always)]
    fn put(&mut self, object: T) -> Result<Pointer, NoMemory> {
        () = Self::NOT_EMPTY;
        // SAFETY: the layout is of a type that has a size.
        let memory = NonNull::new(unsafe { self.allocator.alloc(Layout::new::<T>()) }).ok_or(NoMemory)?;
        // SAFETY: new memory of this layout, which nothing else uses.
        unsafe { memory.cast().write(object) };
        Ok(memory)
    }

    #[inline(always)]
    unsafe fn get(&self, name: Pointer) -> &T {
        // SAFETY: the address of a live object of this type, as the caller says; while `self` is borrowed, nothing writes
        // to it, because that borrows `self` mutably.
        unsafe { name.cast().as_ref() }
    }

    #[inline(always)]
    unsafe fn get_mut(&mut self, name: Pointer) -> &mut T {
        // SAFETY: the address of a live object of this type, as the caller says; while `self` is borrowed mutably, nothing
        // else reads or writes it.
        unsafe { name.cast().as_mut() }
    }

    #[inline(always)]
    unsafe fn take(&mut self, name: Pointer) {
        // SAFETY: a live object of this type, which the caller gives up.
        unsafe { name.cast::<T>().drop_in_place() };
        // SAFETY: this allocator allocated it with this layout, and it is not used any more.
        unsafe { self.allocator.dealloc(name.as_ptr(), Layout::new::<T>()) };
    }
}

/// Orders and levels from an allocator.
pub struct Heaps<A>(PhantomData<A>);

impl<A: GlobalAlloc> Places for Heaps<A> {
    type Name = Pointer;
    type Orders = Heap<Order<Pointer>, A>;
    type Levels = Heap<Level<Pointer>, A>;
    const END_TOGETHER: bool = false;
}
