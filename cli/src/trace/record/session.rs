//! The traces of a command and all its children.

use core::sync::atomic::{AtomicBool, Ordering};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, OnceLock};

use rustix::process::{Pid, Signal, kill_process};

use super::file::TraceFile;
use super::place::Place;
use super::process::{Process, Recorded};
use super::program;
use super::ring::{Control, READY};
use super::shared::{Shared, ring_bell, wait_for_bell};
use crate::error::{Error, Unrecordable};
use crate::trace::format::Header;

/// What to record.
#[derive(Debug)]
pub(crate) struct RecordOptions<'a> {
    pub(crate) command: &'a [OsString],
    /// The trace of the command itself. Those of its children have their program and their process after it.
    pub(crate) output: &'a Path,
    /// Whether children are recorded.
    pub(crate) children: bool,
}

/// What was recorded.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// In the order of their begin.
    pub(crate) traces: Vec<Recorded>,
    /// Why a process was not recorded, if the system refused something.
    pub(crate) problem: Option<io::Error>,
}

/// Runs a command, and records what it allocates, until it ends.
pub(crate) fn record(options: &RecordOptions<'_>) -> Result<Ended, Error> {
    let Some((name, arguments)) = options.command.split_first() else {
        return Err(Error::Unrecordable { program: PathBuf::new(), why: Unrecordable::NotFound });
    };
    let unrecordable = |why| Error::Unrecordable { program: PathBuf::from(name), why };
    let file = program::find(name).map_err(unrecordable)?;
    program::examine(&file).map_err(unrecordable)?;
    let signals = Signals::take().map_err(Error::system("handle signals of", name))?;
    let place = Place::create().map_err(Error::system("put what is preloaded into", std::env::temp_dir()))?;
    let folder = place.folder_of_rings();
    let control = Shared::<Control>::create(&folder.join("control"))
        .map_err(Error::system("make the control file in", folder))?;
    control.follow.store(u32::from(options.children), Ordering::Relaxed);
    control.ready.store(READY, Ordering::Release);
    // Before the program runs: a trace that cannot be written is not worth a run.
    let output = TraceFile::create(options.output).map_err(Error::system("write", options.output))?;

    let mut child = Command::new(&file);
    std::os::unix::process::CommandExt::arg0(&mut child, name);
    child.args(arguments).env("LD_PRELOAD", place.preload()).env("TRIPOINT_RECORD", folder);
    let mut child = child.spawn().map_err(|error| {
        output.give_up();
        unrecordable(Unrecordable::Refused(error.raw_os_error().unwrap_or(0)))
    })?;
    let pid = child.id();

    let status = OnceLock::new();
    let mut session = Session {
        options,
        pid,
        output: Some(output),
        place: &place,
        control: &control,
        begun: 0,
        processes: Vec::new(),
        traces: Vec::new(),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = status.set(child.wait());
            ring_bell(&control);
        });
        session.run(&status, || signals.forward(pid));
    });
    control.closed.store(1, Ordering::Relaxed);
    let status = status.into_inner().unwrap_or_else(|| Err(io::ErrorKind::Other.into()));
    let status = status.map_err(Error::system("wait for", &file))?;
    session.end(status);
    let problem = control.problem.load(Ordering::Relaxed);
    let problem = (problem != 0).then(|| io::Error::from_raw_os_error(problem as i32));
    Ok(Ended { status, traces: session.traces, problem })
}

/// Signals that end a program, kept from ending the recorder before the program.
struct Signals {
    terminate: Arc<AtomicBool>,
    hang_up: Arc<AtomicBool>,
}

impl Signals {
    fn take() -> io::Result<Self> {
        let [terminate, hang_up] =
            [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP].map(|signal| {
                let flag = Arc::new(AtomicBool::new(false));
                signal_hook::flag::register(signal, Arc::clone(&flag)).map(|_| flag)
            });
        // The terminal sends these to the program as well.
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        Ok(Self { terminate: terminate?, hang_up: hang_up? })
    }

    /// Sends the program what the recorder was sent.
    fn forward(&self, pid: u32) {
        for (flag, signal) in [(&self.terminate, Signal::TERM), (&self.hang_up, Signal::HUP)] {
            if flag.swap(false, Ordering::Relaxed)
                && let Some(pid) = Pid::from_raw(pid as i32)
            {
                // It may have ended already.
                let _ = kill_process(pid, signal);
            }
        }
    }
}

struct Session<'a> {
    options: &'a RecordOptions<'a>,
    /// The process of the command.
    pid: u32,
    /// The file of the first trace, until that begins.
    output: Option<TraceFile>,
    place: &'a Place,
    control: &'a Control,
    /// How many rings were begun, as far as this was noticed.
    begun: u32,
    processes: Vec<Process>,
    traces: Vec<Recorded>,
}

