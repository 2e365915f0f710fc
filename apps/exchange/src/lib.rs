//! The parts of the exchange, one idea a file. The program is in `main.rs`.
//!
//! | file | |
//! |---|---|
//! | `random` | numbers drawn from a seed |
//! | `itch` | messages of ITCH 5.0, read where they stand |
//! | `frames` | messages in files and in packets |
//! | `ids` | from the number of an order to its name |
//! | `shelves` | the sorted lists of levels |
//! | `places` | where orders and levels live |
//! | `homes` | books in the home that is asked for |
//! | `book` | the books themselves |
//! | `day` | days that are generated |
//! | `naive` | the same books again, from the specification alone |
//! | `check` | both compared |
#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::new_without_default,
    reason = "the parts of a program, and no library for others"
)]

pub mod book;
pub mod check;
pub mod day;
pub mod frames;
pub mod handoff;
pub mod histogram;
pub mod homes;
pub mod ids;
pub mod inject;
pub mod input;
pub mod itch;
pub mod naive;
pub mod places;
pub mod random;
pub mod report;
pub mod run;
pub mod shelves;
pub mod steady;
