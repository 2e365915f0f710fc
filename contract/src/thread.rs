//! What is known of one thread: its slot, and how the thread finds it.
//!
//! | file | |
//! |---|---|
//! | `standing` | what a thread is to the contract |
//! | `observation` | an event as a detector sees it |
//! | `placed` | numbers in the slot, or in words of a hook that other processes read |
//! | `tally`, `heap_tally` | how many events of each class, and stops of heaps |
//! | `described` | what readers of the tallies have to know of the thread besides |
//! | `versioned` | words that are read as one value |
//! | `ring` | records of one producer for one consumer |
//! | `alarm` | the alarm of one class, which no burst displaces |
//! | `account` | what one class needs for a correct alarm |
//! | `records` | the records and alarms of one thread, in order |
//! | `observer` | the program's hook |
//! | `attendance` | whether a thread is present, and which phase it has seen |
//! | `errands` | what the coordinator asks, and the answers |
//! | `detectors` | what a guard asks of a thread's detectors |
//! | `slot` | one registered thread: written on it, read from anywhere |
//! | `everywhere` | what is known of every thread of the process |
//! | `call_site` | where a thread is, as it answers its supervisor |
//! | `sites` | where events happened, and how many at each place |
//! | `current` | the calling thread |
//! | `layout` | slots for a debugger without debug information |

pub(crate) mod account;
pub(crate) mod alarm;
pub(crate) mod attendance;
pub(crate) mod call_site;
#[cfg(feature = "std")]
pub(crate) mod current;
pub(crate) mod described;
pub(crate) mod detectors;
pub(crate) mod errands;
pub(crate) mod everywhere;
pub(crate) mod heap_tally;
#[cfg(not(tripoint_loom))]
pub(crate) mod layout;
pub(crate) mod observation;
pub(crate) mod observer;
pub(crate) mod placed;
pub(crate) mod records;
pub(crate) mod ring;
pub(crate) mod sites;
pub(crate) mod slot;
pub(crate) mod standing;
pub(crate) mod tally;
pub(crate) mod versioned;
