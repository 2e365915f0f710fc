//! Collections, ports that were dropped, and how many objects there are of each kind.

use core::time::Duration;

use tripoint::gc::{Message, TypeCount};

use super::object::Object;
use super::store::Store;
use crate::failure::{Failure, Outcome};

impl Store<'_, '_> {
    /// Frees what nothing refers to. Returns how many bytes that was.
    pub(crate) fn collect(&mut self) -> Outcome<usize> {
        let found = self.mutator.collect(Duration::MAX).map_err(Failure::wrong)?;
        Ok(found.freed)
    }

    /// How many collections there were.
    pub(crate) fn collections(&self) -> u64 {
        self.mutator.heap().counts().collections.get()
    }

    /// The number of a port that nothing refers to any more. Each is returned once.
    pub(crate) fn next_dropped_port(&self) -> Option<usize> {
        while let Some(message) = self.mutator.next_message() {
            if let Message::Finalizable(object) = message {
                // SAFETY: only ports are registered. The object is kept until this thread gives way.
                return Some(unsafe { Object::at(object) }.word(0).addr());
            }
        }
        None
    }

    /// What there is of each kind: its name, the number of objects, and their bytes. Objects that nothing refers to are
    /// counted until they are freed.
    pub(crate) fn census(&mut self) -> Outcome<Vec<(&'static str, usize, usize)>> {
        let stopped = self.mutator.stop(Duration::MAX).map_err(Failure::wrong)?;
        let mut table = [TypeCount::default(); 16];
        let census = stopped.census(&mut table);
        Ok(census
            .types
            .iter()
            .map(|count| (count.type_name.unwrap_or("?"), count.objects, count.bytes))
            .collect())
    }
}
