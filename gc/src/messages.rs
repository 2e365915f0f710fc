//! What a heap tells the program: objects to be finalized, and collections.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `message` | what is told, and the records that it waits in |
//! | `mailbox` | the records of a heap: registered, waiting, free |

pub(crate) mod mailbox;
pub(crate) mod message;
