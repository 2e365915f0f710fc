//! A guard that is dropped at once guards nothing.
#![deny(unused_must_use)]

use tripoint_contract::{Contract, HotThread};

fn misuse(contract: &'static Contract) {
    contract.register(HotThread::new("parser")).unwrap();
}

fn main() {}
