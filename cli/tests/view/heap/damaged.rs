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

use super::crafted::{Crafted, ITEMS, LEAF, PARTS, STRONG, WORDS};
use crate::core_file::made;
use crate::run::{Ran, run, tripoint};

/// How many mutants of a core there are.
const MUTANTS: u64 = 60;

/// What has no object.
const NO_TYPE: &str = "no::Type";

/// The most memory that the command may have, in KiB.
const MOST_MEMORY: u64 = 4 << 20;

/// Runs the command, and ends it if it takes long.
fn run_within(target: &Path, path: &str, limit: Duration) -> Ran {
    let command = tripoint(&["heap", "--json", "--path", path], target);
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

/// What readers follow, each with how many words of it are damaged: outlines of the heap, of its first pool and of types,
/// tables, buffers and roots, and the head of each segment, with some of its bits and its first objects.
fn followed(core: &Path, word: impl Fn(u64) -> Option<u64>) -> Vec<(u64, u64)> {
    let found = run(&["heap", "--json", "--path", &super::name("Needle")], core).json();
    let heap = &found["heaps"][0];
    let outline = number(&heap["address"]);
    let next = |address: u64, offset| word(address + offset).unwrap();
    let pool = next(next(outline, 8), 0);
    let (root, buffers) = (next(next(outline, 16), 0), next(pool, 64));
    let mut all = vec![(outline, 5), (pool, 20), (root, 8), (next(root, 0), 8), (buffers, 4)];
    // A registry has the first node at its beginning, or behind one word.
    all.extend([0, 8].map(|offset| next(buffers, offset)).map(|node| (node, 40)));
    for (object, _) in super::steps(heap) {
        let object = number(&object.into());
        let table = next(object, 0);
        all.extend([(object, 4), (table, 8)]);
        // The sixth word about typed objects says where in a table the outline is.
        all.extend(word(table + next(pool, 8 * 17)).map(|outline| (outline, 7)));
    }
    for segment in heap["segments"].as_array().unwrap() {
        let (base, limit) = (number(&segment["base"]), number(&segment["limit"]));
        all.extend([(base, 24), (base, 200), (base, 1000.min((limit - base) / 8))]);
    }
    all
}

/// (design/inspection.md `.req.damaged`)
pub(super) fn assert_mutants_end(core: &Path) {
    let bytes = std::fs::read(core).unwrap();
    let (at, seed) = (places(&bytes), fastrand::u64(..));
    println!("mutants of seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let word = |address| {
        let at = usize::try_from(at(address)?).unwrap();
        Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().unwrap()))
    };
    let followed = followed(core, word);
    let listing = bytes.windows(16).position(|bytes| bytes == b"tripointgc-heaps").unwrap() as u64;
    let mutant = core.with_extension("mutant");
    // Nothing leads to one of these, so all references are followed.
    let lost = super::name("Lost");
    let (mut named, mut whole, mut partial) = (0, 0, 0);
    for number_of_mutant in 0..MUTANTS {
        std::fs::copy(core, &mutant).unwrap();
        let file = File::options().write(true).open(&mutant).unwrap();
        for _ in 0..random.usize(1..4) {
            let &(base, words) = random.choice(&followed).unwrap();
            let place = match random.u32(0..8) {
                0 => Some(listing + 8 * random.u64(2..40)),
                // What the program never wrote is not in the file.
                _ => at(base + 8 * random.u64(0..words)),
            };
            let word = match random.u32(0..5) {
                0 => random.u64(..),
                1 => random.u64(..1 << 12),
                2 => base + 8 * random.u64(0..1000),
                3 => 0,
                _ => u64::MAX - random.u64(..1 << 8),
            };
            place.map_or(Ok(()), |place| file.write_all_at(&word.to_le_bytes(), place)).unwrap();
        }
        let ran = run_within(&mutant, &lost, Duration::from_secs(60));
        let context = format!("mutant {number_of_mutant} of seed {seed}: {:?} {}", ran.status, ran.err);
        assert!(matches!(ran.status, Some(0 | 2)), "{context}");
        assert!(!ran.err.contains("panicked"), "{context}");
        assert_eq!(ran.err.is_empty(), ran.status == Some(0), "{context}");
        named += u64::from(ran.status == Some(2));
        whole += u64::from(ran.status == Some(0));
        partial += u64::from(!ran.out.is_empty() && ran.json()["heaps"][0]["types"].is_array());
    }
    println!("of {MUTANTS} mutants {named} were named, {whole} were not, and {partial} were shown");
    assert!(named > MUTANTS / 8, "of {MUTANTS} mutants only {named} were named");
    assert!(partial > MUTANTS / 4, "of {MUTANTS} mutants only {partial} were shown in part");
}

