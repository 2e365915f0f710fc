//! Advice as a program in Rust ([design/cli-traces.md `.advise.rust`](crate::design::cli_traces)).

use core::fmt::{self, Write};

use crate::trace::advise::{Advice, Class, Unit};

/// What an `Mfs` pool takes from its arena at a time, by default, in bytes.
const EXTENT: u64 = 64 << 10;

/// A whole program that sets memory up as it was advised for a source of that name.
pub(super) fn program(advice: &Advice, source: &str) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(advice, source, &mut text);
    text
}

fn write(advice: &Advice, source: &str, out: &mut String) -> fmt::Result {
    let source = source.escape_default();
    let mfs = if advice.units.is_empty() { "" } else { " Mfs, MfsOptions," };
    let unit_of = if advice.units.is_empty() { "" } else { ", UnitOf" };
    writeln!(
        out,
        "//! Memory as `tripoint advise --rust {source}` advises. It was tried out: in a second replay nothing grew.\n\n\
         use tripoint::author::CacheClass;\n\
         use tripoint::{{\n    \
         ArenaVm, ArenaVmOptions, Cache, CacheClasses, CacheDescriptor, Error,{mfs} Tlsf, TlsfOptions{unit_of},\n\
         }};\n"
    )?;
    write_constants(advice, out)?;
    writeln!(
        out,
        "fn main() -> Result<(), Error> {{\n    \
         let options = ArenaVmOptions {{ commit_limit: COMMIT_LIMIT, ..ArenaVmOptions::default() }};\n    \
         let arena = ArenaVm::create(options)?;\n    \
         let pool = Tlsf::create(&arena, TlsfOptions::default())?;\n    \
         pool.extend(EXTENT)?;"
    )?;
    for unit in &advice.units {
        let name = format!("of_{}_bytes", unit.size);
        writeln!(
            out,
            "\n    // {} allocations, at most {} live at once.\n    \
             let {name} = Mfs::create(&arena, UnitOf::<[u64; {}]>::new(), MfsOptions::default())?;\n    \
             assert_eq!({name}.unit_size(), {});",
            grouped(unit.allocations),
            grouped(unit.most),
            unit.size / size_of::<u64>(),
            unit.size,
        )?;
    }
    writeln!(
        out,
        "\n    // Each thread makes a cache of its own.\n    \
         let descriptor = CacheDescriptor::new(CacheClasses::new(&CLASSES)?);\n    \
         let cache = Cache::create(&pool, &descriptor)?;\n    \
         let object = cache.boxed([0_u8; 16])?;\n    \
         assert_eq!(object.len(), 16);\n    \
         Ok(())\n}}"
    )
}

fn write_constants(advice: &Advice, out: &mut String) -> fmt::Result {
    let limit = grouped(advice.commit_limit as u64);
    let room: u64 = advice.units.iter().map(room).sum();
    let (also, room) = match room {
        0 => ("", String::new()),
        room => (", and room for the pools of one size", format!(" + {}", grouped(room))),
    };
    writeln!(
        out,
        "/// The most bytes that the arena commits: what was tried out{also}.\n\
         const COMMIT_LIMIT: usize = {limit}{room};\n\n\
         /// The bytes that the pool takes before the first object.\n\
         const EXTENT: usize = {};\n\n\
         /// The sizes that a cache keeps, and how many blocks of each.\n\
         const CLASSES: [CacheClass; {}] = [",
        grouped(advice.extend as u64),
        advice.classes.len(),
    )?;
    for Class { size, count, .. } in &advice.classes {
        writeln!(
            out,
            "    CacheClass {{ size: {}, count: {} }},",
            grouped(*size as u64),
            grouped(*count as u64)
        )?;
    }
    writeln!(out, "];\n")
}

/// The bytes that a pool of this unit takes for the most objects that were live at once, with an extent that is not full.
fn room(unit: &Unit) -> u64 {
    (unit.size as u64 * unit.most).next_multiple_of(EXTENT) + EXTENT
}

/// A number as Rust is written: `1_234_567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let numbers = [0, 999, 1_000, 12_345, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "1_000", "12_345", "1_234_567"]);
    }
}
