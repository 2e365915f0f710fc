//! The records of a heap's messages.

use core::ptr::NonNull;

use crate::messages::message::{Guardian, Message, Notice};
use crate::references::queue::Queue;
use crate::references::scan::Scan;

/// The messages of a heap, the registrations that may become messages, and room for more.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    /// Objects that are registered, and were not found unreachable.
    guarded: Queue<Guardian>,
    /// Objects that were found unreachable, and are kept until a mutator takes them.
    finalizable: Queue<Guardian>,
    /// Messages about collections.
    notices: Queue<Notice>,
    /// Room for more of them.
    unused: Queue<Notice>,
}

impl Mailbox {
    /// Registers an object.
    ///
    /// # Safety
    /// - The record is in no queue, and stays valid and in place until it is taken out.
    pub(crate) unsafe fn guard(&mut self, guardian: NonNull<Guardian>) {
        // SAFETY: the caller promises so.
        unsafe { self.guarded.append(guardian) };
    }

    /// Takes out a registration of `object`, which was not found dead so far.
    pub(crate) fn unguard(&mut self, object: *mut u8) -> Option<NonNull<Guardian>> {
        let mut is_found = false;
        let is_wanted = |guardian: &Guardian| {
            !is_found && {
                is_found = guardian.object.get() == object;
                is_found
            }
        };
        self.guarded.separate(is_wanted).shift()
    }

    /// Takes out all registrations of objects of which `is_gone` is true.
    pub(crate) fn unguard_all(&mut self, is_gone: impl Fn(*mut u8) -> bool) -> Queue<Guardian> {
        let mut gone = self.guarded.separate(|guardian| is_gone(guardian.object.get()));
        gone.join(self.finalizable.separate(|guardian| is_gone(guardian.object.get())));
        gone
    }

    /// In a collection, as a root: keeps the objects that wait to be taken.
    pub(crate) fn keep_finalizable(&self, scan: &mut Scan<'_>) {
        self.finalizable.show_all(|guardian| keep(guardian, scan));
    }

    /// In a collection, when all is reached that roots lead to: keeps the registered objects that were not reached,
    /// for the program to take. Returns whether there are any, whose references are to be scanned then.
    pub(crate) fn find_dead(&mut self, scan: &mut Scan<'_>) -> bool {
        // All are asked before one is kept: what is only reachable from another one is dead too
        // (design/gc.md `.final.stage`).
        let mut dead = self.guarded.separate(|guardian| scan.is_dead(guardian.object.get()));
        let mut is_any_dead = false;
        dead.show_all(|guardian| {
            is_any_dead = true;
            keep(guardian, scan);
        });
        // Their objects are kept, and may have moved.
        self.guarded.show_all(|guardian| keep(guardian, scan));
        self.finalizable.join(core::mem::take(&mut dead));
        is_any_dead
    }

    /// Adds room for a message about a collection.
    ///
    /// # Safety
    /// - The record is in no queue, and stays valid and in place until it is taken out.
    pub(crate) unsafe fn make_room(&mut self, notice: NonNull<Notice>) {
        // SAFETY: the caller promises so.
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

    /// Takes an object that was found unreachable. The mailbox no longer keeps it.
    pub(crate) fn take_finalizable(&mut self) -> Option<NonNull<Guardian>> {
        self.finalizable.shift()
    }

    /// Takes out a record of a message about a collection: the heap is dropped.
    pub(crate) fn take_room(&mut self) -> Option<NonNull<Notice>> {
        self.unused.shift().or_else(|| self.notices.shift())
    }
}

/// Keeps the object of a registration, and follows it if it moves.
fn keep(guardian: &Guardian, scan: &mut Scan<'_>) {
    let mut object = guardian.object.get();
    scan.fix(&mut object);
    guardian.object.set(object);
}
