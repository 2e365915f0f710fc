//! The log of points, written to a file ([design/point-log.md `.file`](crate::design::point_log)).

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, PoisonError};
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
}

/// The thread whose call is being made.
#[derive(Debug, Default)]
struct Turn {
    /// Its number; zero for none.
    thread: u32,
    /// How many calls of it have begun, one inside another.
    depth: u32,
}

#[derive(Debug)]
struct Out<O> {
    to: O,
    /// The events so far.
    events: u64,
    check: LogCheck,
    /// The first error of the output. Nothing is written after it.
    error: Option<io::Error>,
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
        let out = Out { to, events: 0, check: LogCheck::START, error: None, bytes: Vec::new() };
        Ok(Self { turn: Mutex::default(), over: Condvar::new(), out: Mutex::new(out) })
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

    /// Ends the log. Returns the output and the number of events.
    ///
    /// # Errors
    /// The first error of the output since the log began.
    pub fn finish(self) -> io::Result<(O, u64)> {
        let mut out = self.out.into_inner().unwrap_or_else(PoisonError::into_inner);
        let end = Head {
            kind: RecordKind::Padding,
            without_addresses: false,
            words: HEAD_WORDS as u16,
            thread: 0,
            serial: out.events,
            time: 0,
        };
        out.put(&end.to_words());
        match out.error {
            Some(error) => Err(error),
            None => {
                out.to.flush()?;
                Ok((out.to, out.events))
            }
        }
    }
}

impl<O: Write> Out<O> {
    /// Writes the words of a record, and the check.
    fn put(&mut self, words: &[u64]) {
        if self.error.is_none() {
            self.check = self.check.over(words);
            self.bytes.clear();
            let words = words.iter().copied().chain([self.check.word()]);
            self.bytes.extend(words.flat_map(u64::to_ne_bytes));
            self.error = self.to.write_all(&self.bytes).err();
        }
    }
}

impl<O: Write + Send> EventHook for PointLog<O> {
    fn event(&self, event: Event) {
        self.event_at(event, &[]);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let encoded = Encoded::new(&event, site, thread_number(), out.events);
        out.put(encoded.words());
        out.events += 1;
    }

    fn begin_call(&self) {
        let me = thread_number();
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while turn.thread != 0 && turn.thread != me {
            turn = self.over.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        turn.thread = me;
        turn.depth += 1;
    }

    fn end_call(&self) {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.thread == thread_number() {
            turn.depth = turn.depth.saturating_sub(1);
            if turn.depth == 0 {
                turn.thread = 0;
                self.over.notify_one();
            }
        }
    }
}
