//! What the kernel reports, as a capture that reports and gates read.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use serde::Serialize;

use crate::error::{Error, Unwatchable};
use crate::kernel_events::events::{Happened, Scope, Seen, Watch};
use crate::kernel_events::{threads, tracefs};
use crate::mapped;
use crate::source::counters::Tally;
use crate::source::{CaptureWriter, End, Thread};

/// What is known of a thread.
struct Known {
    name: String,
    /// Its place in the tallies.
    slot: u64,
    events: u64,
    /// By class.
    tallies: BTreeMap<&'static str, (u64, u64)>,
}

/// A line of the capture, as `Event` reads it.
#[derive(Serialize)]
struct Line<'l> {
    ring: u64,
    serial: u64,
    tid: u32,
    ns: Option<u64>,
    event: &'static str,
    #[serde(flatten)]
    fields: Fields<'l>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Fields<'l> {
    Attach {
        name: &'l str,
    },
    Violation {
        slot: u64,
        count: u64,
        bytes: u64,
        address: String,
        call: u64,
        kind: &'static str,
        class: &'static str,
        site: Vec<String>,
    },
}

#[derive(Serialize)]
struct Gap {
    ring: u64,
    first: u64,
    missed: u64,
}

/// A process that is watched from outside.
pub(crate) struct WatchedProcess {
    process: u32,
    watch: Watch,
    /// When the watch began.
    begin: Instant,
    threads: BTreeMap<u32, Known>,
    objects: Vec<mapped::Mapped>,
    pub(crate) events: u64,
    pub(crate) missed: u64,
    /// What is not seen, with what to do about it.
    pub(crate) unseen: Vec<String>,
}

impl WatchedProcess {
    /// Begins to watch threads of a process, and all that these start; all threads if there are no names.
    pub(crate) fn begin(process: u32, names: &[String]) -> Result<Self, Unwatchable> {
        let none = || Unwatchable::NoThreads { process, names: names.to_vec() };
        let found = threads::threads(process, names).map_err(|_| none())?;
        if found.is_empty() {
            return Err(none());
        }
        let processors = threads::processors().map_err(|error| Unwatchable::System { process, error })?;
        let mut unseen = Vec::new();
        let mut scope = Scope { calls: None, faults_of_kernel: true };
        match tracefs::entry_of_system_calls() {
            Ok(tracepoint) => scope.calls = Some(tracepoint),
            Err(why) => unseen.push(format!("memory calls are not seen: {why}")),
        }
        let mut opened = Watch::open(found.keys().copied(), &processors, scope);
        if scope.calls.is_some() && opened.as_ref().is_err_and(is_forbidden) {
            scope.calls = None;
            unseen.push(
                "memory calls are not seen: this user may not read tracepoints; run this as root".to_owned(),
            );
            opened = Watch::open(found.keys().copied(), &processors, scope);
        }
        if opened.as_ref().is_err_and(is_forbidden) {
            scope.faults_of_kernel = false;
            unseen.push(
                "page faults within system calls are not seen: run this as root, or set kernel.perf_event_paranoid to 1"
                    .to_owned(),
            );
            opened = Watch::open(found.keys().copied(), &processors, scope);
        }
        let watch = opened.map_err(|error| match is_forbidden(&error) {
            true => Unwatchable::Forbidden { process, paranoid: paranoid() },
            false => Unwatchable::System { process, error },
        })?;
        let objects = mapped::of_process(process);
        let mut watched = Self {
            process,
            watch,
            begin: Instant::now(),
            threads: BTreeMap::new(),
            objects,
            events: 0,
            missed: 0,
            unseen,
        };
        for (thread, name) in found {
            watched.know(thread, name);
        }
        Ok(watched)
    }

    fn know(&mut self, thread: u32, name: String) {
        let slot = self.threads.len() as u64;
        let known = self.threads.entry(thread).or_insert_with(|| Known {
            name: String::new(),
            slot,
            events: 0,
            tallies: BTreeMap::new(),
        });
        known.name = name;
    }

    /// Whether the process has ended. One that has not been waited for has no memory any more.
    pub(crate) fn has_ended(&self) -> bool {
        mapped::of_process(self.process).is_empty()
    }

    /// Looks which files are mapped by now.
    pub(crate) fn look_at_files(&mut self) {
        let now = mapped::of_process(self.process);
        if !now.is_empty() {
            self.objects = now;
        }
    }

