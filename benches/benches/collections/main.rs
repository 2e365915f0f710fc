//! Automatic pools against their goals (design/gc-figures.md): allocation, stops, collections beside frozen memory, and
//! how everything grows with the heap.
//!
//! `cargo bench -p benches --bench collections`, with `-- --quick` to see only that it runs, with `-- --table NAME` for
//! one table. `-- --table growth --most MIB` (or `steps`, `minors`) has heaps of up to that many MiB. With `--table growth`,
//! `--plot FILE` draws them, `--huge-pages` asks the arena for huge pages, and `--limit MIB` is the most that it may commit.
//!
//! `-- --collect SHAPE MIB` collects a heap of `trees`, or with references at `random`, once: `benches/instructions`
//! counts that.
//!
//! On a machine that is not idle give it priority (`nice -n -20`): times to stop are of microseconds.

#[cfg(target_os = "linux")]
mod allocation;
#[cfg(target_os = "linux")]
mod chase;
#[cfg(target_os = "linux")]
mod frozen;
#[cfg(target_os = "linux")]
mod growth;
#[cfg(target_os = "linux")]
mod minors;
#[cfg(target_os = "linux")]
mod nodes;
#[cfg(target_os = "linux")]
mod plot;
#[cfg(target_os = "linux")]
mod steps;
#[cfg(target_os = "linux")]
mod stops;
#[cfg(target_os = "linux")]
mod times;

/// What the command line says, apart from the table.
struct Options {
    quick: bool,
    /// The largest heap, in MiB.
    most: Option<usize>,
    /// The file of the drawing.
    plot: Option<String>,
    huge_pages: bool,
    /// The most that an arena may commit, in MiB.
    limit: Option<usize>,
}

/// A table and its name.
#[cfg(target_os = "linux")]
type Table = (&'static str, fn(&Options));

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |option: &str| {
        let place = arguments.iter().position(|argument| argument == option);
        place.map(|place| arguments.get(place + 1).cloned().unwrap_or_default())
    };
    if let Some(shape) = after("--collect") {
        let mib: usize = after(&shape).and_then(|mib| mib.parse().ok()).expect("a number of MiB");
        return growth::collect_once(&shape, mib << 20);
    }
    let options = Options {
        quick: after("--quick").is_some(),
        most: after("--most").map(|most| most.parse().expect("a number of MiB")),
        plot: after("--plot"),
        huge_pages: after("--huge-pages").is_some(),
        limit: after("--limit").map(|limit| limit.parse().expect("a number of MiB")),
    };
    let tables: [Table; 6] = [
        ("allocation", allocation::measure),
        ("stops", stops::measure),
        ("frozen", frozen::measure),
        ("growth", growth::measure),
        ("steps", steps::measure),
        ("minors", minors::measure),
    ];
    let wanted = after("--table");
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
    assert!(tables.iter().any(|(name, _)| is_wanted(name)), "there is no table {wanted:?}");
    println!("{}", times::processor());
    tables.iter().filter(|(name, _)| is_wanted(name)).for_each(|(_, measure)| measure(&options));
}

#[cfg(not(target_os = "linux"))]
fn main() {
    let _ = Options { quick: true, most: None, plot: None, huge_pages: false, limit: None };
    println!("these figures are of Linux");
}
