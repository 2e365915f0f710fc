//! The parts of the order book, one idea a file. The program is in `main.rs`; the packet path
//! (`apps/packet-path`) keeps the same book from packets.
#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::new_without_default,
    reason = "the parts of a program, and no library for others"
)]

pub mod allocator_calls;
pub mod blocks;
pub mod book;
pub mod book_report;
pub mod books;
pub mod contract_report;
pub mod coordinator;
pub mod decimal;
pub mod event;
pub mod failure;
pub mod faults;
pub mod feed;
pub mod generator;
pub mod handoff;
pub mod historian;
pub mod history;
pub mod history_report;
pub mod hot;
pub mod hot_failure;
pub mod inject;
pub mod json;
pub mod keeper;
pub mod kept;
pub mod levels;
pub mod levels_file;
pub mod lock;
pub mod lookout;
pub mod malformed;
pub mod market;
pub mod memory;
pub mod options;
pub mod pace;
pub mod pinning;
pub mod places;
pub mod reader;
pub mod record;
pub mod reference;
pub mod rehearsal;
pub mod report;
pub mod sequence;
pub mod steady;
pub mod strategy;
pub mod summary;
pub mod symbol;
pub mod tally;
pub mod telemetry;
pub mod tickers;
pub mod tops;
pub mod wire;
