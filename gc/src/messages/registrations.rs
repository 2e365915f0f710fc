//! Registrations for finalization whose objects wait in the same queue.

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;

use crate::messages::message::Guardian;
use crate::references::list::Linked;
use crate::references::queue::Queue;
use crate::references::scan::Scan;

/// Registrations for finalization, and the queue of those of them whose objects were found unreachable.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    /// Objects that are registered, and were not found unreachable.
    guarded: Queue<Guardian>,
    /// Objects that this collection found unreachable.
    dead: Queue<Guardian>,
    /// Objects that were found unreachable, and are kept until a mutator takes them.
    finalizable: Queue<Guardian>,
}

impl Registrations {
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

    /// As a root: passes the references to objects that wait to be taken to `scan`, which keeps these in a collection.
    pub(crate) fn keep_finalizable(&self, scan: &mut Scan<'_>) {
        self.finalizable.show_all(|guardian| fix(guardian, scan));
    }

    /// In a collection, when all is reached that roots lead to: finds the registered objects that were not reached.
    /// Returns whether there are any.
    pub(crate) fn find_dead(&mut self, scan: &Scan<'_>) -> bool {
        self.dead = self.guarded.separate(|guardian| scan.is_dead(guardian.object.get()));
        !self.dead.is_empty()
    }

    /// Keeps the objects that were just found dead, for the program to take.
    pub(crate) fn keep_dead(&mut self, scan: &mut Scan<'_>) {
        self.dead.show_all(|guardian| fix(guardian, scan));
        // Their objects are kept, and may have moved.
        self.guarded.show_all(|guardian| fix(guardian, scan));
        self.finalizable.join(core::mem::take(&mut self.dead));
    }

    /// Passes the references to all objects to `scan`.
    pub(crate) fn scan_all(&self, scan: &mut Scan<'_>) {
        self.keep_finalizable(scan);
        self.guarded.show_all(|guardian| fix(guardian, scan));
    }

    /// Shows the objects that wait to be taken, and those that are registered.
    pub(crate) fn show_objects(&self, show: &mut impl FnMut(*mut u8)) {
        self.finalizable.show_all(|guardian| show(guardian.object.get()));
        self.guarded.show_all(|guardian| show(guardian.object.get()));
    }

    /// Takes an object that was found unreachable. The queue no longer keeps it.
    pub(crate) fn take_finalizable(&mut self) -> Option<NonNull<Guardian>> {
        self.finalizable.shift()
    }
}

/// Fixes the reference of a registration to its object.
fn fix(guardian: &Guardian, scan: &mut Scan<'_>) {
    let mut object = guardian.object.get();
    scan.fix(&mut object);
    guardian.object.set(object);
}

/// Registrations in a list. They are used under the lock of the mailbox.
#[derive(Default)]
pub(crate) struct Guarded {
    next: Cell<Option<NonNull<Self>>>,
    registrations: Cell<Registrations>,
}

// SAFETY: the record is used under the lock of the mailbox, and its queues may be sent.
unsafe impl Send for Guarded {}

impl Linked for Guarded {
    fn next(&self) -> &Cell<Option<NonNull<Self>>> {
        &self.next
    }
}

impl Guarded {
    /// Calls `change` with the registrations, which has no way to reach them otherwise.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut Registrations) -> R) -> R {
        let mut registrations = self.registrations.take();
        let result = change(&mut registrations);
        self.registrations.set(registrations);
        result
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guarded")
    }
}
