//! `tripoint heap` (design/inspection.md `.command`).

mod account;

use std::io::Write as _;

use clap::Args;
use serde::Serialize;

use self::account::{Account, Row};
use crate::core_file::CoreFile;
use crate::error::{Error, Outcome};
use crate::grid::Grid;
use crate::heaps::{Cached, CoreMemory, Goal, Heap, Heaps, Path, Step};
use crate::memory::Memory;
use crate::output::Output;
use crate::target::Target;

/// Show the objects of a program's heaps by type, and what keeps one, from its core file or while it is stopped
///
/// Objects are those that the program made and no collection has freed, also if nothing leads to them any more. No code of
/// the program runs, and no symbols are needed. A process is stopped as long as it is read, as by a debugger, and goes on
/// afterwards, also if this command is killed. Objects of formats without a description are counted in bytes of their
/// segments. A heap that is damaged is shown as far as it can be read, and the exit status is 2 then.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tripoint heap core.4711
  tripoint heap 4711 --path orders::Order
  tripoint heap core.4711 --path-to 0x7f12a0040018 --json | jq '.heaps[].path'")]
pub(crate) struct HeapCommand {
    /// A core file, or the number of a process; a core file whose name is a number is ./NUMBER
    #[arg(value_name = "CORE|PID")]
    target: Target,

    /// Show the shortest path from a root to the object that has this address
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with = "path")]
    path_to: Option<u64>,

    /// Show the shortest path from a root to an object of this type
    #[arg(long, value_name = "TYPE")]
    path: Option<String>,

    /// Read a process as it runs, without stopping it: objects that it makes or moves meanwhile may be missing
    #[cfg(target_os = "linux")]
    #[arg(long)]
    no_stop: bool,
}

/// An address in decimal, or in hexadecimal with `0x`.
fn address(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|error| format!("{error}: pass an address, such as 0x7f12a0040018"))
}

/// A step of a path.
#[derive(Debug, Serialize)]
struct Passed {
    address: String,
    #[serde(rename = "type")]
    type_name: String,
    bytes: u64,
    /// Whether the word that leads to it is only perhaps a reference.
    is_perhaps: bool,
}

#[derive(Debug, Serialize)]
struct Found {
    root: &'static str,
    /// Where the reference of the root is.
    root_address: String,
    steps: Vec<Passed>,
}

/// What is shown of a heap.
#[derive(Debug, Serialize)]
struct Shown {
    address: String,
    /// What a collection was doing.
    collection: &'static str,
    #[serde(flatten)]
    account: Account,
    roots: Vec<(&'static str, usize)>,
    /// Roots whose references are not known.
    unknown_roots: usize,
    broken_references: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Found>,
}

#[derive(Debug, Serialize)]
struct Report {
    program: Option<String>,
    heaps: Vec<Shown>,
    faults: Vec<String>,
}

impl HeapCommand {
    pub(crate) fn run(&self, out: &mut Output) -> Result<Outcome, Error> {
        let report = match &self.target {
            Target::File(path) => {
                let core = CoreFile::open(path).map_err(Error::not_core(path))?;
                let memory = Cached::new(CoreMemory::new(&core));
                let program = core.objects().entries.first().map(|object| object.path.display().to_string());
                let mut report = self.look(&memory, program)?;
                if let Some(expected) = core.expected() {
                    report.faults.push(format!("the file ends after {} of {expected} bytes", core.bytes));
                }
                let missing = memory.memory().missing();
                report.faults.extend(missing.iter().map(|path| {
                    format!(
                        "{} is gone, or is not the file that the process loaded: what was not dumped of it is missing",
                        path.display()
                    )
                }));
                report
            }
            #[cfg(target_os = "linux")]
            Target::Process(process) => {
                let stopped = crate::heaps::StoppedProcess::attach(*process, !self.no_stop)
                    .map_err(|error| Error::unread(*process, !self.no_stop, error))?;
                let (program, threads) = (stopped.program(), stopped.stopped());
                let begin = std::time::Instant::now();
                let memory = Cached::new(stopped);
                let report = self.look(&memory, program)?;
                // The process goes on here.
                drop(memory);
                if threads > 0 && !out.is_json() {
                    let ms = begin.elapsed().as_millis();
                    writeln!(out, "process {process} was stopped for {ms} ms, and goes on")?;
                }
                report
            }
            #[cfg(not(target_os = "linux"))]
            Target::Process(_) => return Err(self.error("a process can be read on Linux only")),
        };
        if report.heaps.is_empty() && report.faults.is_empty() {
            return Err(self.error("there is no heap in it: programs have one if they use automatic pools"));
        }
        match out.is_json() {
            true => out.write_json(&report)?,
            false => report.write(out)?,
        }
        match report.faults.is_empty() {
            true => Ok(Outcome::Fine),
            false => Err(Error::Partial { target: self.target.clone(), faults: report.faults }),
        }
    }

    fn error(&self, why: impl Into<String>) -> Error {
        Error::NoHeap { target: self.target.clone(), why: why.into() }
    }

