//! A signal handler that interrupts its own thread's writing at any moment (design/telemetry.md `.thread`,
//! `.req.counted`). `steps` has every moment of a few events.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use tripoint_core::{Event, EventHook};
use tripoint_telemetry::Room;
use tripoint_telemetry::format::RingWord;

use crate::decoder::InMemory;

static MEMORY: OnceLock<InMemory> = OnceLock::new();
static HANDLED: AtomicU64 = AtomicU64::new(0);

const SIGNALS: u64 = 200;

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
    let mut written = 1;
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            for sent in 1..=SIGNALS {
                // SAFETY: the thread lives until this one is joined.
                assert_eq!(unsafe { libc::pthread_kill(this, libc::SIGUSR1) }, 0);
                // A signal that is sent while another waits is lost; and a thread that always has one
                // waiting does nothing else.
                tripoint_oracle::wait_until(|| HANDLED.load(Ordering::Relaxed) >= sent);
            }
        });
        while !sender.is_finished() {
            memory.telemetry.event(Event::Grow { size: 5 });
            written += 1;
        }
    });
    let ring = memory.file().rings().swap_remove(0);
    assert_eq!(ring.word(RingWord::Serial) + ring.word(RingWord::Dropped), written + SIGNALS);
    // The decoder has checked that records follow each other without a gap.
    for found in ring.events.iter().filter(|found| found.words.contains_key("size")) {
        let (size, frames) = if found.site.is_empty() { (5, 0) } else { (7, 3) };
        assert_eq!((found.words["size"], found.site.len()), (size, frames));
    }
    drop(attached);
}
