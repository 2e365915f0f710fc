//! Reads the telemetry of a process that may still write it.

use std::path::Path;
use std::time::SystemTime;

use tripoint_telemetry::format::FileState;
use tripoint_telemetry::reader::{Item, Reader, RingInfo, Start};

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
pub(super) fn read(
    reader: &Reader,
    target: &Target,
    mut each: impl FnMut(Entry<'_>),
    faults: &mut Vec<String>,
) -> End {
    let info = |ring| reader.ring(ring).ok().flatten();
    let mut written = Written::now(reader.rings(), |ring, is_lasting| {
        info(ring).map_or(0, |info| count(&info, is_lasting))
    });
    let mut events = reader.events(Start::Oldest);
    let mut line = String::new();
    let mut looks = LOOKS;
    while !written.is_read() {
        let Some(item) = events.poll() else {
            // All that was there at this look was overwritten before it was read. The next one finds newer events, and the gap.
            written.leave_unfinished(info);
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
    end(reader, target, faults)
}

/// All but the events, as far as it can be read.
pub(crate) fn end(reader: &Reader, target: &Target, faults: &mut Vec<String>) -> End {
    let mut end = End::default();
    if let Err(error) = read_tables(reader, target, &mut end) {
        faults.push(format!("it cannot be read any more: {error}"));
    }
    if end.counters.tallies.unsteady > 0 {
        faults.push("the tallies make no sense".to_owned());
    }
    end
}

fn read_tables(reader: &Reader, target: &Target, end: &mut End) -> std::io::Result<()> {
    end.counters = Counters::of(&reader.counters()?)?;
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
    end.has_lasting_rings = reader.lasting_events(0, Start::Now).is_some();
    end.is_closed = reader.state()? == FileState::Closed;
    let is_running = is_running(reader, target);
    end.is_gone = !end.is_closed && !is_running;
    end.ns = is_running.then(now);
    Ok(())
}

/// Whether a process of this number runs. One that has ended keeps its number until its parent has asked how it ended.
fn has_number(process: u64) -> bool {
    let folder = Path::new("/proc").join(process.to_string());
    // The state is behind the name, which may have any characters.
    let ended = |stat: &[u8]| {
        let behind = stat.iter().rposition(|byte| *byte == b')').and_then(|at| stat.get(at + 2));
        behind.is_some_and(|state| b"ZX".contains(state))
    };
    match std::fs::read(folder.join("stat")) {
        Ok(stat) => !ended(&stat),
        Err(_) => folder.exists(),
    }
}

/// Whether the process goes on. One that was killed has not closed its recording; then its file is not locked any more.
pub(crate) fn is_running(reader: &Reader, target: &Target) -> bool {
    if reader.state().is_ok_and(|state| state == FileState::Closed) {
        return false;
    }
    match target {
        Target::Process(process) => has_number((*process).into()),
        // In another container it has another number there.
        Target::File(path) => {
            (is_there(reader, path) && is_locked(path)) || has_number(reader.info().process)
        }
    }
}

/// Whether the file at the path is still the one that is read: the next run replaces it.
fn is_there(reader: &Reader, path: &Path) -> bool {
    Reader::open(path).is_ok_and(|there| there.info().identity == reader.info().identity)
}

/// Whether a process keeps the file locked, as those do that write telemetry.
fn is_locked(path: &Path) -> bool {
    use rustix::fs::{FlockOperation, flock};
    let refused = Err(rustix::io::Errno::WOULDBLOCK);
    std::fs::File::open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == refused)
}

/// Which of a thread's two rings: that of lasting events is the second.
const PLACES: [bool; 2] = [false, true];

/// The number of events that a thread's ring counts, those included that are not complete.
fn count(info: &RingInfo, is_lasting: bool) -> u64 {
    if is_lasting { info.lasting_events } else { info.events }
}

/// What had been written to a ring at some moment.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    written: u64,
    /// How many of these, from the first on, were read or missed.
    read: u64,
}

/// What had been written to each ring at some moment, and has not been read since.
#[derive(Debug)]
struct Written {
    /// The two rings of each thread, as [`PLACES`].
    rings: Vec<[Counted; 2]>,
}

impl Written {
    /// Lasting rings are looked at last, as by the reader: if an event had been written, so had the phases that its thread
    /// had seen (design/telemetry.md `.reader.merge`).
    fn now(rings: usize, mut count: impl FnMut(usize, bool) -> u64) -> Self {
        let mut found = vec![[Counted::default(); 2]; rings];
        for is_lasting in PLACES {
            for (ring, counted) in found.iter_mut().enumerate() {
                counted[usize::from(is_lasting)].written = count(ring, is_lasting);
            }
        }
        Self { rings: found }
    }

    /// Leaves out the last event of a ring, if it was counted and is not complete: its thread is writing it, or was killed
    /// meanwhile.
    fn leave_unfinished(&mut self, info: impl Fn(usize) -> Option<RingInfo>) {
        for (ring, counted) in self.rings.iter_mut().enumerate() {
            for (counted, is_lasting) in counted.iter_mut().zip(PLACES) {
                // If more were written since, it is complete.
                let is_unfinished =
                    |info: RingInfo| info.within_record && count(&info, is_lasting) == counted.written;
                if counted.written.checked_sub(1) == Some(counted.read)
                    && info(ring).is_some_and(is_unfinished)
                {
                    counted.written = counted.read;
                }
            }
        }
    }

    fn is_read(&self) -> bool {
        self.rings.as_flattened().iter().all(|counted| counted.read >= counted.written)
    }

    /// Whether an item had been written then, or begins with an event that had. It counts as read from now on.
    fn has(&mut self, item: &Item) -> bool {
        let (ring, is_lasting, first, next) = match item {
            Item::Event(event) => {
                (event.ring, event.is_lasting, event.serial, event.serial.saturating_add(1))
            }
            Item::Gap(gap) => (gap.ring, gap.is_lasting, gap.first, gap.first.saturating_add(gap.count)),
        };
        let Some(counted) = self.rings.get_mut(ring) else { return false };
        let counted = &mut counted[usize::from(is_lasting)];
        let had = first < counted.written;
        counted.read = counted.read.max(next);
        had
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that was killed does not run any more, also if its parent has not noticed.
    #[test]
    fn a_process_that_has_ended_does_not_run() {
        assert!(has_number(std::process::id().into()));
        assert!(!has_number(u32::MAX.into()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let has_ended = (0..30_000).any(|_| {
            // A pause is for the other process; nothing depends on how long it is.
            std::thread::sleep(core::time::Duration::from_millis(1));
            !has_number(child.id().into())
        });
        assert!(has_ended && child.wait().unwrap().success());
    }

    /// The next run has the same path, and locks its file.
    #[test]
    fn a_recording_that_was_replaced_does_not_run_because_the_next_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("telemetry");
        let target = Target::File(path.clone());
        let options = tripoint_telemetry::FileOptions { path: Some(&path), ..Default::default() };
        let before = tripoint_telemetry::Telemetry::create(&options).unwrap();
        assert!(is_running(&Reader::open(&path).unwrap(), &target));
        // Of a process that was killed: there is none of its number.
        let mut bytes = std::fs::read(&path).unwrap();
        let at = tripoint_telemetry::format::HeaderWord::Process as usize * 8;
        bytes[at..at + 8].copy_from_slice(&u64::from(u32::MAX - 1).to_ne_bytes());
        drop(before);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let killed = Reader::open(&path).unwrap();
        assert!(!is_running(&killed, &target));
        let _next = tripoint_telemetry::Telemetry::create(&options).unwrap();
        assert!(is_running(&Reader::open(&path).unwrap(), &target));
        assert!(!is_running(&killed, &target));
    }

    /// A phase begins while rings are looked at, and another thread sees it and goes on.
    #[test]
    fn what_was_written_has_the_phases_that_its_threads_had_seen() {
        let (phases, others) = (0, 1);
        for begins_after in 0..4 {
            let mut looks = 0;
            let mut written = [[0; 2]; 2];
            let now = Written::now(2, |ring, is_lasting| {
                let counted = written[ring][usize::from(is_lasting)];
                if looks == begins_after {
                    written[phases][1] += 1;
                    written[others][0] += 1;
                }
                looks += 1;
                counted
            });
            let [phase, event] = [now.rings[phases][1], now.rings[others][0]].map(|counted| counted.written);
            assert!(event <= phase, "after {begins_after}: the event is there, and its phase is not");
        }
    }
}
