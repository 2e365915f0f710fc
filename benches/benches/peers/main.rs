//! Tripoint against its peers: bulk allocation, one size, and starting up.
//!
//! `cargo bench -p benches`, or with `-- --quick` to see only that it runs.

mod bulk;
mod fixed;
mod startup;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if quick { 3 } else { 301 };
    bulk::measure(rounds);
    fixed::measure(rounds);
    startup::measure(if quick { 3 } else { 100 });
}
