//! Opens a recording, and reads all of it that can be read (design/cli.md `.req.readable`).

use core::fmt;
use core::str::FromStr;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::Serialize;
use tripoint_telemetry::format::FileState;
use tripoint_telemetry::reader::{Item, LoadedObject, OpenError, Reader, Start, Table};

use crate::error::Error;
use crate::recording::counters::Counters;
use crate::recording::event::Event;

/// A process, or a file.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Process(u32),
    File(PathBuf),
}

/// A number is that of a process; a file whose name is a number is `./NUMBER`.
impl FromStr for Target {
    type Err = core::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse().map_or_else(|_| Self::File(text.into()), Self::Process))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(process) => write!(f, "process {process}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A thread that recorded something.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Thread {
    /// The system's number of the thread that has or had the ring; zero for none.
    #[serde(rename = "tid")]
    pub(crate) thread: u64,
    /// Its name, with characters escaped that cannot be printed.
    pub(crate) name: String,
    /// Events that it ever wrote.
    pub(crate) events: u64,
    /// Events that it dropped, because its ring was in use.
    pub(crate) dropped: u64,
    /// The index of its ring.
    #[serde(skip)]
    pub(crate) ring: usize,
    /// Whether no other thread ever had the ring.
    #[serde(skip)]
    pub(crate) is_only: bool,
}

/// All of a recording but its events.
#[derive(Debug, Default)]
pub(crate) struct End {
    pub(crate) counters: Counters,
    /// The program and its libraries.
    pub(crate) objects: Option<Table<LoadedObject>>,
    /// The threads of the rings that were written to.
    pub(crate) threads: Vec<Thread>,
    /// Whether the process has closed it, and writes no more.
    pub(crate) is_closed: bool,
}

/// A recording that is open.
pub(crate) struct Recording {
    target: Target,
    reader: Reader,
    faults: Vec<String>,
}

impl Recording {
    /// Opens a recording. A file that is cut off is open as far as it can be read, and has a fault.
    ///
    /// # Errors
    /// If nothing can be read.
    pub(crate) fn open(target: &Target) -> Result<Self, Error> {
        let opened = match target {
            Target::Process(process) => Reader::attach(*process),
            Target::File(path) => Reader::open(path),
        };
        let mut faults = Vec::new();
        let reader = match opened {
            Ok(reader) => reader,
            Err(OpenError::Truncated { readable: Some(reader), bytes, expected }) => {
                faults.push(format!("the file ends after {bytes} of {expected} bytes"));
                *reader
            }
            Err(error) => return Err(Error::Recording { target: target.clone(), error }),
        };
        faults.extend(reader.damage().iter().map(ToString::to_string));
        Ok(Self { target: target.clone(), reader, faults })
    }

    /// The number of the process, as it sees its own.
    pub(crate) fn process(&self) -> u64 {
        self.reader.info().process
    }

    /// The time at which the recording began, in seconds since 1970.
    pub(crate) fn made(&self) -> Option<u64> {
        let since = self.reader.info().made()?.duration_since(SystemTime::UNIX_EPOCH);
        since.ok().map(|since| since.as_secs())
    }

    /// Passes on the events that are there now, by time, and reads the rest. What cannot be read is a
    /// fault, and all else is returned. What is written meanwhile is left out, so this ends however fast the
    /// process writes.
    pub(crate) fn read(&mut self, mut each: impl FnMut(&Event)) -> End {
        let mut written = Written::now(&self.reader);
        let mut events = self.reader.events(Start::Oldest);
        let mut line = String::new();
        while !written.is_read()
            && let Some(item) = events.poll()
        {
            line.clear();
            if !written.has(&item) {
                continue;
            }
            match item.write_json(&mut line).map_err(|error| error.to_string()).and_then(|()| parsed(&line)) {
                Ok(event) => each(&event),
                Err(error) => self.faults.push(format!("an event could not be read: {error}")),
            }
        }
        if events.damaged_blocks() > 0 {
            self.faults.push(format!("{} blocks of events could not be read", events.damaged_blocks()));
        }
        let mut end = End::default();
        if let Err(error) = self.read_tables(&mut end) {
            self.faults.push(format!("it cannot be read any more: {error}"));
        }
        end
    }

    fn read_tables(&mut self, end: &mut End) -> std::io::Result<()> {
        let mut text = String::new();
        self.reader.counters()?.write_json(&mut text).map_err(std::io::Error::other)?;
        end.counters = serde_json::from_str(&text)?;
        end.objects = Some(self.reader.objects()?);
        if end.counters.tallies.unsteady > 0 {
            self.faults.push("the tallies make no sense".to_owned());
        }
        for ring in 0..self.reader.rings() {
            let Some(info) = self.reader.ring(ring)? else { break };
            if info.events > 0 || info.dropped > 0 {
                end.threads.push(Thread {
                    thread: info.thread,
                    name: info.name.to_string(),
                    events: info.events,
                    dropped: info.dropped,
                    ring,
                    is_only: info.claims == 1,
                });
            }
        }
        end.is_closed = self.reader.state()? == FileState::Closed;
        Ok(())
    }

    /// What could not be read.
    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Fails if something could not be read.
    pub(crate) fn check_whole(self) -> Result<(), Error> {
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(Error::Partial { target: self.target, faults: self.faults }),
        }
    }
}

/// What had been written to each ring at some moment, and has not been read since.
struct Written {
    /// The number of events of each ring; zero once all are read.
    events: Vec<u64>,
}

impl Written {
    fn now(reader: &Reader) -> Self {
        let events = |ring| reader.ring(ring).ok().flatten().map_or(0, |info| info.events);
        Self { events: (0..reader.rings()).map(events).collect() }
    }

    fn is_read(&self) -> bool {
        self.events.iter().all(|events| *events == 0)
    }

    /// Whether an item had been written then, or begins with an event that had. It counts as read from now on.
    fn has(&mut self, item: &Item) -> bool {
        let (ring, first, next) = match item {
            Item::Event(event) => (event.ring, event.serial, event.serial.saturating_add(1)),
            Item::Gap(gap) => (gap.ring, gap.first, gap.first.saturating_add(gap.count)),
        };
        let Some(events) = self.events.get_mut(ring) else { return false };
        let had = first < *events;
        if next >= *events {
            *events = 0;
        }
        had
    }
}

fn parsed(line: &str) -> Result<Event, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}
