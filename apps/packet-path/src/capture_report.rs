//! What a run of captured packets has to say.

use core::fmt;
use std::collections::BTreeMap;

use order_book::contract_report::ContractReport;
use order_book::summary::line;
use serde::Serialize;
use serde_json::Value;

use crate::capture_run::{Counted, Packets};
use crate::path_report::WireReport;

/// What was sent of a capture.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Sent {
    #[serde(flatten)]
    pub(crate) packets: Packets,
    /// Packets of which the capture has only a part.
    pub(crate) cut: u64,
    /// Packets that are too long for the path, and were left out.
    pub(crate) too_long: u64,
    /// How many packets came over each type of link.
    pub(crate) links: BTreeMap<String, u64>,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct CaptureReport {
    /// In front of the wire.
    sent: Sent,
    /// Behind it.
    received: Counted,
    packets_match: bool,
    contract: ContractReport,
    wire: WireReport,
    /// What `tripoint plot` draws.
    picture: Value,
}

impl CaptureReport {
    pub(crate) fn new(sent: Sent, received: Counted, contract: ContractReport, wire: WireReport) -> Self {
        let packets_match = sent.packets == received.packets;
        let picture = wire.picture(None);
        Self { sent, received, packets_match, contract, wire, picture }
    }
}

/// The summary.
impl fmt::Display for CaptureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, received, packets_match, contract, wire, .. } = self;
        let links: Vec<_> = sent.links.iter().map(|(link, packets)| format!("{packets} of {link}")).collect();
        let of = |packets: &Packets| format!("{} packets, {} bytes", packets.packets, packets.bytes);
        line(f, "in front of the wire", format_args!("{} ({})", of(&sent.packets), links.join(", ")))?;
        if sent.cut + sent.too_long > 0 {
            let left =
                format_args!("{} cut when captured, {} too long and left out", sent.cut, sent.too_long);
            line(f, "", left)?;
        }
        let verdict = if *packets_match { "the same" } else { "DIFFERENT" };
        line(f, "behind the wire", format_args!("{}: {verdict}", of(&received.packets)))?;
        let steady = &received.steady;
        let faults = steady.minor_page_faults.map_or("not known".to_owned(), |faults| faults.to_string());
        line(
            f,
            "steady part",
            format_args!(
                "{} bytes of growth, {} fills, {} allocator calls, {faults} page faults",
                steady.arena_growth_bytes, steady.fills, steady.global_allocator_calls
            ),
        )?;
        write!(f, "{contract}{wire}")
    }
}
