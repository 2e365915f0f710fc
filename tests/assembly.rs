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
//! cargo test --test assembly -- --nocapture
//! ```
#![cfg(target_arch = "x86_64")]

use core::fmt;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// The size of an object in the probes, in bytes.
const OBJECT: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Instruction {
    mnemonic: String,
    operands: Vec<String>,
}

impl Instruction {
    fn parse(line: &str) -> Option<Self> {
        let line = line.split('#').next()?.trim();
        if line.is_empty() || line.starts_with('.') {
            return None;
        }
        let (mnemonic, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let operands =
            operands.split(',').map(|operand| operand.trim().into()).filter(|o: &String| !o.is_empty());
        Some(Self { mnemonic: mnemonic.into(), operands: operands.collect() })
    }

    fn is(&self, mnemonics: &[&str]) -> bool {
        mnemonics.contains(&self.mnemonic.as_str())
    }

    fn is_conditional_jump(&self) -> bool {
        self.mnemonic.starts_with('j') && self.mnemonic != "jmp"
    }

    /// Whether it only compares, and so writes no operand.
    fn is_comparison(&self) -> bool {
        self.is(&["cmp", "test"])
    }

    fn mentions(&self, register: &str) -> bool {
        let is_part = |c: char| !c.is_ascii_alphanumeric();
        self.operands.iter().any(|operand| operand.split(is_part).any(|word| word == register))
    }

    /// The place in memory that is read.
    fn load(&self) -> Option<&str> {
        let sources = if self.is_comparison() { &self.operands[..] } else { self.operands.get(1..)? };
        sources.iter().find_map(|operand| place(operand)).filter(|_| self.mnemonic != "lea")
    }

    /// The place in memory that is written.
    fn store(&self) -> Option<&str> {
        self.operands.first().and_then(|operand| place(operand)).filter(|_| !self.is_comparison())
    }

    /// The register that is written.
    fn target(&self) -> Option<&str> {
        let target = self.operands.first()?;
        (place(target).is_none() && !self.is_comparison()).then_some(target)
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:6}{}", self.mnemonic, self.operands.join(", "))
    }
}

/// What is between the brackets of a memory operand.
fn place(operand: &str) -> Option<&str> {
    operand.split_once('[')?.1.strip_suffix(']')
}

/// The register that a place in memory is reached through.
fn base(place: &str) -> &str {
    place.split_whitespace().next().unwrap_or_default()
}

/// One function of an assembly listing.
#[derive(Debug, Default)]
struct Function {
    code: Vec<Instruction>,
    labels: HashMap<String, usize>,
}

/// How a path without calls ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Return,
    /// Where it began: the path is a loop.
    Loop,
}

impl Function {
    fn find(listing: &str, name: &str) -> Self {
        // Functions of the same code are in the listing once.
        let alias = format!("{name} = ");
        if let Some(other) = listing.lines().find_map(|line| line.strip_prefix(&alias)) {
            return Self::find(listing, other);
        }
        let mut function = Self::default();
        let begin = format!("{name}:");
        let lines = listing.lines().skip_while(|line| **line != begin).skip(1);
        for line in lines.take_while(|line| !line.starts_with(".Lfunc_end")) {
            match line.strip_suffix(':') {
                Some(label) => drop(function.labels.insert(label.into(), function.code.len())),
                None => function.code.extend(Instruction::parse(line)),
            }
        }
        assert!(!function.code.is_empty(), "{name} is not in the listing");
        function
    }

    /// Every way through the function, or around a loop of it, that calls no
    /// function.
    fn quiet_paths(&self) -> Vec<(End, Vec<Instruction>)> {
        let mut paths = Vec::new();
        self.follow(0, &mut Vec::new(), &mut paths);
        paths.dedup();
        paths
    }

    fn follow(&self, at: usize, path: &mut Vec<usize>, paths: &mut Vec<(End, Vec<Instruction>)>) {
        let list = |path: &[usize]| path.iter().map(|&index| self.code[index].clone()).collect();
        if let Some(begin) = path.iter().position(|&index| index == at) {
            return paths.push((End::Loop, list(&path[begin..])));
        }
        path.push(at);
        let instruction = &self.code[at];
        let target = instruction.operands.first().and_then(|label| self.labels.get(label));
        match instruction.mnemonic.as_str() {
            "ret" => paths.push((End::Return, list(path))),
            // A jump to another function is a call too.
            "call" | "ud2" => (),
            "jmp" => target.iter().for_each(|&&target| self.follow(target, path, paths)),
            _ if instruction.is_conditional_jump() => {
                self.follow(at + 1, path, paths);
                target.iter().for_each(|&&target| self.follow(target, path, paths));
            }
            _ => self.follow(at + 1, path, paths),
        }
        path.pop();
    }

