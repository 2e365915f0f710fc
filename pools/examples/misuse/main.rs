//! Prints the outcomes of 14 faults in 9 classes as a table, and searches for programs with one fault that harm other objects.
//! `verify/misuse` runs it with the feature `hardening` and without.
//!
//! Every fault is committed in a process of its own, because without the feature it may
//! crash or hang that process.

use std::process::{Command, ExitCode};

#[allow(dead_code, reason = "the tests use the rest")]
mod faults;
#[allow(dead_code, reason = "the tests use the rest")]
mod search;

use faults::{Class, Fault};

const OPERATIONS: usize = 6000;

/// The operations of a program of a search.
const SEARCH_OPERATIONS: usize = 300;

/// Commits a fault in this process.
fn one(class: &str, fault: &str, seed: u64) -> Option<()> {
    let class = Class::ALL.into_iter().find(|known| known.name() == class)?;
    let fault = Fault::ALL.into_iter().find(|known| known.name() == fault)?;
    println!("{}", faults::run(class, fault, seed, OPERATIONS));
    Some(())
}

/// Commits a fault in another process, which is ended if it hangs.
fn in_child(class: Class, fault: Fault, seed: u64) -> std::io::Result<String> {
    let program = std::env::current_exe()?;
    let output = Command::new("timeout")
        .arg("20")
        .arg(program)
        .args(["--one", class.name(), fault.name(), &seed.to_string()])
        .output()?;
    Ok(match output.status.code() {
        Some(0) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Some(101) => "panic".to_owned(),
        Some(124) => "hang".to_owned(),
        _ => "crash".to_owned(),
    })
}

fn table(seed: u64) -> std::io::Result<()> {
    println!("seed {seed}, hardening: {}\n", cfg!(feature = "hardening"));
    println!("| fault | {} |", Class::ALL.map(Class::name).join(" | "));
    println!("|---|{}", "---|".repeat(Class::ALL.len()));
    for fault in Fault::ALL {
        let mut line = format!("| {} |", fault.name());
        for class in Class::ALL {
            line += &format!(" {} |", in_child(class, fault, seed)?);
        }
        println!("{line}");
    }
    Ok(())
}

/// Searches all kinds of pools, or those of a name, and prints what became of the programs. Returns whether none harmed another
/// object that promises hold for.
fn search_for(programs: u64, seed: u64, only: &str) -> bool {
    let mut is_harmless = true;
    println!(
        "{programs} programs a kind and fault, seed {seed}, hardening: {}\n",
        cfg!(feature = "hardening")
    );
    println!("| pool | programs | found | overlaps | changed | panics | first |");
    println!("|---|---|---|---|---|---|---|");
    for kind in search::Kind::ALL.into_iter().filter(|kind| kind.to_string().starts_with(only)) {
        let mut all = search::Counts::default();
        for fault in search::Fault::ALL.into_iter().map(Some).chain([None]) {
            let counts = search::search(kind, fault, programs, seed, SEARCH_OPERATIONS);
            if counts.harmful() != 0 {
                println!("{kind}, {fault:?}: {counts:?}");
            }
            if kind.promises(fault) {
                all.add_all(&counts);
            }
        }
        is_harmless &= all.harmful() == 0;
        let first = all.first.map_or("-".to_owned(), |first| first.to_string());
        println!(
            "| {kind} | {} | {} | {} | {} | {} | {first} |",
            all.programs, all.found, all.overlaps, all.changed, all.panics
        );
    }
    is_harmless
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_harmless = match words.as_slice() {
        [] => table(1).ok().map(|()| true),
        [seed] => seed.parse().ok().and_then(|seed| table(seed).ok()).map(|()| true),
        ["--search", programs, "--seed", seed, only @ ..] if only.len() <= 1 => {
            let numbers = programs.parse().ok().zip(seed.parse().ok());
            numbers
                .map(|(programs, seed)| search_for(programs, seed, only.first().copied().unwrap_or_default()))
        }
        ["--twice", seed] => seed.parse().ok().map(|seed| {
            println!("| pool | ways | pairs found at once | others |\n|---|---|---|---|");
            for kind in search::Kind::ALL {
                println!("{}", search::row_of_two_frees(kind, search::PROGRAMS_OF_ROW, seed));
            }
            true
        }),
        ["--one", class, fault, seed] => {
            seed.parse().ok().and_then(|seed| one(class, fault, seed)).map(|()| true)
        }
        _ => None,
    };
    match is_harmless {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => {
            eprintln!("usage: misuse [SEED] | --twice SEED | --search PROGRAMS --seed SEED [KIND]");
            ExitCode::from(2)
        }
    }
}
