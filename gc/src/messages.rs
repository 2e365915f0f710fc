//! What a heap tells the program: objects to be finalized, and collections.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `message` | what is told, and the records that it waits in |
//! | `registrations` | objects that are registered for finalization, and those that wait in a queue |
//! | `mailbox` | the records of a heap: registered, waiting, free |

pub(crate) mod mailbox;
pub(crate) mod message;
pub(crate) mod registrations;
