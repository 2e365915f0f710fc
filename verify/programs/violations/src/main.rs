//! Breaks real time in one way each time it is started, under the tool that it was built for.
//!
//! ```text
//! violations list          every case with its group, what it does and what it may do, by tabs
//! violations run NAME      does it, and says what the tool saw
//! violations turns N       all controls, which do nothing wrong, N times
//! ```
//!
//! | file | |
//! |---|---|
//! | `case` | what a case is |
//! | `cases` | all of them, by groups |
//! | `helper` | threads that keep the steady one waiting |
//! | `tools` | the three tools |
#![cfg_attr(feature = "realtime", feature(sanitize))]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
compile_error!("the cases are facts of Linux with glibc on x86-64");

mod case;
mod cases;
mod helper;

#[cfg_attr(feature = "realtime", path = "tools/realtime.rs")]
#[cfg_attr(all(feature = "assert-no-alloc", not(feature = "realtime")), path = "tools/assert_no_alloc.rs")]
#[cfg_attr(not(any(feature = "realtime", feature = "assert-no-alloc")), path = "tools/contract.rs")]
mod tool;

use case::{Case, names};

fn join(facts: case::Facts) -> String {
    names(facts).collect::<Vec<_>>().join(", ")
}

fn say(seen: case::Facts) {
    println!("SEEN {}", join(seen));
}

fn find(name: &str) -> Option<&'static Case> {
    cases::GROUPS.iter().flat_map(|group| group.cases).find(|case| case.name == name)
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => {
            for group in cases::GROUPS {
                for case in group.cases {
                    println!("{}\t{}\t{}\t{}", group.name, case.name, join(case.does), join(case.may));
                }
            }
        }
        ["run", name] => {
            let Some(case) = find(name) else {
                eprintln!("there is no case of this name: {name}");
                std::process::exit(2)
            };
            say(tool::watch(case.prepare, 1));
        }
        ["turns", turns] => {
            let Ok(turns) = turns.parse() else {
                eprintln!("not a number of turns: {turns}");
                std::process::exit(2)
            };
            say(tool::watch(cases::controls::together, turns));
        }
        _ => {
            eprintln!("violations list | run NAME | turns N");
            std::process::exit(2)
        }
    }
}
