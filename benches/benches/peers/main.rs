//! Tripoint against its peers: bulk allocation, one size, and starting up.
//!
//! `cargo bench -p benches`, or with `-- --quick` to see only that it runs.

use benches::table::print_tables;
use benches::workloads::run;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    for name in ["bulk", "fixed", "startup"] {
        print_tables(run(name, quick).expect("the name of a workload"));
    }
}
