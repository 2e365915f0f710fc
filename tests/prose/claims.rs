//! Numbers in prose are those of the code. Each claim is a sentence, or the part of one that has the number, and what
//! the code says. If a constant changes, this names the sentences that do, too.

use core::marker::PhantomData;

use tripoint_ap::Frame;
use tripoint_arena_vm::{ArenaVm, ArenaVmOptions};
use tripoint_contract::ViolationClass;
use tripoint_contract::gate::Steady;
use tripoint_gc::{GENERATIONS, Policy};
use tripoint_packets::{PacketBurst, PacketPoolOptions};
use tripoint_pools::{Mfs, MfsCache, MfsOptions, MvffOptions, Returns, SncOptions, TlsfOptions, UnitOf};
use tripoint_stack::Site;
use tripoint_telemetry::{Mean, Room, format};

use crate::constants::constant;
use crate::repository;
use crate::words::has;

/// A part of a sentence of a page, with `{}` for each number.
struct Claim {
    page: &'static str,
    text: &'static str,
    numbers: Vec<String>,
}

fn claim<const N: usize>(page: &'static str, text: &'static str, numbers: [String; N]) -> Claim {
    assert_eq!(text.matches("{}").count(), N, "{text}");
    Claim { page, text, numbers: numbers.into() }
}

impl Claim {
    /// What the page has to say.
    fn sentence(&self) -> String {
        let mut numbers = self.numbers.iter();
        let parts = self.text.split("{}");
        parts.map(|part| part.to_owned() + numbers.next().map_or("", String::as_str)).collect()
    }

    /// What is wrong, if a page does not say it.
    fn miss(&self, text: &str) -> Option<String> {
        let sentence = self.sentence();
        (!has(&one_line(text), &sentence)).then(|| format!("{} should say: {sentence}", self.page))
    }
}

/// The text without line breaks, and without the marks of comments.
fn one_line(text: &str) -> String {
    let unmarked = text.lines().map(|line| line.trim().trim_start_matches("//!").trim());
    unmarked.collect::<Vec<_>>().join(" ")
}