impl Session<'_> {
    /// Records until the command ends. A process that never pauses keeps neither signals nor that end from being noticed.
    fn run(&mut self, status: &OnceLock<io::Result<ExitStatus>>, mut between: impl FnMut()) {
        let mut waiting_for = Vec::new();
        loop {
            let bell = self.control.bell.load(Ordering::Acquire);
            let is_last = status.get().is_some();
            self.accept(&mut waiting_for);
            let mut drained = false;
            for process in &mut self.processes {
                drained |= process.drain();
            }
            if is_last {
                return;
            }
            self.finish_ended();
            between();
            if !drained {
                self.processes.iter_mut().for_each(Process::flush);
                wait_for_bell(self.control, bell);
            }
        }
    }

    /// Begins with processes whose rings are new.
    fn accept(&mut self, waiting_for: &mut Vec<u32>) {
        let begun = self.control.rings.load(Ordering::Acquire);
        waiting_for.extend(self.begun..begun);
        self.begun = begun;
        waiting_for.retain(|&number| match Process::open(&self.place.ring(number)) {
            Ok(None) => true,
            Ok(Some(ring)) => {
                self.begin(number, ring);
                false
            }
            Err(error) => {
                crate::output::complain(&format_args!("a process is not recorded: {error}"));
                false
            }
        });
    }

    fn begin(&mut self, number: u32, ring: Shared<super::ring::Ring>) {
        let pid = ring.pid.load(Ordering::Relaxed);
        // A process has a second ring if it has executed another program.
        while let Some(at) = self.processes.iter().position(|process| process.pid == pid) {
            let former = self.processes.remove(at);
            self.traces.push(former.finish("executed another program"));
        }
        let name = String::from_utf8_lossy(&ring.name()).into_owned();
        // The process may have executed another program meanwhile.
        let is_its_own = |command: &Vec<String>| {
            let program = command.first().and_then(|path| path.rsplit('/').next());
            program.is_some_and(|program| program.starts_with(&name))
        };
        let command = match command_of(pid).filter(is_its_own) {
            Some(command) => command,
            None if number == 0 => {
                self.options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
            }
            None => vec![name],
        };
        let mut path = self.options.output.to_path_buf();
        if number != 0 {
            let former = self.traces.iter().filter(|trace| trace.pid == pid).count();
            path.as_mut_os_string().push(ending(&command, pid, former));
        }
        let file = self.output.take().map_or_else(|| TraceFile::create(&path), Ok);
        match file.and_then(|file| Process::begin(ring, file, command)) {
            Ok(process) => self.processes.push(process),
            Err(error) => crate::output::complain(&format_args!("cannot write {}: {error}", path.display())),
        }
    }

    /// Ends with processes that have ended, except the command, whose status is not known yet.
    fn finish_ended(&mut self) {
        let command = self.pid;
        let has_ended = |process: &mut Process| process.pid != command && process.has_ended();
        let ended: Vec<_> = self.processes.extract_if(.., has_ended).collect();
        self.traces.extend(ended.into_iter().map(|process| process.finish("ended")));
    }

    /// Ends with what still runs, after the command has ended.
    fn end(&mut self, status: ExitStatus) {
        if let Some(output) = &self.output {
            // Nothing was recorded, and an older trace is not this command's. If it cannot be emptied, it is the old one.
            let _ = output.empty();
            output.give_up();
        }
        for process in self.processes.drain(..) {
            let ended = match (process.pid == self.pid, process.has_ended()) {
                (true, _) => status.to_string(),
                (false, true) => "ended".to_owned(),
                (false, false) => "still ran when the command ended".to_owned(),
            };
            self.traces.push(process.finish(&ended));
        }
    }
}

/// What the name of a child's trace ends with: its program, if that is known, the process, and how many programs that
/// executed before.
fn ending(command: &[String], pid: u32, former: usize) -> String {
    let header = Header { command: command.to_vec(), pid, ..Header::default() };
    // Only what needs no quotes in a shell.
    let plain = |c: char| if c.is_alphanumeric() || "-_+.".contains(c) { c } else { '_' };
    let program: String =
        header.program().iter().flat_map(|name| name.chars()).map(plain).take(LONGEST).collect();
    let program = if program.is_empty() { String::new() } else { format!(".{program}") };
    let former = if former == 0 { String::new() } else { format!(".{former}") };
    format!("{program}.{pid}{former}")
}

/// The most characters of a program in the name of a trace.
const LONGEST: usize = 40;

/// The command and arguments of a process, if it has not ended.
fn command_of(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|text| !text.is_empty())?;
    let words = text.strip_suffix(b"\0").unwrap_or(&text).split(|&byte| byte == 0);
    Some(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// The status that a shell would show.
pub(crate) fn shell_status(status: ExitStatus) -> u8 {
    let number = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_a_child_is_named_by_its_program_and_process() {
        let of = |command: &[&str], former| {
            ending(&command.iter().map(|&word| word.to_owned()).collect::<Vec<_>>(), 20_295, former)
        };
        assert_eq!(of(&["/usr/lib/gcc/cc1plus", "-quiet"], 0), ".cc1plus.20295");
        assert_eq!(of(&["python3.11"], 2), ".python3.11.20295.2");
        assert_eq!(of(&["-bash"], 0), ".-bash.20295");
        // What another process may have written there.
        assert_eq!(of(&["/x/a b\n$(c)"], 0), ".a_b___c_.20295");
        assert_eq!(of(&[&"x".repeat(5_000)], 0), format!(".{}.20295", "x".repeat(LONGEST)));
        assert_eq!((of(&[], 0), of(&["/"], 1)), (".20295".to_owned(), ".20295.1".to_owned()));
    }
}
