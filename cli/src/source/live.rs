//! Reads the telemetry of a process that may still write it.

use std::path::Path;
use std::time::SystemTime;

use tripoint_telemetry::format::FileState;
use tripoint_telemetry::reader::{Item, Reader, Start};

use crate::source::counters::Counters;
use crate::source::end::{End, Thread};
use crate::source::event::Event;
use crate::source::look::{Entry, now};
use crate::target::Target;

/// How often a ring may be written over while it is looked at, before the rest of it is given up.
const LOOKS: u32 = 1000;

/// The time at which a recording began, in seconds since 1970.
pub(crate) fn made(reader: &Reader) -> Option<u64> {
    let since = reader.info().made()?.duration_since(SystemTime::UNIX_EPOCH);
    since.ok().map(|since| since.as_secs())
}

/// Passes on the events that are there now, and reads the rest. What is written meanwhile is left out, so
/// this ends however fast the process writes.
pub(super) fn read(reader: &Reader, mut each: impl FnMut(Entry<'_>), faults: &mut Vec<String>) -> End {
    let mut written = Written::now(reader);
    let mut events = reader.events(Start::Oldest);
    let mut line = String::new();
    let mut looks = LOOKS;
    while !written.is_read() {
        let Some(item) = events.poll() else {
            // All that was there at this look was overwritten before it was read. The next one finds newer events, and the gap.
            looks -= 1;
            // What is damaged is told below.
            if looks == 0 && events.damaged_blocks() == 0 {
                faults
                    .push("it is written faster than it can be read: some events are not counted".to_owned());
            }
            if looks == 0 {
                break;
            }
            continue;
        };
        if !written.has(&item) {
            continue;
        }
        match Event::of_item(&item, &mut line) {
            Ok(event) => each(Entry::Event(&event)),
            Err(error) => faults.push(format!("an event could not be read: {error}")),
        }
    }
    if events.damaged_blocks() > 0 {
        faults.push(format!("{} blocks of events could not be read", events.damaged_blocks()));
    }
    end(reader, faults)
}

/// All but the events, as far as it can be read.
pub(crate) fn end(reader: &Reader, faults: &mut Vec<String>) -> End {
    let mut end = End::default();
    if let Err(error) = read_tables(reader, &mut end) {
        faults.push(format!("it cannot be read any more: {error}"));
    }
    if end.counters.tallies.unsteady > 0 {
        faults.push("the tallies make no sense".to_owned());
    }
    end
}

fn read_tables(reader: &Reader, end: &mut End) -> std::io::Result<()> {
    end.counters = Counters::of(reader)?;
    end.objects = Some(reader.objects()?);
    for ring in 0..reader.rings() {
        let Some(info) = reader.ring(ring)? else { break };
        if info.events > 0 || info.lasting_events > 0 || info.dropped > 0 {
            end.threads.push(Thread {
                thread: info.thread,
                name: info.name.to_string(),
                events: info.events.saturating_add(info.lasting_events),
                dropped: info.dropped,
                ring,
                is_only: info.claims == 1,
            });
        }
    }
    end.is_closed = reader.state()? == FileState::Closed;
    let may_run = !end.is_closed && has_number(reader.info().process);
    end.ns = may_run.then(now);
    Ok(())
}

/// Whether this system has a process of this number.
fn has_number(process: u64) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Whether the process goes on. One that was killed has not closed its recording; then its file is not locked any more.
pub(crate) fn is_running(reader: &Reader, target: &Target) -> bool {
    if reader.state().is_ok_and(|state| state == FileState::Closed) {
        return false;
    }
    match target {
        Target::Process(process) => has_number((*process).into()),
        // In another container it has another number there.
        Target::File(path) => is_locked(path) || has_number(reader.info().process),
    }
}

/// Whether a process keeps the file locked, as those do that write telemetry.
fn is_locked(path: &Path) -> bool {
    use rustix::fs::{FlockOperation, flock};
    let refused = Err(rustix::io::Errno::WOULDBLOCK);
    std::fs::File::open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == refused)
}

/// What had been written to each ring at some moment, and has not been read since.
struct Written {
    /// The number of events of the two rings of each thread, the lasting ones last; zero once all are read.
    events: Vec<[u64; 2]>,
}

impl Written {
    fn now(reader: &Reader) -> Self {
        let events = |ring| {
            let info = reader.ring(ring).ok().flatten();
            info.map_or([0; 2], |info| [info.events, info.lasting_events])
        };
        Self { events: (0..reader.rings()).map(events).collect() }
    }

    fn is_read(&self) -> bool {
        self.events.as_flattened().iter().all(|events| *events == 0)
    }

    /// Whether an item had been written then, or begins with an event that had. It counts as read from now on.
    fn has(&mut self, item: &Item) -> bool {
        let (ring, is_lasting, first, next) = match item {
            Item::Event(event) => {
                (event.ring, event.is_lasting, event.serial, event.serial.saturating_add(1))
            }
            Item::Gap(gap) => (gap.ring, gap.is_lasting, gap.first, gap.first.saturating_add(gap.count)),
        };
        let Some(events) = self.events.get_mut(ring) else { return false };
        let events = &mut events[usize::from(is_lasting)];
        let had = first < *events;
        if next >= *events {
            *events = 0;
        }
        had
    }
}