    /// Ends the watch, and writes the rest. What was missed is known only now: the kernel tells of it with the next record that it has
    /// room for, and of what it throttled not at all.
    pub(crate) fn stop(&mut self, writer: &mut CaptureWriter) -> Result<(), Error> {
        let refused = |error| Error::Unwatchable(Unwatchable::System { process: self.process, error });
        let total = self.watch.stop().map_err(refused)?;
        while self.take(writer)? {}
        let counts = self.threads.values().flat_map(|known| known.tallies.values());
        let told = counts.map(|(count, _)| count).sum::<u64>().saturating_add(self.missed);
        self.miss(total.saturating_sub(told), writer)
    }

    fn miss(&mut self, missed: u64, writer: &mut CaptureWriter) -> Result<(), Error> {
        if missed > 0 {
            writer.add_line(&Gap { ring: u64::MAX, first: self.missed, missed })?;
            self.missed = self.missed.saturating_add(missed);
        }
        Ok(())
    }

    /// Writes what happened since the last time. Returns whether that was anything.
    pub(crate) fn take(&mut self, writer: &mut CaptureWriter) -> Result<bool, Error> {
        let mut seen = Vec::new();
        let (mut names, mut missed) = (Vec::new(), 0_u64);
        self.watch.read(|what| match what {
            Seen::Happened(happened) => seen.push(happened),
            Seen::Named { thread, name } => {
                names.push((thread, Some(name.to_string_lossy().escape_debug().to_string()), 0));
            }
            Seen::Started { thread, by } => names.push((thread, None, by)),
            Seen::Lost(lost) => missed = missed.saturating_add(lost),
        });
        for (thread, name, by) in names {
            let inherited = || self.threads.get(&by).map(|known| known.name.clone()).unwrap_or_default();
            let name = name.unwrap_or_else(inherited);
            self.know(thread, name);
        }
        self.miss(missed, writer)?;
        // Each processor has a ring.
        seen.sort_by_key(|happened| happened.ns);
        seen.iter().try_for_each(|happened| self.write(happened, writer))?;
        Ok(!seen.is_empty() || missed > 0)
    }

    fn write(&mut self, happened: &Happened, writer: &mut CaptureWriter) -> Result<(), Error> {
        let tid = happened.thread;
        if !self.threads.contains_key(&tid) {
            self.know(tid, threads::name(self.process, tid));
        }
        let Some(known) = self.threads.get_mut(&tid) else { return Ok(()) };
        let (slot, ns) = (known.slot, Some(happened.ns));
        if known.events == 0 {
            let fields = Fields::Attach { name: &known.name };
            writer.add_line(&Line { ring: slot, serial: 0, tid, ns, event: "thread attach", fields })?;
            known.events = 1;
            self.events += 1;
        }
        let serial = known.events;
        known.events += 1;
        let (count, bytes) = known.tallies.entry(happened.class).or_default();
        (*count, *bytes) = (*count + 1, bytes.saturating_add(happened.bytes));
        self.events += 1;
        let &Happened { class, kind, call, address, bytes, .. } = happened;
        let site = happened.site.iter().map(|address| format!("{address:#x}")).collect();
        let address = format!("{address:#x}");
        let fields = Fields::Violation { slot, count: 1, bytes, address, call, kind, class, site };
        writer.add_line(&Line { ring: slot, serial, tid, ns, event: "violation", fields })
    }

    /// The last line of the capture.
    pub(crate) fn end(&self) -> End {
        let watched_ns = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut end = End {
            watched_ns: Some(watched_ns),
            is_closed: self.has_ended(),
            unseen: self.unseen.clone(),
            ..End::default()
        };
        end.objects = Some(mapped::objects(&self.objects, |_| None));
        for (number, known) in &self.threads {
            end.threads.push(Thread {
                thread: u64::from(*number),
                name: known.name.clone(),
                events: known.events,
                dropped: 0,
                ring: known.slot as usize,
                is_only: true,
            });
            let tally = |(class, (count, bytes)): (&&str, &(u64, u64))| Tally {
                class: (*class).to_owned(),
                slot: known.slot,
                count: *count,
                bytes: *bytes,
                excused: 0,
                excused_bytes: 0,
                armed_count: *count,
                armed_bytes: *bytes,
                armed_excused: 0,
                armed_excused_bytes: 0,
            };
            end.counters.tallies.entries.extend(known.tallies.iter().map(tally));
        }
        end
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    [Some(libc::EACCES), Some(libc::EPERM)].contains(&error.raw_os_error())
}

fn paranoid() -> String {
    let value = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    value.map_or_else(|_| "not known".to_owned(), |value| value.trim().to_owned())
}
