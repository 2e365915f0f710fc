//! The fast path, read from the assembly of a release build (design/ap.md
//! `.req.fast`, `.barrier.compiler`).
//!
//! `tests/probe` inlines allocations of 32 bytes; here they are compiled, the path
//! through them that calls no function is followed, and its instructions are
//! counted: those of reserve and commit, apart from the stores into the object,
//! from the loop's own counting, and from what a function saves and restores. In a
//! loop the address of the descriptor is in a register; a function that is handed
//! an allocation point loads it first, which the single forms show.
//!
//! The other fast paths, in frames, batches, caches and the contract, are read for
//! what they call: no function except the cold ones named here. No path can panic.
//!
//! ```text
//! cargo test -p tripoint-probe -- --nocapture
//! ```
#![cfg(target_arch = "x86_64")]

mod fast_path;
mod listing;

use std::sync::LazyLock;

use fast_path::{FastPath, without_labels};
use listing::{End, Function, listing};

/// The size of an object in the probes, in bytes.
const OBJECT: usize = 32;

/// The assembly of the probes.
static LISTING: LazyLock<String> = LazyLock::new(|| listing("tripoint-probe"));

/// A probe, and the most instructions, loads and descriptor stores it may have.
struct Goal {
    name: &'static str,
    end: End,
    flippable: bool,
    most: (usize, usize, usize),
}

const GOALS: &[Goal] = &[
    Goal { name: "manual_loop", end: End::Loop, flippable: false, most: (6, 2, 1) },
    Goal { name: "manual_single", end: End::Return, flippable: false, most: (7, 3, 1) },
    Goal { name: "variable_loop", end: End::Loop, flippable: false, most: (6, 2, 1) },
    Goal { name: "variable_single", end: End::Return, flippable: false, most: (7, 3, 1) },
    // Objects that a collector frees: in a loop, as in a manual pool.
    Goal { name: "typed_loop", end: End::Loop, flippable: false, most: (6, 2, 1) },
    // Beside the reference, which is the last one's to the next.
    Goal { name: "typed_nodes", end: End::Loop, flippable: false, most: (7, 2, 1) },
    // The address of the type's table, and that behind the header, which is returned.
    Goal { name: "typed_single", end: End::Return, flippable: false, most: (10, 3, 1) },
    Goal { name: "flippable_loop", end: End::Loop, flippable: true, most: (9, 3, 1) },
    #[cfg(target_os = "linux")]
    Goal { name: "membarrier_loop", end: End::Loop, flippable: true, most: (9, 3, 1) },
    // The descriptor's address, and that of its slow part for the retry.
    Goal { name: "flippable_single", end: End::Return, flippable: true, most: (11, 4, 1) },
];

#[test]
fn the_fast_path_is_as_short_as_promised() {
    println!("| form | instructions | loads | descriptor stores |\n|---|---|---|---|");
    let read = |goal: &'static Goal| (Function::find(&LISTING, goal.name).fast_path(goal.end), goal);
    let paths: Vec<(FastPath, &Goal)> = GOALS.iter().map(read).collect();
    for (path, goal) in &paths {
        let (instructions, loads, stores) = path.figures();
        println!("| `{}` | {instructions} | {loads} | {stores} |", goal.name);
    }
    for (path, goal) in &paths {
        println!("\n{}:", goal.name);
        path.code.iter().for_each(|instruction| println!("    {instruction}"));
    }
    for (path, goal) in paths {
        let (name, figures, most) = (goal.name, path.figures(), goal.most);
        assert!(figures.0 <= most.0 && figures.1 <= most.1 && figures.2 <= most.2, "{name}: {figures:?}");
        assert_eq!(path.object_bytes, OBJECT, "{name}");
        assert!(path.checks_limit, "{name} reserves without a look at limit");
        assert_eq!(path.rechecks_limit, goal.flippable, "{name}: limit after the store of init");
    }
}

/// A sampler or a logger at a point changes not one instruction of its fast path, on or off
/// (design/sampling.md `.point`, design/telemetry.md `.log`, design/point-log.md `.req.off`).
#[test]
fn samplers_and_loggers_leave_the_fast_path_as_it_is() {
    let code = |name, end| without_labels(Function::find(&LISTING, name).fast_path(end).code);
    for (plain, sampled, end) in [
        ("manual_loop", "sampled_manual_loop", End::Loop),
        ("variable_loop", "sampled_variable_loop", End::Loop),
        ("variable_single", "sampled_variable_single", End::Return),
        ("flippable_loop", "sampled_flippable_loop", End::Loop),
        ("variable_loop", "logged_variable_loop", End::Loop),
        ("flippable_loop", "logged_flippable_loop", End::Loop),
    ] {
        assert_eq!(code(sampled, end), code(plain, end), "{sampled}");
    }
    // The control: a count of bytes beside the limit is seen.
    let (counted, plain) = (code("counted_loop", End::Loop), code("variable_loop", End::Loop));
    assert!(counted.len() > plain.len(), "{counted:#?}");
}

