//! Memory of a process that is stopped while it is read, and goes on afterwards.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

use object::Endianness;

use crate::heaps::unsafe_ptrace;
use crate::mapped::{self, Mapped};
use crate::memory::{Extent, Memory, Processor, Thread};

/// A process whose threads are stopped, unless it was to be read as it runs.
pub(crate) struct StoppedProcess {
    memory: File,
    word: usize,
    mapped: Vec<Mapped>,
    /// The threads that are stopped by this, each with the signal that it is to get.
    threads: BTreeMap<i32, i32>,
}

impl StoppedProcess {
    /// Stops all threads of a process, unless all are stopped already or `stops` is false.
    pub(crate) fn attach(process: u32, stops: bool) -> io::Result<Self> {
        let memory = File::open(format!("/proc/{process}/mem"))?;
        let mut stopped =
            Self { memory, word: word_of(process)?, mapped: Vec::new(), threads: BTreeMap::new() };
        if stops && !are_stopped(process)? {
            stopped.stop_all(process)?;
        }
        stopped.mapped = mapped::of_process(process);
        Ok(stopped)
    }

    /// Stops threads until none is found that runs: one that runs may start others.
    fn stop_all(&mut self, process: u32) -> io::Result<()> {
        loop {
            let mut is_any = false;
            for thread in threads(process)? {
                if self.threads.contains_key(&thread) {
                    continue;
                }
                match unsafe_ptrace::stop(thread) {
                    Ok(signal) => {
                        is_any = true;
                        self.threads.insert(thread, signal);
                    }
                    // It has ended.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
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
        Some(self.mapped.first()?.path.display().to_string())
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        for (thread, signal) in &self.threads {
            // A thread that has ended needs not go on.
            let _ = unsafe_ptrace::let_go(*thread, *signal);
        }
    }
}

fn threads(process: u32) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(format!("/proc/{process}/task"))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Whether all threads are stopped, by a signal or a debugger. One that has ended is.
fn are_stopped(process: u32) -> io::Result<bool> {
    let is_stopped = |thread: i32| {
        let about = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).unwrap_or_default();
        // The name of the thread may have anything in it.
        let state = about.rsplit_once(") ").and_then(|(_, after)| after.chars().next());
        matches!(state, None | Some('T' | 't' | 'X' | 'Z'))
    };
    Ok(threads(process)?.into_iter().all(is_stopped))
}

/// The bytes of a word of a process, by the beginning of its program.
fn word_of(process: u32) -> io::Result<usize> {
    let mut head = [0; 5];
    File::open(format!("/proc/{process}/exe"))?.read_exact_at(&mut head, 0)?;
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
        let extent = |file: &Mapped| Extent { address: file.start, size: file.end - file.start };
        self.mapped.iter().map(extent).collect()
    }

    /// Those that this has stopped: of others registers cannot be read.
    fn threads(&self) -> Vec<Thread> {
        let processor = match () {
            () if cfg!(target_arch = "x86_64") => Processor::X86,
            () if cfg!(target_arch = "aarch64") => Processor::Arm,
            () => return Vec::new(),
        };
        let registers = |thread: &i32| Thread::new(processor, unsafe_ptrace::registers(*thread).ok()?);
        self.threads.keys().filter_map(registers).collect()
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