/// With commas between thousands.
fn number(number: impl TryInto<u128>) -> String {
    let digits = number.try_into().unwrap_or_else(|_| panic!("not negative")).to_string();
    let groups: Vec<_> =
        digits.as_bytes().rchunks(3).rev().map(|group| core::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

/// In the largest unit of bytes of which it is a multiple.
fn bytes(size: impl TryInto<u128>) -> String {
    let size = size.try_into().unwrap_or_else(|_| panic!("not negative"));
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| size >> shift << shift == size && size != 0);
    unit.map_or_else(
        || format!("{} bytes", number(size)),
        |(shift, unit)| format!("{} {unit}", size >> shift),
    )
}

/// In words, as short counts are written.
fn word(number: usize) -> String {
    ["no", "one", "two", "three", "four", "five"][number].to_owned()
}

/// The units that a burst has room for.
const fn units<const SIZE: usize, const N: usize>(_: PhantomData<PacketBurst<'_, SIZE, N>>) -> usize {
    N
}

/// Instructions of one operation, by the committed counts.
fn instructions(operation: &str) -> String {
    let counts = std::fs::read_to_string(repository::root().join("benches/instructions.tsv")).unwrap();
    let row = counts.lines().find_map(|line| line.strip_prefix(operation)?.strip_prefix('\t'));
    let count = row.unwrap_or_else(|| panic!("{operation} is not counted")).split('\t').next().unwrap();
    format!("{:.0}", count.parse::<f64>().unwrap())
}

/// Lines of a file, to the nearest ten.
fn tens_of_lines(path: &str) -> String {
    let text = std::fs::read_to_string(repository::root().join(path)).unwrap();
    ((text.lines().count() + 5) / 10 * 10).to_string()
}

/// Those of 64-bit targets, on which pages and words are counted.
#[cfg(target_pointer_width = "64")]
fn claims() -> Vec<Claim> {
    let generations = Policy::default().generations.map(|generation| bytes(generation.capacity));
    let [nursery, second, last] = generations;
    let steady = Steady::default();
    vec![
        claim("README.md", "`MfsCache` | {} instructions", [instructions("pair of 64 bytes, cache")]),
        claim(
            "guide/src/which-class.md",
            "An `Mfs` itself takes {}, and an `MfsCache` {}.",
            [
                bytes(size_of::<Mfs<&ArenaVm, UnitOf<[u64; 4]>>>()),
                size_of::<MfsCache<'_, &ArenaVm, UnitOf<[u64; 4]>>>().to_string(),
            ],
        ),
        claim(
            "guide/src/which-class.md",
            "with units of at most {} | 256 bytes to {}: eight units. Then up to {} more, and then {} at a time",
            [
                bytes(constant("core/src", "PART_SIZE_MAX") / constant("pools/src", "FIRST_UNITS")),
                bytes(constant("core/src", "PART_SIZE_MAX")),
                bytes(constant("core/src", "PART_SIZE_MAX")),
                bytes(MfsOptions::default().extend_by),
            ],
        ),
        claim(
            "guide/src/which-class.md",
            "| any other | {}, of which",
            [bytes(TlsfOptions::default().extend_by)],
        ),
        claim(
            "guide/src/which-class.md",
            "stays committed, up to {} (`ArenaVmOptions::spare_share`)",
            [bytes(constant("arena-vm/src", "SPARE_AGAIN"))],
        ),
        claim(
            "guide/src/points.md",
            "of an `Mvff` or a `Tlsf` up to {} objects",
            [number(constant("pools/src", "BLOCKS_MAX"))],
        ),
        claim(
            "guide/src/caches.md",
            "frees them through `Returns`, which collects {} units",
            [number(Returns::<&ArenaVm, UnitOf<u64>>::BATCH)],
        ),
        claim(
            "guide/src/frames.md",
            "`fill_size` bytes, {} by default",
            [bytes(SncOptions::default().fill_size)],
        ),
        claim(
            "guide/src/from-mps.md",
            "more than an address (it is {} words)",
            [word(size_of::<Frame>() / size_of::<usize>())],
        ),
        claim(
            "guide/src/packets.md",
            "up to {} units (or as many as you say)",
            [number(units(PhantomData::<PacketBurst<'_, 2048>>))],
        ),
        claim(
            "guide/src/af-xdp.md",
            "has room for {} caches unless",
            [word(PacketPoolOptions::default().caches as usize)],
        ),
        claim(
            "guide/src/device-memory.md",
            "The arena keeps {} free grains or more",
            [word(constant("arena-vm/src", "SPARE_FLOOR_GRAINS") as usize)],
        ),
        claim(
            "guide/src/device-memory.md",
            "up to {} of what it had to take again",
            [bytes(constant("arena-vm/src", "SPARE_AGAIN"))],
        ),
        claim(
            "guide/src/whole-program.md",
            "A vector of {} or more that grows",
            [bytes(constant("adaptors/src", "LARGE"))],
        ),
        claim(
            "guide/src/bare-metal.md",
            "The default, {}, is for larger machines",
            [bytes(MvffOptions::default().extend_by)],
        ),
        claim(
            "guide/src/sampling.md",
            "Mean::default(); // one byte in {}",
            [number((1.0 / Mean::default().chance(1)).round() as u64)],
        ),
        claim(
            "guide/src/sampling.md",
            "after it has allocated another {}",
            [bytes(constant("telemetry/src", "LOOK")).replace("1 MiB", "mebibyte")],
        ),
        claim(
            "guide/src/telemetry.md",
            "`Room::threads`, by default {}, multiplies",
            [number(Room::default().threads)],
        ),
        claim(
            "telemetry/src/linux/create.rs",
            "the default room takes {}",
            [format!("{:.1} MiB", Room::default().bytes().expect("it fits") as f64 / f64::from(1 << 20))],
        ),
        claim("guide/src/automatic-pools.md", "So a heap has {} generations", [word(GENERATIONS)]),
        claim(
            "guide/src/automatic-pools.md",
            "that is {} in the nursery and {} in the second",
            [nursery, second],
        ),
        claim("guide/src/automatic-pools.md", "as its last collection kept, and at least {}", [last]),
        claim(
            "guide/src/automatic-pools.md",
            "One piece, of some {} of objects",
            [bytes(constant("gc/src", "PIECE"))],
        ),
        claim(
            "guide/src/automatic-pools.md",
            "freed memory is overwritten with `{}`",
            [format!("{:#x}", constant("gc/src", "POISON"))],
        ),
        claim(
            "guide/src/own-class.md",
            "in about {} lines, a class",
            [tens_of_lines("examples/10_own_pool_class.rs")],
        ),
        claim(
            "stack/README.md",
            "the return addresses of its innermost {} frames",
            [number(constant("stack/src", "FRAMES"))],
        ),
        claim(
            "telemetry/README.md",
            "Called for one byte in {}",
            [bytes((1.0 / Mean::default().chance(1)).round() as u64)],
        ),
        claim(
            "guide/src/whole-program.md",
            "up to a {} of what it has committed",
            [if ArenaVmOptions::default().spare_share == 25 { "quarter".to_owned() } else { "?".to_owned() }],
        ),
        claim(
            "guide/src/contract.md",
            "a thousand turns to warm it up, and then a thousand turns more, up to {} times",
            [word(steady.windows)],
        ),
    ]
}

/// Those of the design pages.
#[cfg(target_pointer_width = "64")]
fn claims_of_design() -> Vec<Claim> {
    let core = |name| constant("core/src/arena", name);
    let arena = |name| bytes(constant("arena-vm/src", name));
    let contract = |name| constant("contract/src", name);
    vec![
        claim(
            "design/core.md",
            "A lock spins, and after {} looks",
            [number(constant("core/src/primitive", "LOOKS"))],
        ),
        claim("design/arena.md", "`TractTable::PIECE` = {} grains", [number(core("PIECE"))]),
        claim("design/arena.md", "rounded up to 64 bytes, up to {}", [number(core("SIZE_MAX"))]),
        claim(
            "design/arena.md",
            "A part has {} to {}, in steps of {}",
            [
                number(constant("core/src", "PART_ALIGN")),
                format!("{} bytes", number(constant("core/src", "PART_SIZE_MAX"))),
                number(constant("core/src", "PART_ALIGN")),
            ],
        ),
        claim(
            "design/ap.md",
            "sizes above {} (`INLINE_SIZE_MAX`)",
            [bytes(constant("core/src", "INLINE_SIZE_MAX"))],
        ),
        claim("design/arena-vm.md", "1/64th, at most {}", [arena("DESCRIPTORS_MAX")]),
        claim("design/arena-vm.md", "raises the floor by as much, up to {}", [arena("SPARE_AGAIN")]),
        claim("design/arena-vm.md", "and up to {} (four grains", [arena("SPARE_FLOOR")]),
        claim(
            "design/arena-vm.md",
            "a quarter of what it has, from {} to {}, at a time",
            [arena("RESERVE_STEP_MIN"), arena("RESERVE_STEP_MAX")],
        ),
        claim("design/arena-vm.md", "if that is less, and at most {}", [arena("STEP_MAX")]),
        claim("design/arena-vm.md", "So does this one below {}", [arena("ZERO_MIN")]),
        claim(
            "design/cache.md",
            "Up to {} sizes, each a multiple",
            [number(constant("pools/src", "CLASSES_MAX"))],
        ),
        claim(
            "design/cache.md",
            "a *portion* of {} blocks, or of {}",
            [number(constant("pools/src/cache", "FIRST")), bytes(constant("pools/src/cache", "FIRST_SIZE"))],
        ),
        claim(
            "design/pool-mfs.md",
            "a list of batches, of {} units",
            [number(Returns::<&ArenaVm, UnitOf<u64>>::BATCH)],
        ),
        claim(
            "design/pool-tlsf.md",
            "at most {} blocks are looked at",
            [number(constant("pools/src", "LOOKS"))],
        ),
        claim(
            "design/cache.md",
            "it allocates {} in the pool at a time",
            [bytes(constant("pools/src/cache", "SLAB_SIZE"))],
        ),
        claim(
            "design/cache.md",
            "The header is in one of {} places",
            [number(constant("pools/src/cache", "PLACES"))],
        ),
        claim("design/land.md", "lie well: {} at most", [number(constant("pools/src", "LOOKS"))]),
        claim(
            "design/contract.md",
            "two rings of {} records of {} words, and {} classes",
            [
                number(contract("RING_RECORDS")),
                number(contract("HEAD") + constant("stack/src", "FRAMES")),
                number(ViolationClass::ALL.len()),
            ],
        ),
        claim("design/contract.md", "A thread has {} places for scopes", [number(contract("PLACES"))]),
        claim("design/contract.md", "in a table of {} sites", [number(contract("RING_RECORDS"))]),
        claim("design/contract.md", "{} of stack is touched", [bytes(contract("STACK_TOUCHED"))]),
        claim("design/contract.md", "has room for, less {}", [bytes(contract("STACK_LEFT"))]),
        claim("design/contract.md", "more than {} minor ones", [number(contract("FAULT_SLACK"))]),
        claim(
            "design/telemetry.md",
            "Records have at most {} words, texts {} bytes and sites {} frames",
            [number(format::MAX_RECORD_WORDS), number(format::MAX_TEXT_BYTES), number(format::MAX_FRAMES)],
        ),
        claim("design/telemetry.md", "Tables have entries of {} words", [number(format::TABLE_ENTRY_WORDS)]),
        claim(
            "design/stack.md",
            "A site is {} return addresses, the innermost first; a zero ends it. It takes {} bytes",
            [number(Site::FRAMES), number(size_of::<Site>())],
        ),
        claim("design/sampling.md", "in steps of at most {}", [bytes(constant("telemetry/src", "LOOK"))]),
        claim(
            "design/adaptors.md",
            "An object of {} or more that moves is copied in pieces of {}",
            [bytes(constant("adaptors/src", "LARGE")), bytes(constant("adaptors/src", "PIECE"))],
        ),
        claim(
            "guide/src/which-features.md",
            "at first, then from {} to {} at a time",
            [
                bytes(constant("arena-vm/src", "RESERVE_STEP_MIN")),
                bytes(constant("arena-vm/src", "RESERVE_STEP_MAX")),
            ],
        ),
        claim(
            "design/adaptors.md",
            "the depot keeps at most {} of batches",
            [bytes(constant("adaptors/src", "DEPOT_BESIDE_SLABS"))],
        ),
        claim(
            "design/adaptors.md",
            "has none, and keeps up to {}",
            [bytes(constant("adaptors/src", "DEPOT"))],
        ),
    ]
}

#[cfg(target_pointer_width = "64")]
#[test]
fn numbers_in_prose_are_those_of_the_code() {
    let mut claims = claims();
    claims.extend(claims_of_design());
    let read = |path| std::fs::read_to_string(repository::root().join(path)).expect("the page is there");
    let wrong: Vec<_> = claims.iter().filter_map(|claim| claim.miss(&read(claim.page))).collect();
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn wrong_numbers_are_found() {
    let claim = claim("a.md", "up to {} of {}", [bytes(3 << 20), number(1_234_567)]);
    assert_eq!(claim.miss("It has up\nto 3 MiB of 1,234,567."), None);
    assert_eq!(
        claim.miss("up to 4 MiB of 1,234,567"),
        Some("a.md should say: up to 3 MiB of 1,234,567".to_owned())
    );
    for longer in ["up to 3 MiB of 1,234,567,890", "up to 3 MiB of 1,234,567.5", "up to 3 MiB of 1,234,5678"]
    {
        assert!(claim.miss(longer).is_some(), "{longer}");
    }
    assert_eq!(claim.miss("Up to 2, up to 3 MiB of 1,234,567, or 8."), None);
    assert_eq!(
        [bytes(0), bytes(1000), bytes(1 << 10), bytes(1025)],
        ["0 bytes", "1,000 bytes", "1 KiB", "1,025 bytes"]
    );
}
