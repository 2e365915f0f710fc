//! The log of points, written to a file ([design/point-log.md `.file`](crate::design::point_log)).

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::string::ToString as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use tripoint_core::{Event, EventHook};

use crate::format::{BYTE_ORDER, HEAD_WORDS, Head, LOG_MAGIC, LOG_VERSION, LogCheck, RecordKind};
use crate::logger::encoded::Encoded;
use crate::numbering::thread_number;

/// A log of all calls on one arena, and on its pools and points, whole and in order: the hook of the arena, of the
/// [`PointLogger`](crate::PointLogger) at each point, and of the [`LoggedPool`](crate::LoggedPool) around each manual
/// pool. `tripoint replay` does the same calls again.
///
/// Calls of several threads are made one after another while they are logged, in the order of the log. What a thread
/// reports outside of a logged call does not wait, because it may hold a pool's lock. So put in a
/// [`call`](Self::call) what is not logged by itself: making pools and dropping them, while other threads use the arena.
///
/// A log takes locks, so a signal handler must not do what is logged; it may trip points. If the output fails, the
/// program goes on, nothing more is written, and [`end`](Self::end) returns the error. The child of a fork has no log:
/// what it does is not in its parent's.
///
/// ```
/// use tripoint_ap::AllocationPoint;
/// use tripoint_core::{BufferKind, ClientArena, ClientArenaOptions};
/// use tripoint_pools::{Mvff, MvffOptions};
/// use tripoint_telemetry::{LoggedPool, PointLog, PointLogger};
///
/// let log = PointLog::begin(Vec::new())?;
/// let mut memory = Box::new_uninit_slice(1 << 20);
/// let options = ClientArenaOptions { event_hook: Some(&log), ..ClientArenaOptions::default() };
/// let arena = ClientArena::create(&mut memory, options)?;
/// let pool = LoggedPool::new(Mvff::create(&arena, MvffOptions::default())?, || true, &log);
/// let logger = PointLogger::new(|| true, &log);
/// let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, logger)?;
/// drop(point.boxed([0_u64; 12])?);
/// drop(point);
/// drop(pool);
/// drop(arena);
/// let (_bytes, events) = log.finish()?;
/// assert_eq!(events, 12); // each life, the reserve and its commit, the free, and what the pool did for them
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PointLog<O> {
    turn: Mutex<Turn>,
    over: Condvar,
    out: Mutex<Out<O>>,
    process: Process,
}

/// The process that began a log. A child that it forks is another one: there, a thread that is no more may have a lock,
/// and what is buffered is the parent's.
#[derive(Clone, Copy, Debug)]
struct Process(u32);

impl Process {
    fn this() -> Self {
        Self(std::process::id())
    }

    fn is_here(self) -> bool {
        self.0 == std::process::id()
    }
}

/// The thread whose call is being made.
#[derive(Debug, Default)]
struct Turn {
    /// Its number; zero for none.
    thread: u32,
    /// How many calls of it have begun, one inside another.
    depth: u32,
    /// The threads that sleep until it is over.
    sleeping: u32,
    /// Whether one of these was woken that has not run since: until then, no other is woken, because a thread that makes
    /// one call after another would wake one at each, in vain.
    is_one_woken: bool,
}

#[derive(Debug)]
struct Out<O> {
    /// None only after the log was finished.
    to: Option<O>,
    process: Process,
    /// The events so far.
    events: u64,
    check: LogCheck,
    /// The first error of the output. Nothing is written after it.
    error: Option<io::Error>,
    /// Whether the end was written. Nothing is kept after it.
    is_over: bool,
    /// The bytes of the record being written.
    bytes: Vec<u8>,
}

impl<O: Write + Send> PointLog<O> {
    /// Begins a log. Events are written as they happen: pass a [`BufWriter`](std::io::BufWriter) around a file.
    ///
    /// # Errors
    /// Those of the output.
    pub fn begin(mut to: O) -> io::Result<Self> {
        let header = [u64::from_ne_bytes(LOG_MAGIC), LOG_VERSION, BYTE_ORDER];
        to.write_all(&header.map(u64::to_ne_bytes).concat())?;
        let (process, check, bytes) = (Process::this(), LogCheck::START, Vec::new());
        let out = Out { to: Some(to), process, events: 0, check, error: None, is_over: false, bytes };
        Ok(Self { turn: Mutex::default(), over: Condvar::new(), out: Mutex::new(out), process })
    }

