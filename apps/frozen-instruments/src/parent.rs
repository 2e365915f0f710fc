//! Builds the image, starts the other processes, and shows what they say.

use core::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Instant;
use std::{env, fs};

use clap::ValueEnum;
use tripoint::gc::{Heap, HeapOptions, ImageEntry, ImageOptions, TypeCount};
use tripoint::{ArenaVm, ArenaVmOptions};

use crate::instruments::{self, FINGERPRINT};
use crate::sharing::Sharing;
use crate::{Options, Role};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Where the image is mapped without relocation: far from what systems place by themselves, and low enough for 39 bits
/// of address.
const BASE: usize = if size_of::<usize>() == 8 { 0x20_0000_0000_u64 as usize } else { 0x6000_0000 };

/// Writes the image, and starts the other processes one after the other.
pub(crate) fn run(options: &Options) -> Outcome {
    let program = env::current_exe()?;
    let path = options
        .image
        .clone()
        .unwrap_or_else(|| env::temp_dir().join(format!("frozen_instruments-{}.image", std::process::id())));
    let file = Temporary(path);
    let size = write_image(options.instruments, &file.0)?;
    share(&program, options, &file.0, size)?;
    displace(&program, options, &file.0)?;
    mark(&program, options, &file.0)
}

/// The largest page that systems have by default, in bytes: the last page of an image is counted whole.
const LARGE_PAGE: usize = 64 << 10;

/// A file that is removed at the end.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Builds the instruments and writes their image. Returns its size.
fn write_image(count: usize, path: &Path) -> Outcome<usize> {
    let began = Instant::now();
    // Twice the bytes of the objects: little enough to work under a limit of address space, too.
    let reserve = (64 << 20) + count * 256;
    let arena = ArenaVm::create(ArenaVmOptions { reserve, ..Default::default() })?;
    let heap = Heap::create(&arena, HeapOptions::default())?;
    instruments::build(&heap, count, |mutator, directory| -> Outcome<usize> {
        println!("{count} instruments built in {:.2?}", began.elapsed());
        let began = Instant::now();
        let stopped = mutator.stop(core::time::Duration::MAX)?;
        let mut types = [TypeCount::default(); 4];
        let census = stopped.census(&mut types);
        for entry in census.types {
            let name = entry.type_name.unwrap_or("?");
            println!("  {:>9} of type {name}, {} bytes", entry.objects, entry.bytes);
        }
        let mut table = vec![ImageEntry::default(); census.all.objects];
        let roots = [directory];
        let plan =
            stopped.plan_image(&roots, &mut table, ImageOptions { base: BASE, fingerprint: FINGERPRINT })?;
        let mut bytes = vec![0; plan.size()];
        // SAFETY: all words of all records were written, and the heap is stopped since the plan was made.
        let references = unsafe { plan.write_to(&mut bytes) }?;
        let mut file = fs::File::create(path)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        println!(
            "image of {} bytes with {references} references written in {:.2?}",
            bytes.len(),
            began.elapsed()
        );
        Ok(bytes.len())
    })?
}

/// Another process, and the pipes to it.
struct Process {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Process {
    fn start(program: &Path, options: &Options, image: &Path, role: Role) -> Outcome<Self> {
        let role = role.to_possible_value().ok_or("no such role")?;
        let mut command = Command::new(program);
        command.args([
            "--instruments",
            &options.instruments.to_string(),
            "--role",
            role.get_name(),
            "--image",
        ]);
        let mut child = command.arg(image).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (to, from) = (child.stdin.take(), child.stdout.take().ok_or("no pipe from a process")?);
        Ok(Self { child, to, from: BufReader::new(from) })
    }

    /// Waits for a line; an empty one if the process has ended.
    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn ask(&mut self) -> Outcome<String> {
        self.to.as_mut().ok_or("the pipe is closed")?.write_all(b"report\n")?;
        self.line()
    }

    /// Closes the pipe, and waits for the end.
    fn end(mut self) -> Outcome<ExitStatus> {
        drop(self.to.take());
        Ok(self.child.wait()?)
    }
}

/// How many references a reader relocated, if it did, and the time in µs that it took to open the image.
fn ready(line: &str) -> Outcome<(Option<usize>, u64)> {
    let rest = line.strip_prefix("ready ").ok_or_else(|| format!("a reader said '{line}'"))?;
    let (relocated, opened) = rest.split_once(' ').ok_or("a reader said too little")?;
    Ok((relocated.parse::<usize>()?.checked_sub(1), opened.parse()?))
}

/// Processes map the image at its base, and have no page of it for themselves.
fn share(program: &Path, options: &Options, image: &Path, size: usize) -> Outcome {
    let mut readers = (0..options.processes)
        .map(|_| Process::start(program, options, image, Role::Reader))
        .collect::<Outcome<Vec<_>>>()?;
    let mut are_shared = true;
    for (number, reader) in (1..).zip(&mut readers) {
        let (relocated, opened) = ready(&reader.line()?)?;
        println!("process {number} opened the image in {opened} us, and looked up all instruments");
        if relocated.is_some() {
            println!("  its place was taken there, so it has a copy");
            are_shared = false;
        }
    }
    // All readers have read all pages, and none ends before the last has answered.
    let mut sum = 0;
    for (number, reader) in (1..).zip(&mut readers) {
        let Some(sharing) = Sharing::of_line(&reader.ask()?) else {
            println!("the system does not say what a process shares: not shown");
            are_shared = false;
            break;
        };
        let Sharing { resident, proportional, shared, private } = sharing;
        println!(
            "process {number}: {resident} KiB of the image in memory, {shared} shared, {private} for itself, {proportional} in proportion"
        );
        sum += proportional;
    }
    let pages = size.next_multiple_of(LARGE_PAGE) / 1024;
    println!("together {sum} KiB for an image of {} KiB", size.div_ceil(1024));
    if are_shared {
        assert!(sum <= pages, "pages were not shared");
    }
    for reader in readers {
        assert!(reader.end()?.success());
    }
    Ok(())
}

/// A process in which the base is taken relocates a copy, and finds the same instruments.
fn displace(program: &Path, options: &Options, image: &Path) -> Outcome {
    let mut process = Process::start(program, options, image, Role::Displaced)?;
    let (relocated, opened) = ready(&process.line()?)?;
    let relocated = relocated.ok_or("the place was free after all")?;
    println!(
        "where the place was taken, {relocated} references were relocated in {opened} us, and all was found"
    );
    assert!(process.end()?.success());
    Ok(())
}

/// A collector that marks in headers ends by a signal.
fn mark(program: &Path, options: &Options, image: &Path) -> Outcome {
    let mut process = Process::start(program, options, image, Role::Twin)?;
    assert_eq!(process.line()?, "marking");
    let status = process.end()?;
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status}");
    println!("a collector that marks in headers was ended by SIGSEGV at its first mark");
    Ok(())
}
