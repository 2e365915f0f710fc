//! Registrations for finalization whose objects wait in the same queue.

use core::cell::Cell;
use core::fmt;
use core::mem;
use core::ptr::NonNull;

use crate::list::Linked;
use crate::messages::message::Guardian;
use crate::queue::Queue;
use crate::scans::scan::Scan;
use crate::segments::generation::{GENERATIONS, Generation};

/// Registrations for finalization, and the queue of those of them whose objects were found unreachable.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    /// Objects that are registered, and were not found unreachable. None is younger than the generation whose queue it is
    /// in (design/gc.md `.final.generation`).
    guarded: [Queue<Guardian>; GENERATIONS],
    /// How many were registered.
    count: u64,
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
        self.count += 1;
        // SAFETY: the caller promises that the record is valid.
        unsafe { guardian.as_ref() }.number.set(self.count);
        // SAFETY: the caller promises that the record is in no queue, and stays valid and in place until it is taken out.
        unsafe { self.guarded[Generation::YOUNGEST.index()].append(guardian) };
    }

    /// Takes out a registration of `object`, which was not found dead so far.
    pub(crate) fn unguard(&mut self, object: *mut u8) -> Option<NonNull<Guardian>> {
        // There may be several: the earliest, wherever it is.
        let mut earliest = u64::MAX;
        for guarded in &self.guarded {
            guarded.show_all(|guardian| {
                if guardian.object.get() == object {
                    earliest = earliest.min(guardian.number.get());
                }
            });
        }
        let is_wanted = |guardian: &Guardian| guardian.number.get() == earliest;
        self.guarded.iter_mut().find_map(|guarded| guarded.separate(is_wanted).shift())
    }

    /// Takes out all registrations of objects of which `is_gone` is true.
    pub(crate) fn unguard_all(&mut self, is_gone: impl Fn(*mut u8) -> bool) -> Queue<Guardian> {
        let mut gone = self.unguard_young(Generation::LAST, &is_gone);
        gone.join(self.finalizable.separate(|guardian| is_gone(guardian.object.get())));
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
        for guarded in self.guarded.iter_mut().take(oldest.index() + 1) {
            gone.join(guarded.separate(|guardian| is_gone(guardian.object.get())));
        }
        gone
    }

    /// As a root: passes the references to objects that wait to be taken to `scan`, which keeps these in a collection.
    pub(crate) fn keep_finalizable(&self, scan: &mut Scan<'_>) {
        fix_all(&self.finalizable, scan);
    }

    /// In a collection of the generations up to `oldest`, when all is reached that roots lead to: finds the registered
    /// objects that were not reached. Returns whether there are any.
    pub(crate) fn find_dead(&mut self, oldest: Generation, scan: &mut Scan<'_>) -> bool {
        let dead = self.unguard_young(oldest, |object| {
            scan.count_registration();
            scan.is_dead(object)
        });
        self.dead = dead;
        !self.dead.is_empty()
    }

    /// Keeps the objects that were just found dead, for the program to take. The others that were looked at go to the
    /// queues of the generations in which they are now.
    pub(crate) fn keep_dead(&mut self, oldest: Generation, scan: &mut Scan<'_>) {
        self.dead.sort_by_key(|guardian| guardian.number.get());
        fix_all(&self.dead, scan);
        self.finalizable.join(mem::take(&mut self.dead));
        let mut kept = Queue::default();
        for guarded in self.guarded.iter_mut().take(oldest.index() + 1) {
            kept.join(mem::take(guarded));
        }
        while let Some(guardian) = kept.shift() {
            // SAFETY: records are valid until they are taken out of a queue for good.
            let generation = fix(unsafe { guardian.as_ref() }, scan);
            // SAFETY: it was just taken out of another queue, and stays in place.
            unsafe { self.guarded[generation.index()].append(guardian) };
        }
    }

    /// Passes the references to all objects to `scan`, which may change them to younger ones.
    pub(crate) fn scan_all(&mut self, scan: &mut Scan<'_>) {
        self.keep_finalizable(scan);
        let mut all = Queue::default();
        self.guarded.iter_mut().for_each(|guarded| all.join(mem::take(guarded)));
        fix_all(&all, scan);
        self.guarded[Generation::YOUNGEST.index()] = all;
    }

    /// Shows the objects that wait to be taken, and those that are registered.
    pub(crate) fn show_objects(&self, show: &mut impl FnMut(*mut u8)) {
        for registered in [&self.finalizable].into_iter().chain(&self.guarded) {
            registered.show_all(|guardian| show(guardian.object.get()));
        }
    }

    /// Takes an object that was found unreachable. The queue no longer keeps it.
    pub(crate) fn take_finalizable(&mut self) -> Option<NonNull<Guardian>> {
        self.finalizable.shift()
    }
}

/// Fixes the reference of a registration to its object. Returns the generation of the object.
fn fix(guardian: &Guardian, scan: &mut Scan<'_>) -> Generation {
    let mut object = guardian.object.get();
    let generation = scan.fix_one(&mut object);
    guardian.object.set(object);
    generation.unwrap_or(Generation::YOUNGEST)
}

/// Fixes the references of all registrations in a queue.
fn fix_all(registered: &Queue<Guardian>, scan: &mut Scan<'_>) {
    registered.show_all(|guardian| {
        fix(guardian, scan);
    });
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
