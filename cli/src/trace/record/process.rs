//! One recorded process: its ring, and its trace.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Serialize;

use super::converter::Converter;
use super::file::TraceFile;
use super::ring::{READY, Ring, SLOTS};
use super::shared::{Shared, tell_room};
use crate::error::Refusal;
use crate::trace::format::{Header, Summary, Writer};
use crate::trace::status;

/// A trace that was written.
#[derive(Debug, Serialize)]
pub(crate) struct Recorded {
    pub(crate) pid: u32,
    /// The name of the program, if it is known.
    pub(crate) program: Option<String>,
    pub(crate) path: PathBuf,
    /// The most bytes that were live at once.
    pub(crate) peak_live: u64,
    pub(crate) summary: Summary,
    /// Why the trace ends before the process did.
    pub(crate) cut: Option<String>,
}

/// A process that is being recorded.
pub(super) struct Process {
    ring: Shared<Ring>,
    pub(super) pid: u32,
    program: Option<String>,
    /// None if the process has ended.
    handle: Option<OwnedFd>,
    converter: Converter<BufWriter<File>>,
    path: PathBuf,
    /// The next place of the ring to read.
    place: u64,
    /// When its memory was looked at last.
    looked: Option<Instant>,
    /// Why no more is written.
    failure: Option<io::Error>,
}

/// Operations after which their slots are free again.
const CHUNK: u64 = 4096;

/// The memory of a process is looked at no more often than this while it allocates, and while it does not.
const ALLOCATING: Duration = Duration::from_millis(10);
const IDLE: Duration = Duration::from_millis(100);

