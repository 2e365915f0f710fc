//! Memory of a process that is stopped while it is read, and goes on afterwards.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

use object::Endianness;

use crate::heaps::unsafe_ptrace;
use crate::mapped::{self, Mappings};
use crate::memory::{Extent, Memory, Processor, Thread};

/// A process whose threads are stopped, unless it was to be read as it runs.
pub(crate) struct StoppedProcess {
    memory: File,
    word: usize,
    program: Option<String>,
    statics: Vec<Extent>,
    /// The threads that are stopped by this.
    threads: BTreeSet<i32>,
}

impl StoppedProcess {
    /// Stops all threads of a process, unless all are stopped already or `stops` is false.
    pub(crate) fn attach(process: u32, stops: bool) -> io::Result<Self> {
        // The first thread may have ended, and the memory is that of the others.
        let is_living = |thread: &i32| !matches!(state(process, *thread), None | Some('X' | 'Z'));
        let Some(thread) = threads(process)?.into_iter().find(is_living) else {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        };
        let memory = File::open(format!("/proc/{process}/task/{thread}/mem"))?;
        let word = word_of(process, thread)?;
        let mut stopped = Self { memory, word, program: None, statics: Vec::new(), threads: BTreeSet::new() };
        if stops && !are_stopped(process)? {
            stopped.stop_all(process)?;
        }
        let mapped = Mappings::of_thread(process, thread);
        let head = |address| {
            let mut head = vec![0; mapped::HEAD];
            let read = stopped.read_some(address, &mut head);
            head.truncate(read);
            head
        };
        (stopped.program, stopped.statics) = (mapped.program(), mapped.statics(head));
        Ok(stopped)
    }

    /// Stops threads until none is found that runs: one that runs may start others.
    fn stop_all(&mut self, process: u32) -> io::Result<()> {
        loop {
            let mut is_any = false;
            for thread in threads(process)? {
                if self.threads.contains(&thread) {
                    continue;
                }
                match unsafe_ptrace::stop(thread) {
                    Ok(()) => {
                        is_any = true;
                        self.threads.insert(thread);
                    }
                    // It has ended.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    // The first thread stays when it has ended, and may not be traced then.
                    Err(_) if matches!(state(process, thread), None | Some('X' | 'Z')) => {}
                    Err(error) => return Err(error),
                }
            }
            if !is_any {
                return Ok(());
            }
        }
    }

    /// How many threads this has stopped.
    pub(crate) fn stopped(&self) -> usize {
        self.threads.len()
    }

    /// The program's file, if it is known.
    pub(crate) fn program(&self) -> Option<String> {
        self.program.clone()
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        for thread in &self.threads {
            // A thread that has ended needs not go on.
            let _ = unsafe_ptrace::let_go(*thread);
        }
    }
}

fn threads(process: u32) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(format!("/proc/{process}/task"))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Whether all threads are stopped, by a signal or a debugger. One that has ended is.
fn are_stopped(process: u32) -> io::Result<bool> {
    let is_stopped = |thread| matches!(state(process, thread), None | Some('T' | 't' | 'X' | 'Z'));
    Ok(threads(process)?.into_iter().all(is_stopped))
}

/// The state of a thread, as the system has it; `None` if there is none.
fn state(process: u32, thread: i32) -> Option<char> {
    let about = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    // The name of the thread may have anything in it.
    about.rsplit_once(") ").and_then(|(_, after)| after.chars().next())
}

/// The bytes of a word of a process, by the beginning of its program.
fn word_of(process: u32, thread: i32) -> io::Result<usize> {
    let mut head = [0; 5];
    File::open(format!("/proc/{process}/task/{thread}/exe"))?.read_exact_at(&mut head, 0)?;
    Ok(if head[4] == 1 { 4 } else { 8 })
}

impl Memory for StoppedProcess {
    fn word(&self) -> usize {
        self.word
    }

    /// A process of this machine has its order.
    fn endian(&self) -> Endianness {
        Endianness::default()
    }

    fn statics(&self) -> Vec<Extent> {
        self.statics.clone()
    }

    /// Those that this has stopped: of others registers cannot be read.
    fn threads(&self) -> Vec<Thread> {
        let processor = match () {
            () if cfg!(target_arch = "x86_64") => Processor::X86,
            () if cfg!(target_arch = "aarch64") => Processor::Arm,
            () => return Vec::new(),
        };
        let registers = |thread: &i32| Thread::new(processor, unsafe_ptrace::registers(*thread).ok()?);
        self.threads.iter().filter_map(registers).collect()
    }

    fn read_some(&self, address: u64, bytes: &mut [u8]) -> usize {
        let mut read = 0;
        while read < bytes.len() {
            match self.memory.read_at(&mut bytes[read..], address.saturating_add(read as u64)) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        read
    }
}
