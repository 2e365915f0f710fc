//! The report: every workload beside its peers, in Markdown, JSON and plots.
//!
//! `cargo run --release -p benches --bin report -- [--quick] [--out FOLDER] [--only NAME]... [--trace FILE]... [--growth N]`
//!
//! Each workload runs in a process of its own: what an allocator did for one could slow it down, or speed it up, in
//! the next. Contenders take turns within it. `--trace` adds what `tripoint replay` says of a recorded trace, `--growth`
//! a table of growth to that many live objects.

// The report is itself the program that is run on each allocator.
#[path = "../../benches/whole_program/chosen.rs"]
mod chosen;
#[path = "../../benches/whole_program/program.rs"]
mod program;
#[path = "../../benches/whole_program/tables.rs"]
mod tables;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use benches::processor;
use benches::table::Table;
use benches::workloads::{WORKLOADS, measure_growth, run};

const EXPLANATION: &str = "\
Contenders of a table take turns in one process, each once a round, in an order that is drawn anew. *ns* is the \
median of the rounds for one operation. *ratio* is the contender's time divided by the first one's in the same round, its \
median and quartiles. *first, of this* is the first contender's time as a part of this one's: 0.5 is twice as fast. *net* is \
the same without what the row `no allocator` took, empty where that took more. Tables without these columns say what theirs are.
";

const WHOLE_PROGRAM: &str = "whole-program";

/// What the command line asks for.
#[derive(Default)]
struct Asked {
    quick: bool,
    out: PathBuf,
    only: Vec<String>,
    traces: Vec<String>,
    growth: Option<usize>,
}

fn asked() -> Asked {
    let mut asked = Asked { out: "target/report".into(), ..Asked::default() };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
        match argument.as_str() {
            "--quick" => asked.quick = true,
            "--out" => asked.out = value().into(),
            "--only" => asked.only.push(value()),
            "--trace" => asked.traces.push(value()),
            "--growth" => asked.growth = Some(value().parse().expect("a number of objects")),
            _ => panic!("unknown argument {argument}: see the first lines of benches/src/bin/report.rs"),
        }
    }
    asked
}

/// Writes the tables of one workload to files that begin with its name.
fn write(folder: &Path, name: &str, tables: &[Table]) {
    let text: String = tables.iter().map(Table::markdown).collect();
    let json: Vec<_> = tables.iter().map(Table::json).collect();
    fs::write(folder.join(format!("{name}.md")), text).expect("a writable folder");
    fs::write(folder.join(format!("{name}.json")), json.join(",\n")).expect("a writable folder");
    for (index, table) in tables.iter().enumerate() {
        fs::write(folder.join(format!("{name}-{index}.svg")), table.svg()).expect("a writable folder");
    }
}

/// Runs this program for one workload, in a process of its own.
fn measure_apart(asked: &Asked, name: &str) {
    let program = env::current_exe().expect("the path of this program");
    let mut workload = Command::new(program);
    workload.env("REPORT_WORKLOAD", name).arg("--out").arg(&asked.out).args(asked.quick.then_some("--quick"));
    if let Some(count) = asked.growth {
        workload.args(["--growth", &count.to_string()]);
    }
    assert!(workload.status().expect("a process for the workload").success(), "{name}");
}

fn measure(asked: &Asked, name: &str) {
    let tables = match asked.growth {
        Some(count) if name == "growth-asked" => measure_growth(count),
        _ if name == WHOLE_PROGRAM => tables::tables(if asked.quick { 1 } else { 11 }),
        _ => run(name, asked.quick).expect("the name of a workload"),
    };
    write(&asked.out, name, &tables);
}

/// What the command says of a trace.
fn replay(trace: &str, quick: bool) -> String {
    let mut command =
        Command::new(env::var("TRIPOINT").unwrap_or_else(|_| "target/release/tripoint".to_owned()));
    command.args(["replay", trace]).args(quick.then_some("--contents"));
    let output =
        command.output().expect("the command: cargo build --release -p tripoint-cli --features peers");
    assert!(output.status.success(), "{trace}: {}", String::from_utf8_lossy(&output.stderr));
    format!("\n```text\n{}```\n", String::from_utf8_lossy(&output.stdout))
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [flag, work, threads] = &arguments[..]
        && flag == "--run"
    {
        return program::run(work, threads.parse().expect("a count of threads"));
    }
    let asked = asked();
    fs::create_dir_all(&asked.out).expect("a writable folder");
    if let Ok(name) = env::var("REPORT_WORKLOAD") {
        return measure(&asked, &name);
    }
    let all = WORKLOADS
        .iter()
        .map(|(name, _)| *name)
        .chain([WHOLE_PROGRAM])
        .chain(asked.growth.map(|_| "growth-asked"));
    let names: Vec<&str> =
        all.filter(|name| asked.only.is_empty() || asked.only.iter().any(|only| only == name)).collect();
    let processor = processor::name();
    let mut report = format!("# Measurements\n\n{processor}, {}.\n\n{EXPLANATION}", env::consts::ARCH);
    let mut json = Vec::new();
    for name in names {
        eprintln!("{name}");
        measure_apart(&asked, name);
        let read = |kind: &str| {
            fs::read_to_string(asked.out.join(format!("{name}.{kind}"))).expect("what was written")
        };
        report.push_str(&format!("\n## {name}\n{}", read("md")));
        for plot in
            (0..).map(|index| format!("{name}-{index}.svg")).take_while(|plot| asked.out.join(plot).exists())
        {
            report.push_str(&format!("\n![{name}]({plot})\n"));
        }
        json.push(read("json"));
    }
    for trace in &asked.traces {
        report.push_str(&format!("\n## {trace}\n{}", replay(trace, asked.quick)));
    }
    fs::write(asked.out.join("report.md"), report).expect("a writable folder");
    let json = format!("{{\"processor\":{processor:?},\"tables\":[\n{}\n]}}\n", json.join(",\n"));
    fs::write(asked.out.join("report.json"), json).expect("a writable folder");
    println!("{}", asked.out.join("report.md").display());
}
