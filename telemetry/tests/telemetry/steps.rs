//! A signal handler that interrupts its own thread between any two instructions of an event, and of its first,
//! while it claims a ring (design/telemetry.md `.thread`): the processor stops after each.

use core::arch::asm;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use tripoint_core::{Addr, Event, EventHook, PoolId};
use tripoint_telemetry::format::RingWord;
use tripoint_telemetry::{Clock, Room, Telemetry};

use crate::decoder::{File, InMemory};

/// What the handler writes to.
static TELEMETRY: AtomicPtr<Telemetry> = AtomicPtr::new(ptr::null_mut());
/// How often the ring was claimed: the handler writes after each instruction from the first time on.
static CLAIMS: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
static STEPS: AtomicUsize = AtomicUsize::new(0);
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_step(_signal: libc::c_int, _info: *mut libc::siginfo_t, _context: *mut c_void) {
    STEPS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the test keeps telemetry and its words until the thread that is stepped has ended.
    let (telemetry, claims) =
        unsafe { (&*TELEMETRY.load(Ordering::Relaxed), &*CLAIMS.load(Ordering::Relaxed)) };
    if claims.load(Ordering::Relaxed) > 0 {
        telemetry.event_at(Event::Shrink { size: 7 }, &[1, 2, 3]);
        WRITTEN.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does `work`, with the handler after each instruction.
#[inline(never)]
fn step(work: impl FnOnce()) {
    // SAFETY: this sets a flag that programs may set, and there is a handler for what follows from it.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    work();
    // SAFETY: this clears the flag again.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
}

/// Has the handler write to this from now on.
fn prepare(memory: &InMemory) {
    TELEMETRY.store(ptr::from_ref(&memory.telemetry).cast_mut(), Ordering::Relaxed);
    CLAIMS.store(ptr::from_ref(memory.word_of_ring(0, RingWord::Claims)).cast_mut(), Ordering::Relaxed);
    [&STEPS, &WRITTEN].iter().for_each(|count| count.store(0, Ordering::Relaxed));
}

/// How many events the handler wrote or had dropped.
fn written() -> u64 {
    let [steps, written] = [&STEPS, &WRITTEN].map(|count| count.load(Ordering::Relaxed));
    assert!(written > 30 && steps >= written, "{written} of {steps}: the processor did not stop");
    written as u64
}

/// Checks that each record is of the thread or of the handler, and whole.
fn check(file: &File) {
    for found in file.events() {
        let (size, frames) = if found.site.is_empty() { (5, 0) } else { (7, 3) };
        assert_eq!((found.words["size"], found.site.len()), (size, frames));
        assert_ne!(found.head.thread, 0);
    }
}

/// A thread's first event. The thread has had a ring in other telemetry before, or not.
fn claim_in_steps(had_another: bool) {
    let room = Room { threads: 1, ring_bytes: 8 << 10, ..Room::LEAST };
    let memory = InMemory::new(&room);
    prepare(&memory);
    let write = || {
        if had_another {
            // Closed by the time of the first event.
            let larger = Room { ring_bytes: 32 << 10, ..room };
            InMemory::new(&larger).telemetry.event(Event::Grow { size: 1 });
        }
        step(|| memory.telemetry.event(Event::Grow { size: 5 }));
        memory.telemetry.event(Event::Grow { size: 5 });
    };
    std::thread::scope(|scope| scope.spawn(write).join().unwrap());
    let written = written();
    let file = memory.file();
    let [own, shared] = &file.rings()[..] else { panic!("there are two rings") };
    assert_eq!(own.word(RingWord::Claims), 1);
    let all = |word| own.word(word) + shared.word(word);
    assert_eq!(all(RingWord::Serial) + all(RingWord::Dropped), written + 2);
    assert!(shared.word(RingWord::Serial) > 0, "no handler came between the claim and its end");
    check(&file);
}

/// An event of a thread that has its rings, which is written to the second one or not.
fn write_in_steps(clock: Clock, event: Event, is_lasting: bool) {
    let room = Room { threads: 1, ring_bytes: 8 << 10, lasting_bytes: 8 << 10, ..Room::LEAST };
    let memory = InMemory::with_clock(&room, clock);
    prepare(&memory);
    let write = || {
        memory.telemetry.event(Event::Grow { size: 5 });
        step(|| memory.telemetry.event(event));
    };
    std::thread::scope(|scope| scope.spawn(write).join().unwrap());
    let written = written();
    let file = memory.file();
    let [own, shared] = &file.rings()[..] else { panic!("there are two rings") };
    let [kept, dropped] = [RingWord::Serial, RingWord::Dropped].map(|word| own.word(word));
    let lasting = file.lasting_rings()[0].word(RingWord::Serial);
    assert_eq!((kept + dropped, shared.word(RingWord::Serial)), (written + 2 - lasting, 0));
    assert_eq!(lasting, u64::from(is_lasting));
    assert!(dropped > 0, "no handler came between the beginning of a record and its end");
    check(&file);
}

#[test]
fn a_handler_may_come_between_any_two_instructions() {
    let action = libc::sigaction {
        sa_sigaction: on_step as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void) as usize,
        // SAFETY: a mask of zeros is a mask without signals.
        sa_mask: unsafe { core::mem::zeroed() },
        sa_flags: libc::SA_SIGINFO,
        sa_restorer: None,
    };
    // SAFETY: the handler uses atomics and constant thread-locals only; nothing else here uses this signal.
    assert_eq!(unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut()) }, 0);
    [false, true].into_iter().for_each(claim_in_steps);
    write_in_steps(Clock::new(|| 42), Event::Grow { size: 5 }, false);
    write_in_steps(Clock::new(|| 42), Event::Phase { from: "Init", to: "Warmup" }, true);
    // Written quickly, if the system's clock is the time-stamp counter.
    let (pool, object) = (PoolId::new(1).unwrap(), Addr::new(16));
    write_in_steps(Clock::default(), Event::Free { pool, object, size: 5, align: 8 }, false);
}
