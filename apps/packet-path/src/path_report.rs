//! What a run has to say: what the order book says, and what became of the packets.

use core::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use order_book::failure::Failure;
use order_book::report::Report;
use order_book::steady::Latency;
use order_book::summary::line;
use serde::Serialize;
use serde_json::Value;

use crate::course::Course;
use crate::hot_packets::{PathFound, Received};
use crate::picture::picture;
use crate::sender::SenderCounts;
use crate::source::{FrameCounts, SourceCounts};

/// The report. The keys of the book are those of the order book's report.
#[derive(Debug, Serialize)]
pub(crate) struct PathReport {
    #[serde(flatten)]
    pub(crate) book: Report,
    pub(crate) wire: WireReport,
    /// What `tripoint plot` draws.
    picture: Value,
}

/// What became of the packets.
#[derive(Debug, Serialize)]
pub(crate) struct WireReport {
    receiver: &'static str,
    /// Why it is not the one that comes first.
    fallback: Option<String>,
    /// The processor that the hot thread had to itself, if there were two.
    processor: Option<usize>,
    sent: SenderCounts,
    received: Received,
    source: SourceCounts,
    frames: FrameCounts,
    /// Datagrams that were sent, and neither came nor were counted as dropped by the kernel.
    unaccounted: i64,
    /// Datagrams that came in a second, from the first to the last.
    datagrams_per_second: f64,
    /// From the sender's clock, in front of its call, to the book: of the messages sent in the steady part.
    wire_to_book_ns: Latency,
    #[serde(skip)]
    distribution: Vec<(f64, f64)>,
    #[serde(skip)]
    course: Course,
}

impl WireReport {
    pub(crate) fn new(
        receiver: &'static str,
        fallback: Option<String>,
        processor: Option<usize>,
        sent: SenderCounts,
        found: PathFound,
    ) -> Self {
        let PathFound { received, source, frames, latency, distribution, course } = found;
        let with_messages = received.datagrams - received.without_messages;
        let unaccounted = unaccounted(
            sent.datagrams.passed.cast_signed() - with_messages.cast_signed(),
            sent.without_messages.saturating_sub(received.without_messages).cast_signed(),
            source.dropped.cast_signed(),
        );
        Self {
            receiver,
            fallback,
            processor,
            sent,
            received,
            source,
            frames,
            unaccounted,
            datagrams_per_second: received.datagrams as f64 * 1e9 / course.duration().max(1) as f64,
            wire_to_book_ns: latency,
            distribution,
            course,
        }
    }

    /// The picture of the run, beside the latencies of the book if there is one.
    pub(crate) fn picture(&self, book: Option<Latency>) -> Value {
        picture(self.receiver, &self.distribution, &self.course, book)
    }
}

/// How many datagrams there is no account of, if `missing` with messages and `missing_without` messages were sent and did
/// not come, and the kernel dropped `dropped` of either. No receiver reads datagrams without messages that come after the end,
/// so these may be missing.
const fn unaccounted(missing: i64, missing_without: i64, dropped: i64) -> i64 {
    let (surely, possibly) = (missing - dropped, missing + missing_without - dropped);
    if surely > 0 {
        surely
    } else if possibly < 0 {
        possibly
    } else {
        0
    }
}

impl PathReport {
    /// A report, with the latencies of the book alone.
    pub(crate) fn new(book: Report, of_book: Latency, wire: WireReport) -> Self {
        let picture = wire.picture(Some(of_book));
        Self { book, wire, picture }
    }
}

/// Writes a report as JSON to a file.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_json(report: &impl Serialize, path: &Path) -> Result<(), Failure> {
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer_pretty(&mut file, report)?;
        file.write_all(b"\n")?;
        file.flush()
    };
    write().map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))
}

impl fmt::Display for PathReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.book, self.wire)
    }
}

/// The part of the summary.
impl fmt::Display for WireReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, received, source, frames, .. } = self;
        let pinned = self.processor.map_or("not pinned".to_owned(), |one| format!("on processor {one}"));
        line(f, "wire", format_args!("{}; hot thread {pinned}", self.receiver))?;
        self.fallback.iter().try_for_each(|why| line(f, "", format_args!("{why}")))?;
        let of_them = format_args!(
            "{} dropped, {} duplicated, {} reordered",
            sent.datagrams.dropped, sent.datagrams.duplicated, sent.datagrams.reordered
        );
        line(
            f,
            "  sent",
            format_args!("{} messages in {} datagrams; {of_them}", sent.messages, sent.datagrams.made),
        )?;
        line(
            f,
            "  received",
            format_args!(
                "{} datagrams, {:.0} a second, {} bytes; {} twice, {} out of order, {} malformed",
                received.datagrams,
                self.datagrams_per_second,
                received.bytes,
                received.duplicates,
                received.reordered,
                received.malformed
            ),
        )?;
        line(
            f,
            "  recovered",
            format_args!(
                "{} messages, asked for with {} requests; {} requests unanswered",
                received.messages_recovered, sent.requests, sent.unanswered
            ),
        )?;
        let count = |count: Option<usize>| count.map_or("not known".to_owned(), |count| count.to_string());
        line(
            f,
            "  rings",
            format_args!(
                "at most {} waiting, at least {} to fill, at most {} in the window; {} dropped",
                count(source.receive_ring_most),
                count(source.fill_ring_least),
                received.window_most,
                source.dropped
            ),
        )?;
        line(
            f,
            "  frames",
            format_args!("{} of {} home, {} outstanding", frames.home, frames.units, frames.outstanding),
        )?;
        line(f, "  calls to receive", format_args!("{} of {}", source.calls, source.call))?;
        if self.unaccounted != 0 {
            line(f, "  unaccounted for", format_args!("{} datagrams", self.unaccounted))?;
        }
        let Latency { p50, p99, p999, p9999, max } = self.wire_to_book_ns;
        line(
            f,
            "  wire to book, in ns",
            format_args!("p50 {p50}, p99 {p99}, p99.9 {p999}, p99.99 {p9999}, max {max}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::unaccounted;

    #[test]
    fn what_was_dropped_may_have_been_without_messages() {
        assert_eq!(unaccounted(0, 14, 14), 0);
        assert_eq!(unaccounted(3, 14, 5), 0);
        assert_eq!(unaccounted(3, 0, 3), 0);
        // Those after the end are not received.
        assert_eq!(unaccounted(0, 2, 0), 0);
    }

    #[test]
    fn what_is_lost_or_came_from_nowhere_is_counted() {
        assert_eq!(unaccounted(3, 14, 2), 1);
        assert_eq!(unaccounted(0, 1, 3), -2);
        assert_eq!(unaccounted(-1, 0, 0), -1);
    }
}
