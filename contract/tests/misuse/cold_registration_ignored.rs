//! A registration that is dropped at once has no effect.
#![deny(unused_must_use)]

use tripoint_contract::{Budget, Contract};

fn misuse(contract: &'static Contract, budget: Budget) {
    contract.register_cold("logger", budget).unwrap();
}

fn main() {}
