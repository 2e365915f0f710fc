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

mod af_xdp;
mod belief;
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
mod message;
mod moldudp64;
mod packet_mmap;
mod path_failure;
mod path_report;
mod picture;
mod provided_buffers;
mod receivers;
mod records;
mod recvmmsg;
mod run;
mod sender;
mod sent;
mod silence;
mod source;
mod window;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::cli::Options;
use crate::run::Ended;

/// The exit status if the system does not allow what was asked for.
const REFUSED: u8 = 2;

/// The exit status if a violation failed fast.
const FAILED_FAST: u8 = 3;

fn main() -> ExitCode {
    let (ended, failures) =
        run::run(&Options::from_command_line()).unwrap_or_else(|failure| (Ended::Whole, vec![failure]));
    for failure in &failures {
        // If this cannot be written either, there is nothing left to do.
        let _ = writeln!(io::stderr(), "packet-path: {failure}");
    }
    let signalled = stop::status();
    match ended {
        Ended::Refused => REFUSED.into(),
        Ended::FailedFast => FAILED_FAST.into(),
        Ended::Whole if !failures.is_empty() => ExitCode::FAILURE,
        Ended::Whole => signalled.map_or(ExitCode::SUCCESS, ExitCode::from),
    }
}
