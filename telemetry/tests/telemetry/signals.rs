//! A signal handler that interrupts its own thread's writing (design/telemetry.md `.thread`, `.req.counted`).

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use tripoint_core::{Event, EventHook};
use tripoint_telemetry::Room;
use tripoint_telemetry::format::RingWord;

use crate::decoder::InMemory;

static MEMORY: OnceLock<InMemory> = OnceLock::new();
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn write_in_handler(_signal: libc::c_int) {
    if let Some(memory) = MEMORY.get() {
        memory.telemetry.event_at(Event::Shrink { size: 7 }, &[1, 2, 3]);
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_handler_writes_or_drops_and_counts() {
    let room = Room { threads: 2, ring_bytes: 8 << 10, ..Room::LEAST };
    let memory = MEMORY.get_or_init(|| InMemory::new(&room));
    // SAFETY: the handler uses atomics and constant thread-locals only.
    unsafe {
        libc::signal(libc::SIGUSR1, write_in_handler as extern "C" fn(libc::c_int) as libc::sighandler_t)
    };
    let attached = memory.telemetry.attach("interrupted");
    // SAFETY: the call has no arguments, and names this thread, which outlives the scope below.
    let this = unsafe { libc::pthread_self() };
    let done = AtomicU64::new(0);
    let mut written = 1;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while done.load(Ordering::Relaxed) == 0 {
                // SAFETY: the thread lives until this one is joined.
                unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
                std::thread::yield_now();
            }
        });
        // Until handlers have found the ring in use some times, and often enough free.
        let ring = || memory.file().rings().swap_remove(0);
        while HANDLED.load(Ordering::Relaxed) < 1_000 || ring().word(RingWord::Dropped) < 3 {
            for _ in 0..1_000 {
                memory.telemetry.event(Event::Grow { size: 5 });
                written += 1;
            }
        }
        done.store(1, Ordering::Relaxed);
    });
    // The last signals may still be handled: they are, before this thread goes on.
    let ring = memory.file().rings().swap_remove(0);
    let events = written + HANDLED.load(Ordering::Relaxed);
    assert_eq!(ring.word(RingWord::Serial) + ring.word(RingWord::Dropped), events);
    // The decoder has checked that records follow each other without a gap.
    for found in ring.events.iter().filter(|found| found.words.contains_key("size")) {
        let (size, frames) = if found.site.is_empty() { (5, 0) } else { (7, 3) };
        assert_eq!((found.words["size"], found.site.len()), (size, frames));
    }
    drop(attached);
}