impl Process {
    /// Maps a ring; none if it is not ready yet.
    pub(super) fn open(ring: &Path) -> io::Result<Option<Shared<Ring>>> {
        match Shared::<Ring>::open(ring) {
            Ok(mapped) if mapped.ready.load(Ordering::Acquire) == READY => {
                std::fs::remove_file(ring)?;
                Ok(Some(mapped))
            }
            Ok(_) => Ok(None),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn begin(ring: Shared<Ring>, trace: TraceFile, command: Vec<String>) -> io::Result<Self> {
        let pid = ring.pid.load(Ordering::Relaxed);
        let forked_by = Some(ring.forked_by.load(Ordering::Relaxed)).filter(|&parent| parent != 0);
        let handle = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let made = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs());
        let header = Header { command, pid, forked_by, pointer_size: 8, made };
        let program = header.program();
        trace.empty()?;
        let TraceFile { file, path, .. } = trace;
        let writer = Writer::begin(BufWriter::new(file), &header)?;
        let converter = Converter::new(writer);
        Ok(Self { ring, pid, program, handle, converter, path, place: 0, looked: None, failure: None })
    }

    /// Whether the process has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.handle.as_ref().is_none_or(|handle| {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
        })
    }

    /// Writes what the process has done up to now. Returns whether that was anything.
    pub(super) fn drain(&mut self) -> bool {
        if !self.ring.is_whole() {
            // The process gets a signal if it goes on. Its trace is kept.
            self.failure.get_or_insert_with(|| io::Error::other("another process made its ring shorter"));
            return false;
        }
        let begin = self.place;
        let head = self.ring.head().min(begin + SLOTS);
        while self.place < head {
            let Some(entry) = self.ring.get(self.place) else { break };
            self.place += 1;
            if self.failure.is_none()
                && let Err(error) = self.converter.convert(entry)
            {
                // The program goes on.
                self.ring.off.store(1, Ordering::Relaxed);
                self.failure = Some(error);
            }
            if self.place.is_multiple_of(CHUNK) {
                self.free_slots();
            }
        }
        if self.place != begin {
            self.free_slots();
        }
        self.look(self.place != begin);
        self.place != begin
    }

    /// Looks at how much memory the process has had. After its end it has none, and what was seen last remains.
    fn look(&mut self, allocates: bool) {
        let between = if allocates { ALLOCATING } else { IDLE };
        if self.looked.is_some_and(|looked| looked.elapsed() < between) {
            return;
        }
        self.looked = Some(Instant::now());
        if let Some(bytes) = status::bytes(&format!("/proc/{}/status", self.pid), "VmHWM") {
            self.note_resident(bytes);
        }
    }

    /// Notes how much memory the process has had resident at most, its ring included.
    fn note_resident(&mut self, bytes: u64) {
        // The part of its ring that it has written to is the recorder's.
        let ring = self.ring.head().min(SLOTS) * (size_of::<Ring>() as u64 / SLOTS);
        self.converter.note_resident(bytes.saturating_sub(ring));
    }

    /// Writes what is left behind an operation that was begun and not finished.
    fn drain_rest(&mut self) {
        let head = self.ring.head().min(self.place + SLOTS);
        for place in self.place..head {
            match self.ring.get(place) {
                Some(entry) if self.failure.is_none() => self.failure = self.converter.convert(entry).err(),
                Some(_) => {}
                None => self.converter.note_torn(),
            }
        }
    }

    fn free_slots(&self) {
        self.ring.set_tail(self.place);
        tell_room(&self.ring);
    }

    /// Writes out what is buffered.
    pub(super) fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = self.converter.flush().err();
        }
    }

    /// Writes the rest and the end. The process is recorded no more, if it still runs.
    pub(super) fn finish(mut self, ended: &str) -> Recorded {
        let had_given_up = self.ring.is_whole() && self.ring.off.swap(1, Ordering::Relaxed) != 0;
        while self.drain() {}
        if self.ring.is_whole() {
            self.drain_rest();
            let said = self.ring.peak_resident.load(Ordering::Relaxed);
            if said != 0 {
                self.note_resident(u64::from(said) << 10);
            }
        }
        let cut = match self.failure {
            Some(error) => Some(Refusal(&error).to_string()),
            None if had_given_up => Some("the process waited too long for the recorder".to_owned()),
            None => None,
        };
        let peak_live = self.converter.peak_live();
        let (summary, cut) = match self.converter.finish(ended) {
            Ok(summary) => (summary, cut),
            Err(error) => (Summary::default(), cut.or_else(|| Some(Refusal(&error).to_string()))),
        };
        Recorded { pid: self.pid, program: self.program, path: self.path, peak_live, summary, cut }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::{Entry, code};
    use super::*;

    /// A recorder that read on would get a signal.
    #[test]
    fn a_ring_that_another_process_made_shorter_ends_its_trace() {
        let folder = tempfile::tempdir().unwrap();
        let (path, trace) = (folder.path().join("0"), folder.path().join("trace"));
        let ring = Shared::<Ring>::create(&path).unwrap();
        ring.ready.store(READY, Ordering::Release);
        let file = File::options().write(true).open(&path).unwrap();
        let mapped = Process::open(&path).unwrap().unwrap();
        let mut process = Process::begin(mapped, TraceFile::create(&trace).unwrap(), Vec::new()).unwrap();
        let place = ring.take_place();
        ring.put(place, Entry { code: code::PLAIN, align_log2: 0, thread: 0, address: 64, size: 8 });
        assert!(process.drain(), "the control: there is an operation");
        file.set_len(4096).unwrap();
        assert!(!process.drain());
        let recorded = process.finish("test");
        assert_eq!(recorded.summary.steps, 1);
        assert!(recorded.cut.unwrap().contains("shorter"));
    }

    /// What the recorder sees while the process runs, and what the process says at its end: the greater counts, without the ring.
    #[test]
    fn memory_is_looked_at_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let peak = |pid: u32, told: u32| {
            let (path, trace) = (folder.path().join("0"), folder.path().join("trace"));
            let ring = Shared::<Ring>::create(&path).unwrap();
            ring.pid.store(pid, Ordering::Relaxed);
            ring.peak_resident.store(told, Ordering::Relaxed);
            ring.ready.store(READY, Ordering::Release);
            let mapped = Process::open(&path).unwrap().unwrap();
            let process = Process::begin(mapped, TraceFile::create(&trace).unwrap(), Vec::new()).unwrap();
            process.finish("test").summary.peak_resident
        };
        let own = peak(std::process::id(), 0).unwrap();
        assert!((1 << 20..1 << 40).contains(&own), "{own}");
        assert_eq!(peak(std::process::id(), u32::MAX), Some(u64::from(u32::MAX) << 10));
        // No process has this number.
        assert_eq!((peak(u32::MAX >> 1, 0), peak(u32::MAX >> 1, 5)), (None, Some(5 << 10)));
    }
}
