//! Events of the kernel about the threads of a process, and the rings that it writes them to.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;

use perf_event::data::Record;
use perf_event::events::{Event, Software, Tracepoint};
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler};

use crate::kernel_events::{calls, unsafe_ioctls};

/// The bytes of a ring; there is one for each processor. Without privilege a user may have about twice as many.
const RING: usize = 1 << 18;

/// The most records of a ring that are taken at once, so that a look ends however fast they come.
const MOST: usize = 10_000;

/// The most frames of a stack.
const FRAMES: usize = 20;

/// From here on, numbers in a stack say of which kind the following frames are.
const MARKS: u64 = (-4096_i64).cast_unsigned();

/// What an event of the kernel counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    MinorFaults,
    MajorFaults,
    Calls,
}

/// What the kernel reported.
pub(super) enum Seen<'r> {
    Happened(Happened),
    /// A thread has a name.
    Named {
        thread: u32,
        name: &'r OsStr,
    },
    /// A thread was started by another.
    Started {
        thread: u32,
        by: u32,
    },
    /// The number of records that found no room, or could not be read.
    Lost(u64),
}

/// A page fault or a call.
#[derive(Debug)]
pub(super) struct Happened {
    pub(super) thread: u32,
    /// In ns of the system's monotonic clock.
    pub(super) ns: u64,
    pub(super) class: &'static str,
    /// `fault`, or the name of the call.
    pub(super) kind: &'static str,
    /// The number of the call; zero for a fault.
    pub(super) call: u64,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Return addresses, the innermost first.
    pub(super) site: Vec<u64>,
}

/// The events of the threads, as long as this is there.
pub(super) struct Watch {
    rings: Vec<Sampler>,
    /// Those that write to the rings of others.
    others: Vec<Counter>,
    counted: HashMap<u64, Counted>,
}

/// What of the kernel's part is seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    /// The tracepoint of system calls.
    pub(super) calls: Option<u64>,
    /// Whether faults count that the kernel has when it reads or writes the process's memory.
    pub(super) faults_of_kernel: bool,
}

impl Watch {
    /// Watches threads, and those that they start from now on. A thread that has just ended is left out.
    pub(super) fn open(
        threads: impl Iterator<Item = u32> + Clone,
        processors: &[usize],
        scope: Scope,
    ) -> io::Result<Self> {
        let mut watch = Self { rings: Vec::new(), others: Vec::new(), counted: HashMap::new() };
        for processor in processors {
            let mut ring = None;
            for thread in threads.clone() {
                match watch.open_thread(thread, *processor, scope, &mut ring) {
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    other => other?,
                }
            }
            watch.rings.extend(ring);
        }
        Ok(watch)
    }

    fn open_thread(
        &mut self,
        thread: u32,
        processor: usize,
        scope: Scope,
        ring: &mut Option<Sampler>,
    ) -> io::Result<()> {
        let exclude = !scope.faults_of_kernel;
        let minor = build(Software::PAGE_FAULTS_MIN, thread, processor, exclude)?;
        self.add(minor, Counted::MinorFaults, ring)?;
        let major = build(Software::PAGE_FAULTS_MAJ, thread, processor, exclude)?;
        self.add(major, Counted::MajorFaults, ring)?;
        if let Some(tracepoint) = scope.calls {
            // Not without the kernel: the tracepoint is in its code.
            let calls = build(Tracepoint::with_id(tracepoint), thread, processor, false)?;
            unsafe_ioctls::set_filter(&calls, &calls::filter())?;
            self.add(calls, Counted::Calls, ring)?;
        }
        Ok(())
    }

