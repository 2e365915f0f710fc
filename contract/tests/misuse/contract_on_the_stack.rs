//! Signal handlers and other threads reach a contract for as long as the program
//! runs.

use tripoint_contract::{Contract, HotThread};

fn main() {
    let contract: Contract = Contract::new();
    drop(contract.register(HotThread::new("parser")));
}