    fn look(&self, memory: &dyn Memory, program: Option<String>) -> Result<Report, Error> {
        let Heaps { heaps, mut faults } = Heaps::read(memory);
        let goals: Vec<_> = heaps.iter().map(|heap| self.goal(heap)).collect();
        if let Some(wanted) = self.wanted(&heaps)
            && !heaps.is_empty()
            && goals.iter().all(Option::is_none)
        {
            // An object that was not found may be where the heap is damaged.
            match faults.is_empty() {
                true => return Err(self.error(wanted)),
                false => faults.push(wanted),
            }
        }
        let mut shown = Vec::new();
        for (heap, goal) in heaps.iter().zip(&goals) {
            let search = heap.search(memory, goal.as_ref());
            let name = format!("heap {:#x}", heap.address);
            if goal.is_some() && search.path.is_none() && search.unknown_roots > 0 {
                faults.push(format!(
                    "{name}: no path was found, and of {} roots it is not known what they refer to",
                    search.unknown_roots
                ));
            }
            if search.broken > 0 {
                faults.push(format!("{name}: {} references lead to no object", search.broken));
            }
            shown.push(Shown {
                address: format!("{:#x}", heap.address),
                collection: heap.doing(),
                account: Account::of(heap),
                roots: search.roots.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
                unknown_roots: search.unknown_roots,
                broken_references: search.broken,
                path: search.path.as_ref().map(|path| found(heap, path)),
            });
            faults.extend(search.faults(&name));
        }
        Ok(Report { program, heaps: shown, faults })
    }

    /// What a path is asked for, in a heap that has it.
    fn goal(&self, heap: &Heap) -> Option<Goal> {
        if let Some(address) = self.path_to {
            return heap.object_with(address).map(Goal::Object);
        }
        let name = self.path.as_ref()?;
        heap.objects.iter().any(|object| heap.type_of(object).name == *name).then(|| Goal::Type(name.clone()))
    }

    /// Why there is no path to what one is asked for.
    fn wanted(&self, heaps: &[Heap]) -> Option<String> {
        let of_type = |name: &String| {
            let end = format!("::{name}");
            let mut types = heaps.iter().flat_map(|heap| heap.objects.iter().map(|of| heap.type_of(of)));
            let likely = types.find(|of| of.name.ends_with(&end));
            let else_all = "`tripoint heap` without --path lists types".to_owned();
            let next = likely.map_or(else_all, |of| format!("pass its whole name, as in --path {}", of.name));
            format!("no heap has an object of the type {name}: {next}")
        };
        let at = |address| format!("no object is at {address:#x}, in any heap");
        self.path.as_ref().map(of_type).or(self.path_to.map(at))
    }
}

fn found(heap: &Heap, path: &Path) -> Found {
    let passed = |step: &Step| {
        let object = &heap.objects[step.object];
        Passed {
            address: format!("{:#x}", object.base),
            type_name: heap.type_of(object).name.clone(),
            bytes: object.size,
            is_perhaps: step.is_perhaps,
        }
    };
    Found {
        root: path.kind.name(),
        root_address: format!("{:#x}", path.place),
        steps: path.steps.iter().map(passed).collect(),
    }
}

impl Report {
    fn write(&self, out: &mut Output) -> Result<(), Error> {
        writeln!(out, "{}", self.program.as_deref().unwrap_or("a program that is not named"))?;
        for heap in &self.heaps {
            let Shown { address, collection, .. } = heap;
            let doing = match *collection {
                "nothing" => "no collection".to_owned(),
                doing => format!("a collection that was {doing}"),
            };
            writeln!(out, "\nheap {address}, with {doing}")?;
            heap.types().write(out)?;
            heap.pools().write(out)?;
            heap.roots().write(out)?;
            let frozen = heap.account.frozen_bytes();
            if frozen > 0 {
                writeln!(
                    out,
                    "\n{frozen} bytes of objects in frozen segments, whose formats are not described"
                )?;
            }
            if let Some(path) = &heap.path {
                path.write(out)?;
            }
        }
        Ok(())
    }
}

impl Shown {
    fn types(&self) -> Grid {
        let columns = &["type", "class", "objects", "bytes", "of generation 0", "1", "2"];
        let mut grid = Grid::new("objects by type", 2, columns);
        for Row { type_name, class, objects, bytes, generations, .. } in &self.account.types {
            let [zero, one, two] = *generations;
            grid.add(&[type_name, class], &[*objects, *bytes, zero, one, two]);
        }
        grid.sort(3, false);
        grid
    }

    fn pools(&self) -> Grid {
        let columns = &["pool", "class", "described", "segments", "bytes", "bytes in objects"];
        let mut grid = Grid::new("pools", 3, columns);
        for pool in &self.account.pools {
            let known = if pool.is_described { "by type" } else { "no" };
            // What is not known is not zero.
            let sizes: Vec<_> = [pool.segments, pool.bytes].into_iter().chain(pool.used).collect();
            grid.add(&[&pool.number, &pool.class, &known], &sizes);
        }
        grid
    }

    fn roots(&self) -> Grid {
        let mut grid = Grid::new("roots", 1, &["kind", "roots"]);
        for (kind, count) in &self.roots {
            grid.add(&[kind], &[*count as u64]);
        }
        if self.unknown_roots > 0 {
            grid.add(&[&"of which not followed"], &[self.unknown_roots as u64]);
        }
        grid
    }
}

impl Found {
    fn write(&self, out: &mut Output) -> Result<(), Error> {
        writeln!(out, "\npath from the {} at {}", self.root, self.root_address)?;
        for Passed { address, type_name, bytes, is_perhaps } in &self.steps {
            let perhaps = if *is_perhaps { ", by a word that may be a reference" } else { "" };
            writeln!(out, " -> {type_name} at {address}, {bytes} bytes{perhaps}")?;
        }
        Ok(())
    }
}