/// (design/cli.md `.req.readable`)
pub(super) fn assert_cut_cores_are_read_as_far_as_they_go(core: &Path) {
    let bytes = std::fs::read(core).unwrap();
    let cut = core.with_extension("cut");
    for share in 0..16 {
        std::fs::write(&cut, &bytes[..bytes.len() * share / 16]).unwrap();
        let ran = run_within(&cut, NO_TYPE, Duration::from_secs(60));
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

/// What the command says of a crafted heap, whatever that says, it says soon, and in little memory.
fn look_at(crafted: Crafted) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core");
    crafted.write(&core);
    // Nothing leads to it, so all references are followed.
    let ran = run_within(&core, "made::Other", Duration::from_secs(60));
    assert!(matches!(ran.status, Some(0 | 2)), "{:?} {}{}", ran.status, ran.out, ran.err);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran
}

/// Makes the outline of a type.
type Outline = dyn Fn(&mut Crafted) -> u64;

/// A heap with two objects: one whose value has this outline, to which a root leads, and another.
fn with_outline(outline: impl FnOnce(&mut Crafted) -> u64) -> Crafted {
    let mut crafted = Crafted::new(1 << 13);
    let outline = outline(&mut crafted);
    let other = crafted.outline(LEAF, 8, "made::Other", &[]);
    let tables = [outline, other].map(|outline| crafted.table(outline));
    crafted.objects(&tables, true);
    let reference = crafted.words(&[crafted.object(0) + 8]);
    crafted.root(0, reference, 1);
    crafted
}

/// The objects of a type that were found.
fn objects_of(ran: &Ran, of: &str) -> u64 {
    let found = ran.json();
    let rows = found["heaps"][0]["types"].as_array().unwrap().iter();
    rows.filter(|row| row["type"] == of).map(|row| row["objects"].as_u64().unwrap()).sum()
}

/// What the tests below change is read if it makes sense.
#[test]
fn a_crafted_heap_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core");
    with_outline(|crafted| crafted.outline(STRONG, 8, "One", &[])).write(&core);
    let ran = run(&["heap", "--json", "--path", "One"], &core);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    assert_eq!(["One", "made::Other"].map(|of| objects_of(&ran, of)), [1, 1]);
    assert_eq!(ran.json()["heaps"][0]["path"]["root"], "table");
    for (path, expected) in
        [("ther", "`tripoint heap` without --path lists types"), ("Other", "as in --path made::Other")]
    {
        let ran = run(&["heap", "--path", path], &core);
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

/// (design/inspection.md `.bounds`)
#[test]
fn types_that_are_deep_empty_or_too_large_take_no_time_and_no_stack() {
    let deep = |crafted: &mut Crafted| {
        let innermost = crafted.outline(STRONG, 8, "One", &[]);
        (0..20_000).fold(innermost, |part, _| crafted.outline(PARTS, 8, "Deep", &[(0, part)]))
    };
    let empty = |crafted: &mut Crafted| {
        let innermost = crafted.outline(PARTS, 0, "Empty", &[]);
        (0..4).fold(innermost, |part, _| crafted.outline(PARTS, 0, "Empty", &[(0, part); 4096]))
    };
    let items = |crafted: &mut Crafted| {
        let item = crafted.outline(PARTS, 0, "Empty", &[]);
        crafted.outline(ITEMS, 1 << 46, "", &[(1, item)])
    };
    let words = |crafted: &mut Crafted| crafted.outline(WORDS, 1 << 40, "Large", &[]);
    let named = |crafted: &mut Crafted| {
        let innermost = crafted.outline(LEAF, 0, &"n".repeat(1000), &[]);
        (0..8).fold(innermost, |part, _| crafted.outline(PARTS, 0, "", &[(0, part); 4096]))
    };
    let cases: [(&Outline, bool); 5] =
        [(&deep, false), (&empty, true), (&items, false), (&words, false), (&named, true)];
    for (case, (outline, makes_sense)) in cases.into_iter().enumerate() {
        let ran = look_at(with_outline(outline));
        assert_eq!(ran.err.contains("no object is at"), !makes_sense, "case {case}: {}", ran.err);
        assert_eq!(objects_of(&ran, "made::Other"), 1, "case {case}");
        assert!(ran.out.len() < 1 << 14, "case {case}: {} bytes", ran.out.len());
    }
}

#[test]
fn buffers_that_hold_the_same_memory_are_walked_once() {
    let mut crafted = Crafted::new(100_000);
    let outline = crafted.outline(LEAF, 8, "Leaf", &[]);
    let table = crafted.table(outline);
    crafted.objects(&[table; 5000], false);
    let (base, limit) = (crafted.object(0), crafted.object(5000));
    for _ in 0..2000 {
        crafted.buffers = crafted.words(&[crafted.buffers, 1, limit, base, limit]);
    }
    let ran = look_at(crafted);
    assert!(ran.err.contains("two buffers hold memory at"), "{}", ran.err);
    assert_eq!(objects_of(&ran, "Leaf"), 5000);
}

#[test]
fn roots_and_frozen_segments_that_lie_over_each_other_are_bounded() {
    let mut crafted = with_outline(|crafted| crafted.outline(LEAF, 8, "Leaf", &[]));
    let area = crafted.words(&vec![0; 1 << 17]);
    (0..300).for_each(|_| crafted.root(2, area, 1 << 17));
    let ran = look_at(crafted);
    assert!(ran.err.contains("or roots have more than"), "{}", ran.err);

    let mut crafted = with_outline(|crafted| crafted.outline(LEAF, 8, "Leaf", &[]));
    for (base, limit) in [(1, u64::MAX - 1), (1, u64::MAX - 1), (16, 64), (32, 80)] {
        crafted.frozen = crafted.words(&[crafted.frozen, base, limit]);
    }
    let ran = look_at(crafted);
    assert!(ran.err.contains("the frozen segment from 0x20 to 0x50"), "{}", ran.err);
    assert_eq!(ran.json()["heaps"][0]["frozen"].as_array().unwrap().len(), 1);
}

/// Of three objects, the second says that it is longer than where the third begins.
#[test]
fn objects_that_overlap_the_next_one_are_left_out() {
    let mut crafted = Crafted::new(1 << 13);
    let outline = crafted.outline(LEAF, 8, "Leaf", &[]);
    let table = crafted.table(outline);
    let large = crafted.words(&[32, 32, 0, 1, 0, outline, 0]);
    crafted.objects(&[table, large, table], true);
    let ran = look_at(crafted);
    assert!(ran.err.contains("1 objects of the segment at"), "{}", ran.err);
    assert_eq!(objects_of(&ran, "Leaf"), 2);
}

/// Memory that goes on behind the last address.
#[test]
fn memory_at_the_last_address_is_looked_through() {
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core");
    for (before, size) in [(1_u64 << 20, 3 << 20), (16, 1 << 16), (8, 8)] {
        let mut bytes = vec![0; size];
        if size > 16 {
            bytes[..16].copy_from_slice(b"tripointgc-heaps");
            bytes[16] = 1;
        }
        made::core_with_memory(&core, 0_u64.wrapping_sub(before), bytes);
        let ran = run_within(&core, NO_TYPE, Duration::from_secs(60));
        assert_eq!(ran.status, Some(2), "{}", ran.out);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }
}
