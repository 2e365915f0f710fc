//! Finalization and messages, for the program (design/gc.md `.final.queue`, `.message.memory`).

use core::alloc::Layout;
use core::ptr::NonNull;

use tripoint_core::{Addr, Arena, BarrierPair, Error, PoolId, Result};

use crate::heaps::heap::Heap;
use crate::heaps::mutator::Mutator;
use crate::heaps::own::Own;
use crate::messages::message::{Guardian, Message, Notice};
use crate::messages::registrations::{Guarded, Registrations};
use crate::queue::Queue;
use crate::scans::keep::Segments;
use crate::segments::generation::Generation;

impl<A: Arena, B: BarrierPair> Mutator<'_, A, B> {
    /// Registers an object for finalization. The collection that finds that no root and no other reachable object leads
    /// to the object any more keeps it, with all that it refers to, and puts it in the queue of
    /// [messages](Mutator::next_message). That ends the registration. Objects that refer to each other are found in the
    /// same collection, and are in the queue in the order in which they were registered.
    ///
    /// An object that is registered several times is a message as many times. Each registration takes a few words of
    /// descriptor memory, and each collection of the object's generation looks at it.
    ///
    /// # Errors
    /// [`Error::Parameter`] if `object` is not an address in an automatic pool of the heap, and those of
    /// [`Arena::alloc_descriptor`]. `object` has to be a reference to an object that was committed. The next
    /// collection forgets a registration of anything else.
    pub fn finalize(&self, object: NonNull<u8>) -> Result<()> {
        let heap = self.heap();
        let is_of_heap = {
            let members = heap.members().lock();
            Own::new(heap.arena(), &members).find(Addr::of(object.as_ptr())).is_some()
        };
        if !is_of_heap {
            return Err(Error::Parameter("only an object of an automatic pool of the heap can be finalized"));
        }
        let guardian = heap.new_guardian(object)?;
        // SAFETY: it is in no queue, and stays in place until it is taken out and freed.
        heap.mailbox().lock().own().with(|registrations| unsafe { registrations.guard(guardian) });
        Ok(())
    }

    /// Takes back one registration of the object for finalization, and returns whether there was one. Takes time in
    /// proportion to the number of registrations.
    pub fn definalize(&self, object: NonNull<u8>) -> bool {
        let found =
            self.heap().mailbox().lock().own().with(|registrations| registrations.unguard(object.as_ptr()));
        // SAFETY: the record was just taken out of the mailbox of its heap.
        found.map(|guardian| unsafe { self.heap().free_guardian(guardian) }).is_some()
    }

    /// Takes the next message out of the queue of the heap: first messages about collections, if there is room for them
    /// ([`Heap::enable_messages`]), then objects to be finalized. Returns `None` if the queue is empty. Each message is
    /// taken once, by one of the mutators.
    pub fn next_message(&self) -> Option<Message> {
        let mut mailbox = self.heap().mailbox().lock();
        if let Some(message) = mailbox.take_notice() {
            return Some(message);
        }
        let guardian = mailbox.own().with(Registrations::take_finalizable)?;
        drop(mailbox);
        // SAFETY: the record was just taken out of the mailbox of its heap.
        let object = unsafe { self.heap().free_guardian(guardian) };
        NonNull::new(object).map(Message::Finalizable)
    }
}

impl<A: Arena, B: BarrierPair> Heap<'_, A, B> {
    /// Makes the record of a registration.
    pub(crate) fn new_guardian(&self, object: NonNull<u8>) -> Result<NonNull<Guardian>> {
        let unused = self.mailbox().lock().take_unused_guardian();
        let place = match unused {
            Some(unused) => unused,
            None => self.arena().alloc_descriptor(Layout::new::<Guardian>())?.cast(),
        };
        // SAFETY: this is memory with the layout of a record, which nothing uses.
        unsafe { place.write(Guardian::new(object)) };
        Ok(place)
    }

    /// Begins a queue of objects to be finalized.
    pub(crate) fn begin_queue(&self) -> Result<NonNull<Guarded>> {
        let unused = self.mailbox().lock().take_unused_queue();
        let place = match unused {
            Some(unused) => unused,
            None => self.arena().alloc_descriptor(Layout::new::<Guarded>())?.cast(),
        };
        // SAFETY: this is memory with the layout of a record, which nothing uses.
        unsafe { place.write(Guarded::default()) };
        // SAFETY: it is in no list, and stays in place until the heap is dropped.
        unsafe { self.mailbox().lock().begin_queue(place) };
        Ok(place)
    }

    /// Makes room for `count` more messages about collections, of which each collection leaves two. When no room is
    /// left, messages are lost and counted ([`HeapCounts::lost_messages`](crate::HeapCounts::lost_messages)). Before
    /// the first call there is no room, and lost messages are not counted.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`], after which there is room for those messages for which memory was found.
    pub fn enable_messages(&self, count: usize) -> Result<()> {
        for _ in 0..count {
            let place = self.arena().alloc_descriptor(Layout::new::<Notice>())?.cast::<Notice>();
            // SAFETY: this is fresh memory with the layout of a record.
            unsafe { place.write(Notice::new()) };
            // SAFETY: it is in no queue, and stays in place until the heap is dropped.
            unsafe { self.mailbox().lock().make_room(place) };
            self.expect_messages();
        }
        Ok(())
    }

    /// Leaves a message about a collection.
    pub(crate) fn tell(&self, message: Message) {
        if self.expects_messages() && !self.mailbox().lock().post(message) {
            self.counts().lost_messages.add(1);
        }
    }

    /// Forgets all registrations of objects of a pool, which is being dropped and still has its memory, and all pairs of
    /// transforms with such objects.
    pub(crate) fn forget_pool(&self, pool: PoolId) {
        let is_of_pool = |object: *mut u8| {
            self.arena().segment_base(Addr::of(object)).is_some_and(|(owner, _)| owner == pool)
        };
        let gone = self.mailbox().lock().unguard_all(is_of_pool);
        self.free_guardians(gone);
        self.roots().lock().for_each(|root| root.forget_all(is_of_pool));
    }

    /// In a collection, when all objects are known and none was reached: forgets registrations of addresses where no object begins.
    /// To follow them would read memory that is none.
    ///
    /// A registration is of the youngest generation until it was looked at, so all those that were not are among those up
    /// to `oldest`.
    pub(crate) fn forget_misplaced<S: Segments>(&self, oldest: Generation, segments: &S) {
        let is_misplaced = |object: *mut u8| !segments.is_object(Addr::of(object));
        let gone = self.mailbox().lock().unguard_young(oldest, is_misplaced);
        self.free_guardians(gone);
    }

    fn free_guardians(&self, mut gone: Queue<Guardian>) {
        while let Some(guardian) = gone.shift() {
            // SAFETY: the record was just taken out of the mailbox of its heap.
            unsafe { self.free_guardian(guardian) };
        }
    }
}
