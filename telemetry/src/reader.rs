//! Reads the telemetry of another process, while that writes or afterwards, and changes its switches.
//!
//! | to | use |
//! |---|---|
//! | find processes with telemetry | [`discover`] |
//! | read the file of a process | [`Reader::attach`] |
//! | read a file with a path, or a core file | [`Reader::open`] |
//! | read all events, by time | [`Reader::events`] |
//! | read the events of one thread | [`Reader::ring_events`], [`Reader::lasting_events`] |
//! | read the counters | [`Reader::counters`] |
//! | estimate from samples by site, type, size class, thread or pool | [`RecordedEvent::sample`], [`Groups`](crate::Groups) |
//! | estimate bytes of each pool from all samples ever | [`Counters::samples`] |
//! | tell in which library a code address is, and where | [`Reader::objects`] |
//! | switch events and sampling on and off | [`SwitchesFile`] |
//!
//! The reader trusts nothing that it reads. What makes no sense is left out, and counted or listed. What
//! the reader allocates is bounded by [`MAX_RINGS`](crate::format::MAX_RINGS) and
//! [`MAX_ENTRIES`](crate::format::MAX_ENTRIES), not by numbers of the file. When a text is shown, characters
//! that cannot be printed are escaped.
//!
//! ```
//! use tripoint_telemetry::reader::{OpenError, Reader, Start};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let process = std::process::id();
//! match Reader::attach(process) {
//!     Ok(reader) => {
//!         let mut events = reader.events(Start::Oldest);
//!         while let Some(item) = events.poll() {
//!             println!("{item}"); // an event, or how many were missed
//!         }
//!     }
//!     Err(OpenError::NoneFound { .. }) => println!("process {process} has no telemetry"),
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Design: [design/telemetry.md `.reader`](crate::design::telemetry).

// | file | |
// |---|---|
// | `error` | the errors of opening a file |
// | `words` | sources of the words of a file |
// | `discover` | the processes that have telemetry |
// | `core_file` | a telemetry file in the core of a process |
// | `open` | what a file is, and where its parts are |
// | `file` | an open file |
// | `clock` | ticks to ns |
// | `values`, `event` | the fields of events, and events as typed values |
// | `ring` | the events of one ring, and how many were missed |
// | `merge` | the events of all rings, by time |
// | `table` | entries of tables, each read as a whole |
// | `counters`, `tallies`, `heaps` | what is counted without any event |
// | `sample`, `sums` | samples, and what they add up to |
// | `objects` | which program or library a code address is in |
// | `switches` | the switches of another process |

#![forbid(unsafe_code)]

mod clock;
mod core_file;
pub(crate) mod counters;
pub(crate) mod discover;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod file;
pub(crate) mod heaps;
pub(crate) mod merge;
pub(crate) mod objects;
pub(crate) mod open;
pub(crate) mod ring;
pub(crate) mod sample;
pub(crate) mod sums;
pub(crate) mod switches;
pub(crate) mod table;
pub(crate) mod tallies;
pub(crate) mod values;
pub(crate) mod words;

pub use self::counters::{
    ArenaCounters, Counters, ExtentCounters, PhaseCounters, PhaseNumbers, PointCounters, PoolCounters,
    PoolNumbers,
};
pub use self::discover::{Found, discover};
pub use self::error::OpenError;
pub use self::event::{Fields, Gap, Item, RecordedEvent};
pub use self::file::{Damage, FileInfo, Reader};
pub use self::heaps::HeapCounters;
pub use self::merge::Events;
pub use self::objects::{CodePlace, LoadedObject};
pub use self::ring::{RingCursor, RingInfo, Start};
pub use self::sample::RecordedSample;
pub use self::sums::SampleCounters;
pub use self::switches::SwitchesFile;
pub use self::table::Table;
pub use self::tallies::{ContractThread, TallyCounters, TallyNumbers};
pub use self::values::{CodeAddresses, Text};