/// Refusals cost nothing if nothing is refused: the two loads of the descriptor's
/// address, before the object is written and after it, are all that is added to the
/// manual form. With an `Error` whose variant is not a whole word, there were four
/// more instructions (core/src/values/error.rs).
#[test]
fn results_are_not_put_together_on_the_fast_path() {
    let path = Function::find(&LISTING, "frame_loop").fast_path(End::Loop);
    assert_eq!(path.object_bytes, OBJECT);
    assert!(path.code.len() <= 8, "{:#?}", path.code);
}

/// If fields are plain, nothing but the barrier keeps the test of a commit
/// (design/ap.md `.barrier.compiler`).
#[test]
fn light_barriers_hold_the_compiler() {
    let rechecks = |name| Function::find(&LISTING, name).fast_path(End::Loop).rechecks_limit;
    assert!(!rechecks("plain_loop"), "the control: the compiler kept the test without a barrier");
    assert!(rechecks("plain_single_core"));
    if cfg!(target_os = "linux") {
        assert!(rechecks("plain_membarrier"));
    }
}

/// A fast path for which it only matters what it calls.
struct Probe {
    name: &'static str,
    /// Parts of the names of the cold functions that it may call, and does
    /// call.
    cold: &'static [&'static str],
}

const PROBES: [Probe; 15] = [
    Probe { name: "batch_push", cold: &[] },
    Probe { name: "batch_commit", cold: &[] },
    // If nothing is attached, the pool knows what is on top.
    Probe { name: "frame_push", cold: &["top_base"] },
    Probe { name: "frame_alloc", cold: &["SlowPath", "reserve"] },
    Probe { name: "frame_pop", cold: &["pop_blocks"] },
    Probe { name: "typed_single", cold: &["SlowPath", "reserve"] },
    Probe { name: "sampled_frame_pop", cold: &["pop_blocks", "retreat_with_stop"] },
    Probe { name: "unit_alloc", cold: &["MfsCache", "fill"] },
    Probe { name: "unit_free", cold: &[] },
    // Once in each batch: at its first unit, and at its last.
    Probe { name: "unit_return", cold: &["Chain2of", "flush"] },
    Probe { name: "cache_alloc", cold: &["alloc_slow"] },
    Probe { name: "cache_free", cold: &["free_slow"] },
    Probe { name: "trip", cold: &[] },
    Probe { name: "guard_check", cold: &["attend"] },
    Probe { name: "route_pass", cold: &[] },
];

impl Probe {
    /// The most instructions of a way through that calls no function.
    fn quiet(&self, function: &Function) -> usize {
        let paths = function.quiet_paths();
        let returning = paths.iter().filter(|(end, _)| *end == End::Return);
        returning.map(|(_, path)| path.len()).max().unwrap_or_else(|| panic!("{} always calls", self.name))
    }

    /// The calls that it should not make.
    fn strangers<'f>(&self, function: &'f Function) -> Vec<&'f str> {
        function.calls().filter(|call| !self.cold.iter().any(|cold| call.contains(cold))).collect()
    }
}

#[test]
fn fast_paths_call_only_cold_code() {
    println!("| path | instructions, at most |\n|---|---|");
    for probe in PROBES {
        let function = Function::find(&LISTING, probe.name);
        println!("| `{}` | {} |", probe.name, probe.quiet(&function));
        assert_eq!(probe.strangers(&function), [""; 0], "{}", probe.name);
        for cold in probe.cold {
            assert!(function.calls().any(|call| call.contains(cold)), "{} calls no {cold}", probe.name);
        }
    }
    // The control: code that may panic calls a function that is not named.
    let control = Probe { name: "indexed", cold: &["alloc_slow"] };
    assert_eq!(control.strangers(&Function::find(&LISTING, control.name)).len(), 1);
}

/// The cold halves of generic functions are in the listing too.
#[test]
fn no_probe_can_panic() {
    assert_eq!(panicking(&LISTING), ["indexed"], "the control, and nothing else");
}

/// Its generic functions are compiled with the probes.
#[test]
fn no_slow_path_of_an_allocation_point_can_panic() {
    assert_eq!(panicking(&listing("tripoint-ap")), [""; 0]);
}

/// The functions that refer to the panic machinery, or stop the program. Those that stop it only
/// if something unwinds while something else, such as a hook, is unwinding already do not count.
fn panicking(listing: &str) -> Vec<&str> {
    let (mut current, mut found) = ("", Vec::new());
    for line in listing.lines() {
        if let Some(label) = line.strip_suffix(':').filter(|label| !label.starts_with('.')) {
            current = label;
        }
        let words = ["panicking", "unwrap_failed", "expect_failed", "ud2"];
        let refers = !line.trim_start().starts_with('.') && words.iter().any(|word| line.contains(word));
        let refers = refers && !line.contains("panic_in_cleanup");
        if refers && found.last() != Some(&current) {
            found.push(current);
        }
    }
    found
}
