//! Operations on addresses to steps on objects ([design/cli-traces.md `.object`](crate::design::cli_traces)).

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::ring::{Entry, code};
use crate::trace::format::{Kind, Operation, Step, Summary, Writer};

/// An object that is live.
#[derive(Clone, Copy)]
struct Live {
    object: u64,
    size: u64,
}

/// Writes the trace of one process.
pub(super) struct Converter<W: Write> {
    writer: Writer<W>,
    /// The object that begins at each address.
    live: FxHashMap<u64, Live>,
    /// The bytes of all of them, and of those that are inside a realloc.
    live_bytes: u64,
    peak_live: u64,
    /// For each thread that is inside a realloc, the address and its object.
    inside: FxHashMap<u32, (u64, Option<Live>)>,
    /// The numbers of threads in the trace.
    threads: FxHashMap<u32, u32>,
    summary: Summary,
}

impl<W: Write> Converter<W> {
    pub(super) fn new(writer: Writer<W>) -> Self {
        let (live, inside, threads) = Default::default();
        Self { writer, live, live_bytes: 0, peak_live: 0, inside, threads, summary: Summary::default() }
    }

    pub(super) fn convert(&mut self, entry: Entry) -> io::Result<()> {
        let Entry { address, size, thread, .. } = entry;
        match entry.code {
            code::PLAIN => self.allocated(thread, address, size, Kind::Plain),
            code::ZEROED => self.allocated(thread, address, size, Kind::Zeroed),
            code::ALIGNED => {
                let log2 = entry.align_log2.min(Kind::MAX_ALIGN_LOG2);
                self.allocated(thread, address, size, Kind::Aligned(log2))
            }
            code::FREE => match self.live.remove(&address) {
                Some(live) => self.freed(thread, live),
                None => {
                    self.summary.unknown += 1;
                    Ok(())
                }
            },
            code::REALLOC => {
                let live = self.live.remove(&address);
                self.summary.unknown += u64::from(live.is_none());
                self.inside.insert(thread, (address, live));
                Ok(())
            }
            code::REALLOCATED => self.reallocated(thread, address, size),
            code::END_THREAD => {
                self.step(thread, Operation::EndThread)?;
                // What it still does, outside of all destructors, is another thread's in the trace.
                self.threads.remove(&thread);
                Ok(())
            }
            code::FORK => self.step(thread, Operation::Fork { child: address as u32 }),
            // The process has overwritten it.
            _ => {
                self.summary.torn += 1;
                Ok(())
            }
        }
    }

    fn reallocated(&mut self, thread: u32, address: u64, size: u64) -> io::Result<()> {
        let Some((from, live)) = self.inside.remove(&thread) else { return Ok(()) };
        match (live, address) {
            // Refused, unless it was a free.
            (Some(live), 0) if size != 0 => {
                self.live.insert(from, live);
                Ok(())
            }
            (Some(live), 0) => self.freed(thread, live),
            (Some(live), _) => {
                self.free_at(thread, address)?;
                self.live.insert(address, Live { size, ..live });
                self.resize(live.size, size);
                self.step(thread, Operation::Realloc { object: live.object, size })
            }
            (None, 0) => Ok(()),
            (None, _) => self.allocated(thread, address, size, Kind::Plain),
        }
    }

    fn allocated(&mut self, thread: u32, address: u64, size: u64, kind: Kind) -> io::Result<()> {
        self.free_at(thread, address)?;
        self.live.insert(address, Live { object: self.writer.next_object(), size });
        self.resize(0, size);
        self.step(thread, Operation::Alloc { kind, size })
    }

    fn freed(&mut self, thread: u32, live: Live) -> io::Result<()> {
        self.resize(live.size, 0);
        self.step(thread, Operation::Free { object: live.object })
    }

    /// Keeps account of an object whose size was one, and is another.
    fn resize(&mut self, from: u64, to: u64) {
        // A program may ask for what no machine has.
        self.live_bytes = self.live_bytes.saturating_sub(from).saturating_add(to);
        self.peak_live = self.peak_live.max(self.live_bytes);
    }

    /// Frees what is still live at an address that is allocated again.
    fn free_at(&mut self, thread: u32, address: u64) -> io::Result<()> {
        match self.live.remove(&address) {
            Some(live) => {
                self.summary.replaced += 1;
                self.freed(thread, live)
            }
            None => Ok(()),
        }
    }

    fn step(&mut self, thread: u32, operation: Operation) -> io::Result<()> {
        let next = self.summary.threads;
        let thread = *self.threads.entry(thread).or_insert(next);
        self.summary.threads = next.max(thread + 1);
        self.writer.write(Step { thread, operation })
    }

    /// Counts an operation that was not finished.
    pub(super) fn note_torn(&mut self) {
        self.summary.torn += 1;
    }

    /// Counts events that were overwritten before they were read.
    pub(super) fn note_missed(&mut self, events: u64) {
        self.summary.missed += events;
    }

    /// The most bytes that were live at once up to now.
    pub(super) fn peak_live(&self) -> u64 {
        self.peak_live
    }

