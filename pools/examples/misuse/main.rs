//! Prints the outcomes of 14 faults in 9 classes as a table. `verify/misuse` runs it with the
//! feature `hardening` and without.
//!
//! Every fault is committed in a process of its own, because without the feature it may
//! crash or hang that process.

use std::process::{Command, ExitCode};

#[allow(dead_code, reason = "the tests use the rest")]
mod faults;

use faults::{Class, Fault};

const OPERATIONS: usize = 6000;

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

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] => table(1).ok(),
        [seed] => seed.parse().ok().and_then(|seed| table(seed).ok()),
        ["--one", class, fault, seed] => seed.parse().ok().and_then(|seed| one(class, fault, seed)),
        _ => None,
    };
    match done {
        Some(()) => ExitCode::SUCCESS,
        None => {
            eprintln!("usage: misuse [SEED]");
            ExitCode::from(2)
        }
    }
}
