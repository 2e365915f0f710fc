//! Finalization of typed objects: a queue for each type that asks for one.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use tripoint_core::{Arena, BarrierPair, Lock, Result};

use crate::messages::mailbox::Mailbox;
use crate::messages::registrations::{Guarded, Registrations};
use crate::typed::inside::Inside;
use crate::typed::reference::Gc;
use crate::typed::referent::Referent;
use crate::typed::roots::Roots;
use crate::typed::typed_objects::{OTHER_OBJECTS, TypedObjects};

/// A queue of objects of type `T` that nothing but their registration leads to any more.
///
/// The collection that finds that no root and no other reachable object leads to a [registered](FinalQueue::register)
/// object any more keeps the object, with all that it refers to, and puts it in the queue. That ends the registration.
/// The program [takes](FinalQueue::take) it from there when it likes: a collection calls none of its functions. Until
/// then the object is kept, and weak references to it are not cleared.
///
/// `T` is the object's type with `'static` in the place of the lifetime of its references, as for a
/// [`Rooted`](crate::Rooted). There may be several queues for a type. All threads may use a queue. When it is dropped,
/// its registrations are forgotten, and the objects in it may be freed.
///
/// ```
/// use core::time::Duration;
/// use std::collections::HashMap;
/// use tripoint_core::{ClientArena, ClientArenaOptions};
/// use tripoint_gc::{FinalQueue, Heap, HeapOptions, SweptOptions, TypedObjects, object_types};
///
/// object_types! {
///     /// Refers to what the program has open, by its number.
///     struct Port { number: u32 }
/// }
///
/// let mut memory = Box::new_uninit_slice(256 << 10);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let heap = Heap::create(&arena, HeapOptions::default())?;
/// let objects = TypedObjects::create(&heap, SweptOptions::default())?;
/// let mut mutator = objects.register()?;
///
/// // What has something to drop is not in objects.
/// let mut open = HashMap::from([(7, String::from("what is written to port 7"))]);
/// let closing: FinalQueue<'_, Port> = objects.final_queue()?;
/// mutator.try_enter(|inside| closing.register(inside, inside.alloc(Port { number: 7 })?))?;
///
/// assert!(mutator.collect(Duration::MAX).is_ok());
/// mutator.try_enter(|inside| {
///     while let Some(port) = closing.take(inside)? {
///         drop(open.remove(&port.number));
///     }
///     Ok(())
/// })?;
/// assert!(open.is_empty());
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub struct FinalQueue<'o, T: Referent + ?Sized> {
    /// Its registrations, under the lock of the mailbox.
    queue: NonNull<Guarded>,
    mailbox: &'o Lock<Mailbox>,
    roots: &'o Roots,
    to: PhantomData<fn(*const T) -> *const T>,
}

// SAFETY: the queue is used under the lock of the mailbox, which any thread may take. Its objects may be used by all
// threads (`Referent`).
unsafe impl<T: Referent + ?Sized> Send for FinalQueue<'_, T> {}
// SAFETY: a shared queue is used under the lock of the mailbox.
unsafe impl<T: Referent + ?Sized> Sync for FinalQueue<'_, T> {}

impl<A: Arena + Clone, B: BarrierPair> TypedObjects<'_, A, B> {
    /// Makes a queue for objects of type `T` that are to be finalized.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    pub fn final_queue<T: Referent + ?Sized>(&self) -> Result<FinalQueue<'_, T>> {
        let (mailbox, roots) = (self.heap().mailbox(), self.roots());
        Ok(FinalQueue { queue: self.heap().begin_queue()?, mailbox, roots, to: PhantomData })
    }
}

impl<T: Referent + ?Sized> FinalQueue<'_, T> {
    /// Calls `change` with the registrations, under the lock of the mailbox.
    fn with<R>(&self, change: impl FnOnce(&mut Registrations) -> R) -> R {
        let _lock = self.mailbox.lock();
        // SAFETY: the record stays in place until its heap is dropped, and is used under the lock.
        unsafe { self.queue.as_ref() }.with(change)
    }

    /// Registers an object. One that is registered several times is in the queue as many times. Each registration
    /// takes a few words of descriptor memory, and each collection of the object's generation looks at it.
    ///
    /// # Errors
    /// [`Error::Parameter`](tripoint_core::Error::Parameter) if `inside` is that of another [`TypedObjects`], and those
    /// of [`Arena::alloc_descriptor`].
    pub fn register<'g, A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'g, A, B>,
        object: Gc<'g, T::At<'g>>,
    ) -> Result<()> {
        if !inside.has_roots(self.roots) {
            return Err(OTHER_OBJECTS);
        }
        let guardian = inside.heap().new_guardian(object.place())?;
        // SAFETY: it is in no queue, and stays in place until it is taken out and freed.
        self.with(|registrations| unsafe { registrations.guard(guardian) });
        Ok(())
    }

    /// Takes an object out of the queue, for the rest of the closure, or for longer if it is stored in a root or an
    /// object. Objects that a collection found at the same time come in the order in which they were registered.
    ///
    /// # Errors
    /// [`Error::Parameter`](tripoint_core::Error::Parameter) if `inside` is that of another [`TypedObjects`].
    pub fn take<'g, A: Arena + Clone, B: BarrierPair>(
        &self,
        inside: &Inside<'g, A, B>,
    ) -> Result<Option<Gc<'g, T::At<'g>>>> {
        if !inside.has_roots(self.roots) {
            return Err(OTHER_OBJECTS);
        }
        let Some(guardian) = self.with(Registrations::take_finalizable) else { return Ok(None) };
        // SAFETY: the record was just taken out of the mailbox of this heap.
        let object = unsafe { inside.heap().free_guardian(guardian) };
        // SAFETY: an object of these objects was registered here, whose type was `T` with another lifetime
        // (`Referent::At`). The registration has kept it, and no collection begins as long as they are entered for `'g`.
        Ok(NonNull::new(object).map(|object| unsafe { Gc::at(object) }))
    }
}

impl<T: Referent + ?Sized> Drop for FinalQueue<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the queue was begun in this mailbox when this value was made, which is being dropped.
        unsafe { self.mailbox.lock().end_queue(self.queue) };
    }
}

impl<T: Referent + ?Sized> fmt::Debug for FinalQueue<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FinalQueue")
    }
}
