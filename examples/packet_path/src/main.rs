//! Packets from the wire to the order book, in pool memory from the driver's ring to the last free.
//!
//! ```text
//!   namespace of the sender                      namespace of the receiver
//!   file or exchange --> sender ===== wire ====> hot thread: ring, window, book
//!                          ^ |  <--- requests --     all its memory from pools
//!                   empty  | | blocks
//!                   blocks | v
//!                       reference                 main thread: contract, requests
//! ```
//!
//! The reference has the records from in front of the wire, and the hot thread from behind it.
//!
//! Design: `design/packet-path.md`; the book: `design/order-book.md`.

// What is the packet path's own.
mod af_xdp;
mod book_run;
mod capture;
mod capture_report;
mod capture_run;
mod cli;
mod course;
mod datagram_writer;
mod disturbance;
mod ends;
mod frame;
mod gap_watch;
mod hot_packets;
mod link;
mod message;
mod moldudp64;
mod namespace;
mod packet_mmap;
mod path_failure;
mod path_report;
mod picture;
mod pinning;
mod provided_buffers;
mod receivers;
mod records;
mod recvmmsg;
mod redirect;
mod run;
mod sender;
mod sent;
mod source;
mod window;

// The order book, included as it is, because an example is no library. Its files name each other from the root of their
// crate, and their own tests run there.
#[allow(dead_code)]
#[path = "../../order_book/allocator_calls.rs"]
mod allocator_calls;
#[allow(dead_code)]
#[path = "../../order_book/book.rs"]
mod book;
#[allow(dead_code)]
#[path = "../../order_book/contract_report.rs"]
mod contract_report;
#[allow(dead_code)]
#[path = "../../order_book/coordinator.rs"]
mod coordinator;
#[allow(dead_code)]
#[path = "../../order_book/decimal.rs"]
mod decimal;
#[allow(dead_code)]
#[path = "../../order_book/event.rs"]
mod event;
#[allow(dead_code)]
#[path = "../../order_book/failure.rs"]
mod failure;
#[allow(dead_code)]
#[path = "../../order_book/faults.rs"]
mod faults;
#[allow(dead_code)]
#[path = "../../order_book/feed.rs"]
mod feed;
#[allow(dead_code)]
#[path = "../../order_book/generator.rs"]
mod generator;
#[allow(dead_code)]
#[path = "../../order_book/handoff.rs"]
mod handoff;
#[allow(dead_code)]
#[path = "../../order_book/historian.rs"]
mod historian;
#[allow(dead_code)]
#[path = "../../order_book/history.rs"]
mod history;
#[allow(dead_code)]
#[path = "../../order_book/history_report.rs"]
mod history_report;
#[allow(dead_code)]
#[path = "../../order_book/hot.rs"]
mod hot;
#[allow(dead_code)]
#[path = "../../order_book/hot_failure.rs"]
mod hot_failure;
#[allow(dead_code)]
#[path = "../../order_book/inject.rs"]
mod inject;
#[allow(dead_code)]
#[path = "../../order_book/json.rs"]
mod json;
#[allow(dead_code)]
#[path = "../../order_book/keeper.rs"]
mod keeper;
#[allow(dead_code)]
#[path = "../../order_book/levels.rs"]
mod levels;
#[allow(dead_code)]
#[path = "../../order_book/lock.rs"]
mod lock;
#[allow(dead_code)]
#[path = "../../order_book/lookout.rs"]
mod lookout;
#[allow(dead_code)]
#[path = "../../order_book/malformed.rs"]
mod malformed;
#[allow(dead_code)]
#[path = "../../order_book/market.rs"]
mod market;
#[allow(dead_code)]
#[path = "../../order_book/memory.rs"]
mod memory;
#[allow(dead_code)]
#[path = "../../order_book/options.rs"]
mod options;
#[allow(dead_code)]
#[path = "../../order_book/reader.rs"]
mod reader;
#[allow(dead_code)]
#[path = "../../order_book/record.rs"]
mod record;
#[allow(dead_code)]
#[path = "../../order_book/reference.rs"]
mod reference;
#[allow(dead_code)]
#[path = "../../order_book/rehearsal.rs"]
mod rehearsal;
#[allow(dead_code)]
#[path = "../../order_book/report.rs"]
mod report;
#[allow(dead_code)]
#[path = "../../order_book/steady.rs"]
mod steady;
#[allow(dead_code)]
#[path = "../../order_book/stop.rs"]
mod stop;
#[allow(dead_code)]
#[path = "../../order_book/summary.rs"]
mod summary;
#[allow(dead_code)]
#[path = "../../order_book/tally.rs"]
mod tally;
#[allow(dead_code)]
#[path = "../../order_book/telemetry.rs"]
mod telemetry;
#[allow(dead_code)]
#[path = "../../order_book/threads.rs"]
mod threads;
#[allow(dead_code)]
#[path = "../../order_book/wire.rs"]
mod wire;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::cli::Options;
use crate::run::Ended;

/// The exit status if the system does not allow what was asked for.
const REFUSED: u8 = 2;

/// The exit status if a violation failed fast.
const FAILED_FAST: u8 = 3;

/// Added to the number of the signal that ended a run, as shells do.
const SIGNALLED: u32 = 128;

fn main() -> ExitCode {
    let (ended, failures) =
        run::run(&Options::from_command_line()).unwrap_or_else(|failure| (Ended::Whole, vec![failure]));
    for failure in &failures {
        // If this cannot be written either, there is nothing left to do.
        let _ = writeln!(io::stderr(), "packet-path: {failure}");
    }
    let signalled = stop::signal().and_then(|signal| u8::try_from(SIGNALLED + signal).ok());
    match ended {
        Ended::Refused => REFUSED.into(),
        Ended::FailedFast => FAILED_FAST.into(),
        Ended::Whole if !failures.is_empty() => ExitCode::FAILURE,
        Ended::Whole => signalled.map_or(ExitCode::SUCCESS, ExitCode::from),
    }
}
