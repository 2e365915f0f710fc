//! Heaps that are damaged, and core files that are cut off: what can be read is shown, and the rest is named.

use core::time::Duration;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use object::Endianness;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use serde_json::Value;

use crate::core_file::made;
use crate::run::{Ran, run, tripoint};

/// How many mutants of a core there are.
const MUTANTS: u64 = 60;

/// The most memory that the command may have, in KiB.
const MOST_MEMORY: u64 = 4 << 20;

/// Runs the command, and ends it if it takes long.
fn run_within(target: &Path, limit: Duration) -> Ran {
    let command = tripoint(&["heap", "--json", "--path", "no::Type"], target);
    let shell = format!("ulimit -v {MOST_MEMORY}; exec \"$0\" \"$@\"");
    let mut limited = Command::new("sh");
    limited.args(["-c", &shell]).arg(command.get_program()).args(command.get_args());
    let folder = target.parent().unwrap();
    let files = ["out", "err"].map(|name| folder.join(name));
    let [out, err] = files.each_ref().map(|path| File::create(path).unwrap());
    let mut child = limited.stdin(Stdio::null()).stdout(out).stderr(err).spawn().unwrap();
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if begin.elapsed() > limit => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{} took more than {limit:?}", target.display());
            }
            None => std::thread::yield_now(),
        }
    };
    let [out, err] = files.map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned());
    Ran { status, out, err }
}

/// Where in a core file the memory of an address is.
fn places(core: &[u8]) -> impl Fn(u64) -> Option<u64> {
    let header = FileHeader64::<Endianness>::parse(core).unwrap();
    let endian = header.endian().unwrap();
    let loads: Vec<_> = header
        .program_headers(endian, core)
        .unwrap()
        .iter()
        .filter(|program| program.p_type(endian) == PT_LOAD)
        .map(|program| (program.p_vaddr(endian), program.p_filesz(endian), program.p_offset(endian)))
        .collect();
    move |address| {
        let load = loads.iter().find(|(base, size, _)| *base <= address && address < base + size);
        load.map(|(base, _, offset)| offset + (address - base))
    }
}

fn number(text: &Value) -> u64 {
    u64::from_str_radix(text.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// (design/inspection.md `.req.damaged`)
pub(super) fn assert_mutants_end(core: &Path) {
    let whole = run(&["heap", "--json"], core).json();
    let bytes = std::fs::read(core).unwrap();
    let (at, seed) = (places(&bytes), fastrand::u64(..));
    println!("mutants of seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let heap = &whole["heaps"][0];
    let segments: Vec<_> = heap["segments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|segment| (number(&segment["base"]), number(&segment["limit"])))
        .collect();
    let listing = bytes.windows(16).position(|bytes| bytes == b"tripointgc-heaps").unwrap() as u64;
    let mutant = core.with_extension("mutant");
    let (mut named, mut partial) = (0, 0);
    for number_of_mutant in 0..MUTANTS {
        std::fs::copy(core, &mutant).unwrap();
        let file = File::options().write(true).open(&mutant).unwrap();
        for _ in 0..random.usize(1..4) {
            let &(base, limit) = random.choice(&segments).unwrap();
            let place = match random.u32(0..4) {
                0 => at(number(&heap["address"]) + 8 * random.u64(0..5)),
                // The description of a segment, and some of its bits.
                1 => at(base + 8 * random.u64(0..200)),
                // Objects at the beginning of it.
                2 => at(base + 8 * random.u64(200..1000).min((limit - base) / 8 - 1)),
                _ => Some(listing + 8 * random.u64(2..40)),
            };
            let word = match random.u32(0..5) {
                0 => random.u64(..),
                1 => random.u64(..1 << 12),
                2 => base + 8 * random.u64(0..1000),
                3 => 0,
                _ => u64::MAX - random.u64(..1 << 8),
            };
            file.write_all_at(&word.to_le_bytes(), place.unwrap()).unwrap();
        }
        let ran = run_within(&mutant, Duration::from_secs(60));
        let context = format!("mutant {number_of_mutant} of seed {seed}: {:?} {}", ran.status, ran.err);
        assert!(matches!(ran.status, Some(0 | 2)), "{context}");
        assert!(!ran.err.contains("panicked") && !ran.err.is_empty(), "{context}");
        named += u64::from(ran.status == Some(2));
        partial += u64::from(!ran.out.is_empty() && ran.json()["heaps"][0]["types"].is_array());
    }
    assert_eq!(named, MUTANTS, "no type of this name is there");
    assert!(partial > MUTANTS / 4, "of {MUTANTS} mutants only {partial} were shown in part");
}

/// (design/cli.md `.req.readable`)
pub(super) fn assert_cut_cores_are_read_as_far_as_they_go(core: &Path) {
    let bytes = std::fs::read(core).unwrap();
    let cut = core.with_extension("cut");
    for share in 0..16 {
        std::fs::write(&cut, &bytes[..bytes.len() * share / 16]).unwrap();
        let ran = run_within(&cut, Duration::from_secs(60));
        assert_eq!(ran.status, Some(2), "{share} sixteenths: {}", ran.out);
        assert!(!ran.err.contains("panicked"), "{share} sixteenths: {}", ran.err);
        if share > 0 {
            assert!(ran.err.contains("the file ends after"), "{share} sixteenths: {}", ran.err);
        }
    }
}

#[test]
fn a_core_of_32_bits_and_one_of_another_version_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core");
    for (word, version, expected) in [(4, 1, "words of 4 bytes"), (8, 99, "version 99")] {
        made::core_with_heaps(&core, word, version);
        let ran = run(&["heap", "--json"], &core);
        assert_eq!(ran.status, Some(2), "{}", ran.out);
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

#[test]
fn a_core_without_heaps_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core");
    made::core(&core, 8, 1 << 40);
    let ran = run(&["heap"], &core);
    assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""));
    assert!(ran.err.contains("no heap"), "{}", ran.err);
}
