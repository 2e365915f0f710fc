//! A word in an object in which there is a reference that may change.

use core::ptr::{self, NonNull};

use tripoint_core::internal::{AtomicPtr, Ordering};
use tripoint_core::{Addr, Arena, BarrierPair};

use crate::typed::inside::Inside;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;

/// A reference that may change, or none. Links of all kinds are made of it.
#[derive(Debug)]
pub(crate) struct LinkWord(AtomicPtr<u8>);

impl LinkWord {
    pub(crate) fn new<T: Referent + ?Sized>(to: Option<Gc<'_, T>>) -> Self {
        Self(AtomicPtr::new(word(to)))
    }

    /// The reference that was stored last, as far as this thread sees, which then sees the whole object.
    #[inline(always)]
    pub(crate) fn load(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.0.load(Ordering::Acquire))
    }

    /// Stores another reference, or none. After an object was made, references in it are changed here alone.
    // (design/gc-typed.md `.typed.write`)
    #[inline(always)]
    pub(crate) fn store<'g, T: Referent + ?Sized, A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'g, A, B>,
        to: Option<Gc<'g, T>>,
    ) {
        self.0.store(word(to), Ordering::Release);
        if to.is_some() {
            inside.note_write(Addr::of((&raw const self.0).cast::<u8>()));
        }
    }

    /// The reference, while the heap is stopped, so that nothing else uses it.
    #[inline]
    pub(crate) fn at_stop(&self) -> *mut u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes the reference while the heap is stopped.
    #[inline]
    pub(crate) fn fix_at_stop(&mut self, to: *mut u8) {
        self.0.store(to, Ordering::Relaxed);
    }
}

#[inline(always)]
fn word<T: Referent + ?Sized>(to: Option<Gc<'_, T>>) -> *mut u8 {
    to.map_or(ptr::null_mut(), |to| to.place().as_ptr())
}
