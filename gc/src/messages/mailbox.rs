//! The records of a heap's messages.

use core::ptr::NonNull;

use crate::list::List;
use crate::messages::message::{Guardian, Message, Notice};
use crate::messages::registrations::{Guarded, Registrations};
use crate::queue::Queue;
use crate::scans::scan::Scan;
use crate::segments::generation::Generation;

/// The messages of a heap, the registrations that may become messages, and room for more.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Registrations of objects that become messages of the heap.
    own: Guarded,
    /// Registrations of objects that wait in queues of their own.
    queues: List<Guarded>,
    /// Records that are used by nothing.
    unused_queues: List<Guarded>,
    unused_guardians: Queue<Guardian>,
    /// Messages about collections.
    notices: Queue<Notice>,
    /// Room for more of them.
    unused: Queue<Notice>,
}

impl Mailbox {
    pub(crate) fn new() -> Self {
        Self {
            own: Guarded::default(),
            queues: List::new(),
            unused_queues: List::new(),
            unused_guardians: Queue::default(),
            notices: Queue::default(),
            unused: Queue::default(),
        }
    }

    /// The registrations of objects that become messages of the heap.
    pub(crate) const fn own(&self) -> &Guarded {
        &self.own
    }

    /// Takes a record that is used by nothing.
    pub(crate) fn take_unused_queue(&mut self) -> Option<NonNull<Guarded>> {
        self.unused_queues.pop()
    }

    /// Begins a queue.
    ///
    /// # Safety
    /// - The record has no registrations, is in no list, and stays valid and in place until the heap is dropped.
    pub(crate) unsafe fn begin_queue(&mut self, queue: NonNull<Guarded>) {
        // SAFETY: the caller's record is in no list, and stays valid and in place until the heap is dropped.
        unsafe { self.queues.push(queue) };
    }

    /// Ends a queue, and forgets its registrations.
    ///
    /// # Safety
    /// - The queue was begun here, and not ended since.
    pub(crate) unsafe fn end_queue(&mut self, queue: NonNull<Guarded>) {
        self.queues.remove(queue);
        // SAFETY: the record is valid until the heap is dropped, as was promised when the queue was begun.
        let forgotten = unsafe { queue.as_ref() }.with(|registrations| registrations.unguard_all(|_| true));
        self.unused_guardians.join(forgotten);
        // SAFETY: it was taken off its list, and stays in place until the heap is dropped.
        unsafe { self.unused_queues.push(queue) };
    }

    /// Takes a record of a registration that is used by nothing.
    pub(crate) fn take_unused_guardian(&mut self) -> Option<NonNull<Guardian>> {
        self.unused_guardians.shift()
    }

    /// Takes out all registrations of objects of which `is_gone` is true.
    pub(crate) fn unguard_all(&mut self, is_gone: impl Fn(*mut u8) -> bool) -> Queue<Guardian> {
        let mut gone = Queue::default();
        self.for_each(|registrations| gone.join(registrations.unguard_all(&is_gone)));
        gone
    }

    /// Takes out all registrations of objects that may be of the generations up to `oldest`, and of which `is_gone` is
    /// true.
    pub(crate) fn unguard_young(
        &mut self,
        oldest: Generation,
        is_gone: impl Fn(*mut u8) -> bool,
    ) -> Queue<Guardian> {
        let mut gone = Queue::default();
        self.for_each(|registrations| gone.join(registrations.unguard_young(oldest, &is_gone)));
        gone
    }

    /// In a collection, as a root: keeps the objects that wait to be taken.
    pub(crate) fn keep_finalizable(&self, scan: &mut Scan<'_>) {
        self.for_each(|registrations| registrations.keep_finalizable(scan));
    }

    /// In a collection, when all is reached that roots lead to: keeps the registered objects of the generations up to
    /// `oldest` that were not reached,
    /// for the program to take. Returns whether there are any, whose references are to be scanned then.
    pub(crate) fn find_dead(&self, oldest: Generation, scan: &mut Scan<'_>) -> bool {
        // All are asked before one is kept: what is only reachable from another one is dead too
        // (design/gc.md `.final.stage`).
        let mut is_any_dead = false;
        self.for_each(|registrations| is_any_dead |= registrations.find_dead(oldest, scan));
        self.for_each(|registrations| registrations.keep_dead(oldest, scan));
        is_any_dead
    }

    /// Passes the references to all objects to `scan`: of those that are registered, and of those that wait to be taken.
    pub(crate) fn scan_all(&self, scan: &mut Scan<'_>) {
        self.for_each(|registrations| registrations.scan_all(scan));
    }

    /// Shows the objects that are registered, and those that wait to be taken. Where no object was when one was
    /// registered, there may be none.
    pub(crate) fn show_objects(&self, mut show: impl FnMut(*mut u8)) {
        self.for_each(|registrations| registrations.show_objects(&mut show));
    }

    fn for_each(&self, mut visit: impl FnMut(&mut Registrations)) {
        self.own.with(&mut visit);
        self.queues.for_each(|queue| queue.with(&mut visit));
    }

    /// Takes out the record of a queue: the heap is dropped.
    pub(crate) fn take_queue(&mut self) -> Option<NonNull<Guarded>> {
        self.unused_queues.pop().or_else(|| self.queues.pop())
    }

    /// Adds room for a message about a collection.
    ///
    /// # Safety
    /// - The record is in no queue, and stays valid and in place until it is taken out.
    pub(crate) unsafe fn make_room(&mut self, notice: NonNull<Notice>) {
        // SAFETY: the caller's record is in no queue, and stays valid and in place until it is taken out.
        unsafe { self.unused.append(notice) };
    }

    /// Leaves a message about a collection. Returns whether there was room.
    pub(crate) fn post(&mut self, message: Message) -> bool {
        let Some(notice) = self.unused.shift() else { return false };
        // SAFETY: a record that is taken out of a queue is valid as long as its heap, and only ever borrowed shared.
        unsafe { notice.as_ref() }.message.set(Some(message));
        // SAFETY: it is in no queue now, and stays in place.
        unsafe { self.notices.append(notice) };
        true
    }

    /// Takes the next message about a collection.
    pub(crate) fn take_notice(&mut self) -> Option<Message> {
        let notice = self.notices.shift()?;
        // SAFETY: a record that is taken out of a queue is valid as long as its heap, and only ever borrowed shared.
        let message = unsafe { notice.as_ref() }.message.take();
        // SAFETY: it is in no queue now, and stays in place.
        unsafe { self.unused.append(notice) };
        message
    }

    /// Takes out a record of a message about a collection: the heap is dropped.
    pub(crate) fn take_room(&mut self) -> Option<NonNull<Notice>> {
        self.unused.shift().or_else(|| self.notices.shift())
    }
}
