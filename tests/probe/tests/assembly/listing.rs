//! Listings of assembly, and the functions in them.

use core::fmt;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) mnemonic: String,
    pub(crate) operands: Vec<String>,
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

    pub(crate) fn is(&self, mnemonics: &[&str]) -> bool {
        mnemonics.contains(&self.mnemonic.as_str())
    }

    pub(crate) fn is_conditional_jump(&self) -> bool {
        self.mnemonic.starts_with('j') && self.mnemonic != "jmp"
    }

    /// Whether it only compares, and so writes no operand.
    pub(crate) fn is_comparison(&self) -> bool {
        self.is(&["cmp", "test"])
    }

    pub(crate) fn mentions(&self, register: &str) -> bool {
        let is_part = |c: char| !c.is_ascii_alphanumeric();
        self.operands.iter().any(|operand| operand.split(is_part).any(|word| word == register))
    }

    /// The place in memory that is read.
    pub(crate) fn load(&self) -> Option<&str> {
        let sources = if self.is_comparison() { &self.operands[..] } else { self.operands.get(1..)? };
        sources.iter().find_map(|operand| place(operand)).filter(|_| self.mnemonic != "lea")
    }

    /// The place in memory that is written.
    pub(crate) fn store(&self) -> Option<&str> {
        self.operands.first().and_then(|operand| place(operand)).filter(|_| !self.is_comparison())
    }

    /// The register that is written.
    pub(crate) fn target(&self) -> Option<&str> {
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
pub(crate) fn base(place: &str) -> &str {
    place.split_whitespace().next().unwrap_or_default()
}

/// One function of an assembly listing.
#[derive(Debug, Default)]
pub(crate) struct Function {
    code: Vec<Instruction>,
    labels: HashMap<String, usize>,
}

/// How a path without calls ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Return,
    /// Where it began: the path is a loop.
    Loop,
}

impl Function {
    pub(crate) fn find(listing: &str, name: &str) -> Self {
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
    pub(crate) fn quiet_paths(&self) -> Vec<(End, Vec<Instruction>)> {
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
    pub(crate) fn calls(&self) -> impl Iterator<Item = &str> {
        let leaves = |code: &&Instruction| code.mnemonic == "call" || code.mnemonic.starts_with('j');
        let operands = self.code.iter().filter(leaves).filter_map(|code| code.operands.first());
        operands.filter(|operand| !self.labels.contains_key(*operand)).map(String::as_str)
    }
}

/// The assembly of a package, optimised.
pub(crate) fn listing(package: &str) -> String {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("probe");
    std::fs::create_dir_all(&directory).unwrap();
    let listing = directory.join(package).with_extension("s");
    let status = Command::new(env!("CARGO"))
        .args(["rustc", "--quiet", "--release", "--package", package, "--lib", "--target-dir"])
        .arg(&directory)
        .args(["--", "-Cdebuginfo=0", "-Ccodegen-units=1", "-Cllvm-args=-x86-asm-syntax=intel"])
        .arg(format!("--emit=asm={}", listing.display()))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // Cut into many units, it would be other code.
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .unwrap();
    assert!(status.success(), "{package} does not compile");
    std::fs::read_to_string(listing).unwrap()
}