    /// Notes how much memory the process has had resident at most.
    pub(super) fn note_resident(&mut self, bytes: u64) {
        self.summary.peak_resident = self.summary.peak_resident.max(Some(bytes));
    }

    /// Writes out what is buffered.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.write_block()
    }

    /// Writes the end of the trace.
    pub(super) fn finish(mut self, ended: &str) -> io::Result<Summary> {
        ended.clone_into(&mut self.summary.ended);
        self.writer.finish(self.summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::format::{Header, History};

    /// The steps of these entries (code, thread, address, size), and the summary.
    fn converted(entries: &[(u8, u32, u64, u64)]) -> (Vec<(u32, Operation)>, Summary) {
        let mut bytes = Vec::new();
        let mut converter = Converter::new(Writer::begin(&mut bytes, &Header::default()).unwrap());
        for &(code, thread, address, size) in entries {
            converter.convert(Entry { code, align_log2: 6, thread, address, size }).unwrap();
        }
        let peak_live = converter.peak_live();
        let summary = converter.finish("test").unwrap();
        let (history, cut) = History::read(&bytes[..]).unwrap();
        assert!(cut.is_none(), "{cut:?}");
        // The reader keeps an account of its own.
        assert_eq!(peak_live, history.totals.peak_live);
        (history.steps.iter().map(|step| (step.thread, step.operation)).collect(), summary)
    }

    const fn alloc(size: u64) -> Operation {
        Operation::Alloc { kind: Kind::Plain, size }
    }

    #[test]
    fn an_address_used_again_is_another_object() {
        let (steps, summary) = converted(&[
            (code::PLAIN, 0, 64, 8),
            (code::FREE, 0, 64, 0),
            (code::ALIGNED, 0, 64, 9),
            (code::FREE, 0, 64, 0),
        ]);
        let aligned = Operation::Alloc { kind: Kind::Aligned(6), size: 9 };
        let free = |object| Operation::Free { object };
        assert_eq!(steps, [(0, alloc(8)), (0, free(0)), (0, aligned), (0, free(1))]);
        assert_eq!((summary.unknown, summary.replaced), (0, 0));
    }

    #[test]
    fn another_thread_may_take_the_address_that_a_realloc_leaves() {
        let (steps, summary) = converted(&[
            (code::PLAIN, 0, 64, 8),
            (code::REALLOC, 0, 64, 100),
            (code::PLAIN, 7, 64, 16),
            (code::REALLOCATED, 0, 128, 100),
            (code::FREE, 7, 128, 0),
            (code::FREE, 0, 64, 0),
        ]);
        let expected = [
            (0, alloc(8)),
            (1, alloc(16)),
            (0, Operation::Realloc { object: 0, size: 100 }),
            (1, Operation::Free { object: 0 }),
            (0, Operation::Free { object: 1 }),
        ];
        assert_eq!(steps, expected);
        assert_eq!((summary.unknown, summary.replaced), (0, 0));
    }

    #[test]
    fn a_refused_realloc_changes_nothing_and_one_to_zero_frees() {
        let (steps, _) = converted(&[
            (code::PLAIN, 0, 64, 8),
            (code::REALLOC, 0, 64, 1 << 60),
            (code::REALLOCATED, 0, 0, 1 << 60),
            (code::REALLOC, 0, 64, 0),
            (code::REALLOCATED, 0, 0, 0),
        ]);
        assert_eq!(steps, [(0, alloc(8)), (0, Operation::Free { object: 0 })]);
    }

    #[test]
    fn unknown_objects_are_counted_and_become_known_when_they_move() {
        let (steps, summary) = converted(&[
            (code::FREE, 0, 64, 0),
            (code::REALLOC, 0, 128, 8),
            (code::REALLOCATED, 0, 256, 8),
            (code::FREE, 0, 256, 0),
        ]);
        assert_eq!(steps, [(0, alloc(8)), (0, Operation::Free { object: 0 })]);
        assert_eq!(summary.unknown, 2);
    }

    #[test]
    fn an_object_that_was_freed_unseen_is_freed_when_its_address_is_used_again() {
        let (steps, summary) = converted(&[(code::PLAIN, 0, 64, 8), (code::PLAIN, 0, 64, 9)]);
        assert_eq!(steps, [(0, alloc(8)), (0, Operation::Free { object: 0 }), (0, alloc(9))]);
        assert_eq!(summary.replaced, 1);
    }

    #[test]
    fn what_a_thread_does_after_its_end_is_another_thread() {
        let (steps, summary) = converted(&[
            (code::PLAIN, 3, 64, 8),
            (code::END_THREAD, 3, 0, 0),
            (code::FREE, 3, 64, 0),
            (99, 3, 0, 0),
        ]);
        let expected = [(0, alloc(8)), (0, Operation::EndThread), (1, Operation::Free { object: 0 })];
        assert_eq!(steps, expected);
        assert_eq!((summary.threads, summary.torn), (2, 1));
    }
}