    /// Has an event write to the ring of its processor, which is that of the first.
    fn add(&mut self, mut event: Counter, counted: Counted, ring: &mut Option<Sampler>) -> io::Result<()> {
        self.counted.insert(event.id(), counted);
        match ring {
            None => {
                let sampler = ring.insert(event.sampled(RING)?);
                sampler.as_counter_mut().enable()
            }
            Some(ring) => {
                unsafe_ioctls::write_to(&event, ring.as_counter())?;
                event.enable()?;
                self.others.push(event);
                Ok(())
            }
        }
    }

    /// Ends the watch, and returns how many faults and calls there were in it, by the kernel's own count. What it reported of them can
    /// still be read.
    pub(super) fn stop(&mut self) -> io::Result<u64> {
        let rings = self.rings.iter_mut().map(|ring| ring.as_counter_mut());
        let mut total = 0_u64;
        for event in rings.chain(&mut self.others) {
            event.disable()?;
            total = total.saturating_add(event.read()?);
        }
        Ok(total)
    }

    /// Passes on what the kernel reported since the last time.
    pub(super) fn read(&mut self, mut each: impl FnMut(Seen<'_>)) {
        for ring in &mut self.rings {
            for _ in 0..MOST {
                let Some(record) = ring.next_record() else { break };
                match record.parse_record() {
                    Ok(Record::Sample(sample)) => {
                        let counted = sample.id().and_then(|id| self.counted.get(&id).copied());
                        let happened = counted.and_then(|counted| happened(&sample, counted));
                        each(happened.map_or(Seen::Lost(1), Seen::Happened));
                    }
                    Ok(Record::Comm(named)) => each(Seen::Named { thread: named.tid, name: named.comm_os() }),
                    Ok(Record::Fork(fork)) => each(Seen::Started { thread: fork.tid, by: fork.ptid }),
                    Ok(Record::Lost(lost)) => each(Seen::Lost(lost.lost)),
                    Ok(Record::LostSamples(lost)) => each(Seen::Lost(lost.lost)),
                    Ok(_) => {}
                    Err(_) => each(Seen::Lost(1)),
                }
            }
        }
    }
}

/// An event of a thread on a processor. All have the same form of records, because they share a ring.
fn build(event: impl Event, thread: u32, processor: usize, exclude_kernel: bool) -> io::Result<Counter> {
    let form = SampleFlag::TID
        | SampleFlag::TIME
        | SampleFlag::ADDR
        | SampleFlag::ID
        | SampleFlag::CALLCHAIN
        | SampleFlag::RAW;
    let mut builder = Builder::new(event);
    builder
        .observe_pid(i32::try_from(thread).map_err(io::Error::other)?)
        .one_cpu(processor)
        .inherit(true)
        .comm(true)
        .task(true)
        .sample(form)
        .sample_id_all(true)
        .sample_period(1)
        .clockid(Clock::MONOTONIC)
        .exclude_kernel(exclude_kernel)
        .exclude_hv(true)
        .exclude_callchain_kernel(true);
    builder.build()
}

fn happened(sample: &perf_event::data::Sample<'_>, counted: Counted) -> Option<Happened> {
    let frames = sample.callchain()?.iter().copied().filter(|address| *address < MARKS);
    let mut site: Vec<u64> = frames.take(FRAMES).collect();
    let (thread, ns, address) = (sample.tid()?, sample.time()?, sample.addr()?);
    let fault =
        |class| Happened { thread, ns, class, kind: "fault", call: 0, address, bytes: 0, site: Vec::new() };
    let happened = match counted {
        Counted::MinorFaults => fault("minor_fault"),
        Counted::MajorFaults => fault("major_fault"),
        Counted::Calls => {
            let called = calls::called(sample.raw()?)?;
            let (call, kind, address, bytes) = (called.number, called.name, called.address, called.bytes);
            return Some(Happened { thread, ns, class: "memory_call", kind, call, address, bytes, site });
        }
    };
    // A fault is at an instruction, and all else in a site are addresses to which calls return.
    if let Some(first) = site.first_mut() {
        *first = first.saturating_add(1);
    }
    Some(Happened { site, ..happened })
}