    /// The function that it calls, or jumps to.
    fn calls(&self) -> impl Iterator<Item = &str> {
        let leaves = |code: &&Instruction| code.mnemonic == "call" || code.mnemonic.starts_with('j');
        let operands = self.code.iter().filter(leaves).filter_map(|code| code.operands.first());
        operands.filter(|operand| !self.labels.contains_key(*operand)).map(String::as_str)
    }

    /// The one quiet path that declares an object.
    fn fast_path(&self, end: End) -> FastPath {
        let found: Vec<_> = self
            .quiet_paths()
            .into_iter()
            .filter(|(ends, _)| *ends == end)
            .filter_map(|(_, path)| FastPath::read(path))
            .collect();
        let [path] = &found[..] else { panic!("there should be one fast path, not {found:#?}") };
        path.clone()
    }
}

/// What is counted in a fast path.
#[derive(Clone, Debug)]
struct FastPath {
    /// Reserve and commit, and nothing else.
    code: Vec<Instruction>,
    loads: usize,
    descriptor_stores: usize,
    object_bytes: usize,
    /// Whether `limit` is loaded again after the last store to the descriptor, and
    /// the loaded value decides a jump.
    rechecks_limit: bool,
    /// Whether `limit` is loaded at all.
    checks_limit: bool,
}

impl FastPath {
    /// `None` if no object is declared on the path.
    fn read(path: Vec<Instruction>) -> Option<Self> {
        // The descriptor is reached through the base of the first comparison's load,
        // or of the store that comes last.
        let declare = path.iter().rposition(|instruction| instruction.store().is_some())?;
        let descriptor = base(path[declare].store()?).to_owned();
        let init = path[declare].store()?.to_owned();
        let is_descriptor = |place: &&str| base(place) == descriptor;
        let object_store =
            |instruction: &Instruction| instruction.store().is_some_and(|place| base(place) != descriptor);
        let object_bytes = path.iter().filter(|instruction| object_store(instruction)).map(width).sum();
        let own: Vec<_> = without_frame(without_counting(path.clone()))
            .into_iter()
            .filter(|instruction| !object_store(instruction))
            .collect();
        let limits = |path: &[Instruction]| {
            let loads = path.iter().enumerate().filter(|(_, instruction)| {
                instruction.load().filter(is_descriptor).is_some_and(|place| place != init)
            });
            loads.map(|(index, _)| decides(&path[index..])).collect::<Vec<_>>()
        };
        Some(Self {
            loads: own.iter().filter(|instruction| instruction.load().is_some()).count(),
            descriptor_stores: own.iter().filter(|instruction| instruction.store().is_some()).count(),
            object_bytes,
            rechecks_limit: limits(&path[declare..]).contains(&true),
            checks_limit: limits(&path[..declare]).contains(&true),
            code: own,
        })
    }

    fn figures(&self) -> (usize, usize, usize) {
        (self.code.len(), self.loads, self.descriptor_stores)
    }
}

/// The bytes that a store writes.
fn width(store: &Instruction) -> usize {
    let size = store.operands[0].split_whitespace().next().unwrap_or_default();
    match size {
        "xmmword" => 16,
        "qword" => 8,
        "dword" => 4,
        "word" => 2,
        _ => 1,
    }
}

/// Whether what the first instruction loads is tested by a jump.
fn decides(path: &[Instruction]) -> bool {
    let Some((load, rest)) = path.split_first() else { return false };
    let tested = |test: &Instruction, jump: Option<&Instruction>| {
        test.is_comparison() && jump.is_some_and(Instruction::is_conditional_jump)
    };
    let Some(register) = load.target() else { return tested(load, rest.first()) };
    for (index, instruction) in rest.iter().enumerate() {
        if instruction.is_comparison() && instruction.mentions(register) {
            return tested(instruction, rest.get(index + 1));
        }
        if instruction.target() == Some(register) {
            return false;
        }
    }
    false
}

