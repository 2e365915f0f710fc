//! The parts of the exchange, one idea a file. The program is in `main.rs`.
//!
//! | file | |
//! |---|---|
//! | `random` | numbers drawn from a seed |
//! | `itch` | messages of ITCH 5.0, read where they stand |
//! | `frames` | messages in files and in packets |
//! | `day` | days that are generated |
//! | `lobster` | lines of LOBSTER, read as messages of ITCH |
//! | `input` | where messages come from |
//! | `handoff` | blocks between threads |
//! | `ids` | from the number of an order to its name |
//! | `wide` | tables of full size, on huge pages |
//! | `shelves` | the sorted lists of levels |
//! | `places` | where orders and levels live |
//! | `nodes` | orders and levels |
//! | `refused` | why a message cannot be true |
//! | `book` | the books themselves |
//! | `homes` | books in the home that is asked for |
//! | `naive` | the same books again, from the specification alone |
//! | `check` | both compared |
//! | `histogram` | how long messages took |
//! | `steady` | what the hot thread asked for |
//! | `inject` | deliberate violations |
//! | `orderbook` | the books against LOBSTER's orderbook file |
//! | `keeper` | messages of any form, applied and counted |
//! | `notes` | best prices, trades and levels that are written |
//! | `run` | a day under the steady-state contract |
//! | `report` | what is said of it |
//! | `sums` | the sum of a book, message by message |
//! | `feed` | what the engine publishes, on its way |
//! | `engine` | orders that are matched |
//! | `gateway` | orders that another thread allocates |
//! | `follow` | books that follow the engine, and are compared with it |
//! | `engine_run` | engine and builder on their threads |
//! | `compare` | the same day in one home after the other |
#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::new_without_default,
    reason = "the parts of a program, and no library for others"
)]

pub mod book;
pub mod check;
pub mod compare;
pub mod day;
pub mod engine;
pub mod engine_run;
pub mod feed;
pub mod follow;
pub mod frames;
pub mod gateway;
pub mod handoff;
pub mod histogram;
pub mod homes;
pub mod ids;
pub mod inject;
pub mod input;
pub mod itch;
mod keeper;
pub mod lobster;
pub mod naive;
pub mod nodes;
pub mod notes;
pub mod orderbook;
pub mod outputs;
mod pace;
pub mod places;
pub mod random;
pub mod refused;
pub mod report;
pub mod run;
pub mod shelves;
pub mod steady;
pub mod sums;
pub mod wide;