    /// Makes a call that is not logged by itself, such as the one that creates a pool, in the order of the log: no other
    /// logged call is made meanwhile. Calls may be inside one another.
    pub fn call<R>(&self, call: impl FnOnce() -> R) -> R {
        struct End<'l, O: Write + Send>(&'l PointLog<O>);
        impl<O: Write + Send> Drop for End<'_, O> {
            fn drop(&mut self) {
                self.0.end_call();
            }
        }
        self.begin_call();
        let _end = End(self);
        call()
    }

    /// Ends the log, which keeps nothing that happens later. Returns the number of events. This is how a log ends whose
    /// arena is never dropped, or has to have its hook forever, as those of the system's memory.
    ///
    /// # Errors
    /// The first error of the output since the log began. In the child of a fork, that the log is its parent's.
    pub fn end(&self) -> io::Result<u64> {
        if !self.process.is_here() {
            return Err(io::Error::other(
                "this log is that of the process which forked this one: end it there",
            ));
        }
        let mut out = self.out();
        if !out.is_over {
            let end = Head {
                kind: RecordKind::Padding,
                without_addresses: false,
                words: HEAD_WORDS as u16,
                thread: 0,
                serial: out.events,
                time: 0,
            };
            out.put(&end.to_words());
            out.is_over = true;
            out.attempt(Write::flush);
        }
        match &out.error {
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => Ok(out.events),
        }
    }

    /// [Ends](Self::end) the log. Returns the output and the number of events.
    ///
    /// # Errors
    /// Those of [`end`](Self::end).
    pub fn finish(self) -> io::Result<(O, u64)> {
        let events = self.end()?;
        let to = self.out().to.take();
        to.map(|to| (to, events)).ok_or_else(|| io::Error::other("this log was finished before"))
    }

    fn out(&self) -> MutexGuard<'_, Out<O>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O: Write> Out<O> {
    /// Writes the words of a record, and the check.
    fn put(&mut self, words: &[u64]) {
        self.check = self.check.over(words);
        let mut bytes = core::mem::take(&mut self.bytes);
        bytes.clear();
        let words = words.iter().copied().chain([self.check.word()]);
        bytes.extend(words.flat_map(u64::to_ne_bytes));
        self.attempt(|to| to.write_all(&bytes));
        self.bytes = bytes;
    }

    /// Does something with the output, unless that has failed before.
    fn attempt(&mut self, attempt: impl FnOnce(&mut O) -> io::Result<()>) {
        if let Some(to) = self.to.as_mut().filter(|_| self.error.is_none()) {
            self.error = attempt(to).err();
        }
    }
}

impl<O> Drop for Out<O> {
    /// An output that is dropped may write what it has buffered.
    fn drop(&mut self) {
        if !self.process.is_here() {
            core::mem::forget(self.to.take());
        }
    }
}

impl<O: Write + Send> EventHook for PointLog<O> {
    fn event(&self, event: Event) {
        self.event_at(event, &[]);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        if !self.process.is_here() {
            return;
        }
        let mut out = self.out();
        if !out.is_over {
            let encoded = Encoded::new(&event, site, thread_number(), out.events);
            out.put(encoded.words());
            out.events += 1;
        }
    }

    fn begin_call(&self) {
        if !self.process.is_here() {
            return;
        }
        let (me, mut turn) = (thread_number(), self.turn());
        while turn.thread != 0 && turn.thread != me {
            turn.sleeping += 1;
            turn = self.over.wait(turn).unwrap_or_else(PoisonError::into_inner);
            turn.sleeping -= 1;
            turn.is_one_woken = false;
        }
        turn.thread = me;
        turn.depth += 1;
    }

    fn end_call(&self) {
        if !self.process.is_here() {
            return;
        }
        let mut turn = self.turn();
        if turn.thread == thread_number() {
            turn.depth = turn.depth.saturating_sub(1);
            if turn.depth == 0 {
                turn.thread = 0;
                if turn.sleeping > 0 && !turn.is_one_woken {
                    turn.is_one_woken = true;
                    drop(turn);
                    self.over.notify_one();
                }
            }
        }
    }
}
