//! Logs of points, replayed: the same calls on the same pools, in the same order
//! ([design/point-log.md](tripoint_telemetry::design::point_log)).
//!
//! | file | |
//! |---|---|
//! | `fates` | the first look at a log: what became of each reservation |
//! | `seen` | what is compared of an event |
//! | `hook` | keeps the events of the replay |
//! | `objects` | which objects are live, in the log and in the replay |
//! | `pool` | a pool of the replay, with its points |
//! | `borrowed` | the pool, which its points borrow |
//! | `packet_call` | a call on a pool of packets |
//! | `packet_pool` | a pool of packets, with its caches and rings |
//! | `heap_pool` | a pool of a heap, which does what the log says |
//! | `heap_account` | what the log says of heaps, held against itself |
//! | `classes` | makes pools from what the log says of them |
//! | `account` | what the buffers and the arena should have counted |
//! | `driver` | makes the calls, and compares |
//! | `replay` | a replay from the beginning of a log to its end |
//! | `state` | what there is at the end |
//! | `verdict` | what came of a replay |

mod account;
mod borrowed;
mod classes;
mod driver;
mod fates;
mod heap_account;
mod heap_pool;
mod hook;
mod objects;
mod packet_call;
mod packet_pool;
mod pool;
mod replay;
mod seen;
mod state;
mod verdict;

pub(crate) use self::classes::OtherClass;
pub(crate) use self::driver::Aim;
pub(crate) use self::replay::replay;