/// Leaves out what counts the rounds of a loop: the register that goes up by one,
/// what it is copied to and compared with, and the jumps on that.
fn without_counting(path: Vec<Instruction>) -> Vec<Instruction> {
    let Some(counter) = path.iter().find(|instruction| instruction.is(&["inc", "dec"])) else { return path };
    let counter = counter.operands[0].clone();
    let mut kept: Vec<Instruction> = Vec::new();
    let mut counting = false;
    for instruction in path {
        // The jump back belongs to the loop, and so does one on the count.
        let jumps = instruction.mnemonic == "jmp" || (counting && instruction.is_conditional_jump());
        counting = instruction.mentions(&counter);
        if !counting && !jumps {
            kept.push(instruction);
        }
    }
    kept
}

/// Leaves out what a function does to begin and end: saving and restoring
/// registers, making room on the stack, and getting ready for calls that are not
/// made.
fn without_frame(path: Vec<Instruction>) -> Vec<Instruction> {
    let is_frame = |instruction: &Instruction| {
        instruction.is(&["push", "pop", "ret"])
            || instruction.target() == Some("rsp")
            || instruction.load().is_some_and(|place| base(place) == "rip")
    };
    path.into_iter().filter(|instruction| !is_frame(instruction)).collect()
}

/// Leaves out where jumps lead to: labels are numbered through the listing.
fn without_labels(mut path: Vec<Instruction>) -> Vec<Instruction> {
    let jumps = path.iter_mut().filter(|instruction| instruction.mnemonic.starts_with('j'));
    jumps.for_each(|jump| jump.operands.clear());
    path
}

/// The assembly of the probes.
static LISTING: LazyLock<String> = LazyLock::new(|| listing("tripoint-probe"));

/// The assembly of a package, optimised.
fn listing(package: &str) -> String {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("probe");
    std::fs::create_dir_all(&directory).unwrap();
    let listing = directory.join(package).with_extension("s");
    let status = Command::new(env!("CARGO"))
        .args(["rustc", "--quiet", "--release", "--package", package, "--lib", "--target-dir"])
        .arg(&directory)
        .args(["--", "-Cdebuginfo=0", "-Ccodegen-units=1", "-Cllvm-args=-x86-asm-syntax=intel"])
        .arg(format!("--emit=asm={}", listing.display()))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .unwrap();
    assert!(status.success(), "{package} does not compile");
    std::fs::read_to_string(listing).unwrap()
}

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
/// (design/sampling.md `.point`, design/telemetry.md `.log`).
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
/// more instructions (core/src/words/error.rs).
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

const PROBES: [Probe; 14] = [
    Probe { name: "batch_push", cold: &[] },
    Probe { name: "batch_commit", cold: &[] },
    // If nothing is attached, the pool knows what is on top.
    Probe { name: "frame_push", cold: &["top_base"] },
    Probe { name: "frame_alloc", cold: &["SlowPath", "reserve"] },
    Probe { name: "frame_pop", cold: &["pop_blocks"] },
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

/// What is read from a commit that consists of these instructions, after a
/// reserve that loads `limit` into `rcx`.
fn read(commit: &str) -> FastPath {
    let reserve = "
        mov rax, qword ptr [rdi + 32]
        mov rcx, qword ptr [rdi + 48]
        lea rdx, [rax + 32]
        cmp rdx, rcx
        ja .LBB0_9";
    let listing = format!("probe:\n{reserve}\n{commit}\n    ret\n.LBB0_9:\n    call slow\n.Lfunc_end0:\n");
    Function::find(&listing, "probe").fast_path(End::Return)
}

#[test]
fn the_reading_tells_a_commit_that_tests_from_one_that_does_not() {
    let store = "mov qword ptr [rdi + 32], rdx";
    let load = "mov rcx, qword ptr [rdi + 48]";
    let test = "test rcx, rcx\n    je .LBB0_9";
    let rechecks = |commit: &[&str]| read(&commit.join("\n")).rechecks_limit;
    assert!(rechecks(&[store, load, test]));
    assert!(rechecks(&[store, "cmp qword ptr [rdi + 48], 0\n    je .LBB0_9"]));
    assert!(!rechecks(&[store]), "no test");
    assert!(!rechecks(&[store, test]), "a test of what was loaded before");
    assert!(!rechecks(&[load, store, test]), "a load too early");
    assert!(!rechecks(&[store, load]), "a load that nothing depends on");
    assert!(!rechecks(&[store, load, "mov rcx, rax", test]), "a load that is written over");
    assert!(!rechecks(&[store, "mov rcx, qword ptr [rdi + 32]", test]), "a load of init, not of limit");
    assert_eq!(read(&[store, load, test].join("\n")).figures(), (9, 3, 1));
}
