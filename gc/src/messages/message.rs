//! Messages, and the records that they wait in. Records are allocated before a collection needs them
//! (design/gc.md `.message.memory`).

use core::cell::Cell;
use core::ptr::NonNull;

use crate::list::Linked;
use crate::policy::report::{Cause, Collection};

/// A message from a heap to the program, from [`Mutator::next_message`](crate::Mutator::next_message).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// A collection has begun.
    Began {
        /// Its number, as in [`Collection::number`].
        number: u64,
        /// Why it began.
        cause: Cause,
    },
    /// A collection has ended.
    Ended(Collection),
    /// A collection in [steps](crate::Heap::step) was given up while it marked, because another collection or a walk
    /// began. It freed nothing.
    GivenUp {
        /// The number that it began with. The next collection has it again.
        number: u64,
    },
    /// No root and no object leads to this object any more. It was registered by
    /// [`Mutator::finalize`](crate::Mutator::finalize). The object, and what it refers to, is kept until the
    /// mutator that took the message gives way, and longer if it is stored in a root before.
    Finalizable(NonNull<u8>),
}

/// A registration for finalization.
#[derive(Debug)]
pub(crate) struct Guardian {
    next: Cell<Option<NonNull<Self>>>,
    /// The reference to the object.
    pub(crate) object: Cell<*mut u8>,
    /// Which of the registrations in its queue it was.
    pub(crate) number: Cell<u64>,
}

// SAFETY: the pointer is passed on and compared, and not followed. The record is used under the lock of the
// mailbox.
unsafe impl Send for Guardian {}

impl Linked for Guardian {
    fn next(&self) -> &Cell<Option<NonNull<Self>>> {
        &self.next
    }
}

impl Guardian {
    pub(crate) const fn new(object: NonNull<u8>) -> Self {
        Self { next: Cell::new(None), object: Cell::new(object.as_ptr()), number: Cell::new(0) }
    }
}

/// Room for a message about a collection.
#[derive(Debug)]
pub(crate) struct Notice {
    next: Cell<Option<NonNull<Self>>>,
    pub(crate) message: Cell<Option<Message>>,
}

// SAFETY: a message about a collection is numbers; the record is used under the lock of the mailbox.
unsafe impl Send for Notice {}

impl Linked for Notice {
    fn next(&self) -> &Cell<Option<NonNull<Self>>> {
        &self.next
    }
}

impl Notice {
    pub(crate) const fn new() -> Self {
        Self { next: Cell::new(None), message: Cell::new(None) }
    }
}
