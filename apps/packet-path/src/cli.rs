//! The command line.

use core::str::FromStr;
use core::time::Duration;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};
use order_book::inject::Injection;
use order_book::options::{FeedOptions, HotOptions};

use crate::disturbance::Odds;

/// The longest run, in seconds: a day.
const SECONDS_MAX: u64 = 86_400;

/// Keeps a full-depth order book from packets: a sender, a wire and a receiver, whose buffers are units of a pool
/// from the ring of the driver to the last free.
///
/// Makes two network namespaces and a wire between them, which only this process knows: they
/// have no way out, and go with the process however it ends. The sender replays the feed as
/// MoldUDP64 datagrams, the receiver recovers their order, asks for what was lost, and keeps
/// the book under contract, as `order-book` does.
///
/// Ctrl-C and SIGTERM end the input: what was read by then is sent and reported. A second
/// one, half a second later or more, ends the process at once.
///
/// Exit status: 0 if all went well, 1 if something failed, 2 for a bad option or what the
/// system does not allow, 3 if a violation failed fast, 128 and its number after a signal.
#[derive(Debug, Parser)]
#[command(
    name = "packet-path",
    version,
    mut_arg("inject", |inject| inject.help(
        "A deliberate violation, once, at a record of the steady part: alloc, growth, fault, mmap, malloc, fill, or \
         burst=N for N boxes that are made and dropped"
    ))
)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) feed: FeedOptions,

    /// Captured packets, whose bytes are records in place of a feed: the payload of datagrams, and no frames on the wire. A file of
    /// pcap or pcapng, plain or gzip, of any link type.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input", "messages", "inject"])]
    pub(crate) pcap: Option<PathBuf>,

    /// Sends captured packets with the pauses with which they were captured.
    #[arg(long, requires = "pcap", conflicts_with = "rate")]
    pub(crate) as_recorded: bool,

    /// Where to write the report as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// How datagrams are received. Without it: by AF_XDP, or if the system does not allow that, by PACKET_MMAP.
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) receiver: Option<Receiver>,

    /// Datagrams that are dropped on the way, per cent; also those that are sent again.
    #[arg(long, value_name = "PERCENT", default_value = "0")]
    pub(crate) drop: PerCent,

    /// Datagrams that come twice, per cent.
    #[arg(long, value_name = "PERCENT", default_value = "0")]
    pub(crate) duplicate: PerCent,

    /// Datagrams that come after later ones, per cent.
    #[arg(long, value_name = "PERCENT", default_value = "0")]
    pub(crate) reorder: PerCent,

    /// What chooses these datagrams: the same seed, the same datagrams.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Has the sender answer no request: what is lost stays lost, and is named.
    #[arg(long)]
    pub(crate) unanswered: bool,

    /// The most messages of a datagram.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) per_datagram: u16,

    /// The most datagrams a second, 0 for as many as the receiver takes.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub(crate) rate: u32,

    /// When the input ends, if it does not end before: what was read by then is sent and reported.
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    pub(crate) seconds: u64,

    #[command(flatten)]
    pub(crate) hot: HotOptions,

    /// Logs every call on the pools, their points and the packets to this file, which `tripoint replay` replays. All of them
    /// take longer then, also in the steady part.
    #[arg(long, value_name = "FILE")]
    pub(crate) point_log: Option<PathBuf>,
}

/// How datagrams are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Receiver {
    /// AF_XDP: the driver writes frames into units of the pool. No call is made to receive.
    Xdp,
    /// PACKET_MMAP: the kernel writes frames into a ring, from which they are copied into units of the pool.
    Packet,
    /// io_uring: the kernel copies the datagrams of a UDP socket into units of the pool. No call is made to receive.
    IoUring,
    /// A UDP socket and recvmmsg, with a list of buffers.
    Recvmmsg,
    /// The same on the loopback interface: needs no privilege, makes no namespace.
    Loopback,
}

/// A part of a hundred.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PerCent(pub(crate) f64);

impl FromStr for PerCent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
        number.map(Self).ok_or_else(|| "expected a number from 0 to 100".to_owned())
    }
}

impl Options {
    /// The options of the command line. What cannot be ends the process, as it does in [`Parser::parse`].
    pub(crate) fn from_command_line() -> Self {
        Self::parse().checked().unwrap_or_else(|error| error.exit())
    }

    /// Refuses what cannot be.
    fn checked(self) -> Result<Self, clap::Error> {
        if self.hot.inject == Some(Injection::Collection) {
            let why = "there is no history to collect: see the program order-book";
            return Err(Self::command().error(ErrorKind::InvalidValue, why));
        }
        Ok(self)
    }

    pub(crate) const fn odds(&self) -> Odds {
        Odds { drop: self.drop, duplicate: self.duplicate, reorder: self.reorder }
    }

    /// The time between two datagrams.
    pub(crate) fn pause(&self) -> Duration {
        if self.rate == 0 { Duration::ZERO } else { Duration::from_secs(1) / self.rate }
    }
}
