//! Claims of telemetry's rings: a ring has one thread at a time, and a reader never takes for a record what a
//! thread left of one (design/telemetry.md `.claim`, `.claim.models`).
//!
//! Bound: none, or three preemptions if threads end.
#![cfg(any(tripoint_loom, tripoint_shuttle))]

use std::sync::Arc;

use tests_loom::{model_bounded, model_unbounded, thread};
use tripoint_core::internal::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tripoint_telemetry::Clock;
use tripoint_telemetry::format::{
    BLOCK_WORDS, EventKind, HEAD_WORDS, Head, RING_HEAD_WORDS, RecordKind, RingState, RingWord,
};
use tripoint_telemetry::internal::{Record, RecordRing, WordRing};

const CLOCK: Clock = Clock::NONE;
const CAPACITY: usize = 2 * BLOCK_WORDS;
/// The words of a record with one field.
const RECORD: u64 = HEAD_WORDS as u64 + 1;

struct Shared {
    words: Vec<AtomicU64>,
    /// Whether the thread with the number 1 has ended.
    first_has_ended: AtomicBool,
    /// How many threads have the ring.
    owners: AtomicUsize,
}

type Claim = fn(&Shared, u32) -> bool;

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            words: (0..RING_HEAD_WORDS + CAPACITY).map(|_| AtomicU64::new(0)).collect(),
            first_has_ended: AtomicBool::new(false),
            owners: AtomicUsize::new(0),
        })
    }

    fn ring(&self) -> RecordRing<'_> {
        RecordRing::new(&self.words).unwrap()
    }

    fn word(&self, word: RingWord) -> u64 {
        self.ring().words().word(word).load(Ordering::Relaxed)
    }

    fn has_ended(&self, number: u32) -> bool {
        number == 1 && self.first_has_ended.load(Ordering::Acquire)
    }

    /// Writes one record, with `frames` words more than a field.
    fn write(&self, thread: u32, frames: usize) {
        let site = [7; 8];
        let record = Record {
            kind: EventKind::Marker,
            without_addresses: false,
            thread,
            fields: [self.word(RingWord::Serial)],
            texts: [],
            site: &site[..frames],
        };
        self.ring().write(&CLOCK, 0, &record);
    }

    /// A thread's first event. Returns whether the thread has the ring.
    fn claim_and_write(&self, thread: u32, claim: Claim) -> bool {
        let is_ours = claim(self, thread);
        if is_ours {
            assert_eq!(self.owners.fetch_add(1, Ordering::Relaxed), 0, "two threads have the ring");
            self.ring().repair(&CLOCK, 0, thread);
            self.write(thread, 0);
        }
        is_ours
    }

    fn give_back(&self) {
        self.owners.fetch_sub(1, Ordering::Relaxed);
        self.ring().words().give_back();
    }
}

/// The claim that ships.
fn claim(shared: &Shared, thread: u32) -> bool {
    shared.ring().words().claim(thread, |number| shared.has_ended(number))
}

/// Two threads with their first events. Each returns the ring if `give_back` is set.
fn compete(claim: Claim, give_back: bool) {
    model_unbounded(move || {
        let shared = Shared::new();
        let run = move |shared: &Shared, thread| {
            let is_ours = shared.claim_and_write(thread, claim);
            if is_ours && give_back {
                shared.give_back();
            }
            u64::from(is_ours)
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || run(&shared, 2))
        };
        let claims = run(&shared, 3) + other.join().unwrap();
        assert!(claims == 1 || claims == 2 && give_back, "{claims} claims");
        assert_eq!(shared.word(RingWord::Serial), claims, "a record was lost");
        assert_eq!(shared.word(RingWord::State) == RingState::Free as u64, give_back);
    });
}

#[test]
fn one_thread_has_a_ring_that_was_free() {
    compete(claim, false);
}

#[test]
fn a_ring_that_is_returned_is_free_again() {
    compete(claim, true);
}

/// The twin: a claim that looks and then takes.
#[test]
#[should_panic(expected = "two threads have the ring")]
fn looking_before_taking_is_too_early() {
    compete(
        |shared, thread| {
            let ring = *shared.ring().words();
            let is_free = ring.word(RingWord::State).load(Ordering::Acquire) == RingState::Free as u64;
            if is_free {
                ring.word(RingWord::State).store(RingState::Claimed as u64, Ordering::Relaxed);
                ring.word(RingWord::Thread).store(u64::from(thread), Ordering::Release);
            }
            is_free
        },
        false,
    );
}

/// A thread that has the ring writes and ends, while two others have their first events.
fn inherit(claim: Claim) {
    model_bounded(3, move || {
        let shared = Shared::new();
        assert!(shared.ring().words().claim(1, |_| false));
        let first = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.write(1, 0);
                shared.first_has_ended.store(true, Ordering::Release);
            })
        };
        let second = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.claim_and_write(2, claim))
        };
        let claims = u64::from(shared.claim_and_write(3, claim)) + u64::from(second.join().unwrap());
        first.join().unwrap();
        assert!(claims <= 1, "{claims} claims");
        assert_eq!(shared.word(RingWord::Serial), 1 + claims, "a record was lost");
    });
}

#[test]
fn one_thread_takes_the_ring_of_a_thread_that_has_ended() {
    inherit(claim);
}

/// The twin: a thread that is believed to have ended, as the one that forks a child once was.
#[test]
#[should_panic(expected = "a record was lost")]
fn taking_the_ring_of_a_thread_that_lives_loses_records() {
    inherit(|shared, thread| shared.ring().words().claim(thread, |number| number == 1));
}

/// A thread takes the ring of another that has ended, while a third takes it and returns it, and a fourth, which has the
/// number of the one that has ended, claims it.
fn use_a_number_again(claim: Claim) {
    model_bounded(3, move || {
        let shared = Shared::new();
        assert!(shared.ring().words().claim(1, |_| false));
        shared.first_has_ended.store(true, Ordering::Relaxed);
        let others = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                if claim(&shared, 2) {
                    shared.ring().words().give_back();
                }
                shared.first_has_ended.store(false, Ordering::Relaxed);
                shared.claim_and_write(1, claim)
            })
        };
        let claims = u64::from(shared.claim_and_write(3, claim)) + u64::from(others.join().unwrap());
        assert!(claims <= 1, "two threads have the ring");
    });
}

#[test]
fn a_thread_with_the_number_of_one_that_has_ended_keeps_its_ring() {
    use_a_number_again(claim);
}

/// A claim that first asks, and then takes the ring from the number that it asked about.
fn ask_first(shared: &Shared, thread: u32, order: Ordering) -> bool {
    let ring = *shared.ring().words();
    let (state, owner) = (ring.word(RingWord::State), ring.word(RingWord::Thread));
    let [free, claimed] = [RingState::Free, RingState::Claimed].map(|state| state as u64);
    if state.compare_exchange(free, claimed, Ordering::Acquire, Ordering::Relaxed).is_ok() {
        owner.store(u64::from(thread), order);
        return true;
    }
    let other = owner.load(Ordering::Relaxed);
    let ended = other != 0 && (other == u64::from(thread) || shared.has_ended(other as u32));
    ended && owner.compare_exchange(other, u64::from(thread), Ordering::Acquire, Ordering::Relaxed).is_ok()
}

/// The twin: what was true when the thread asked is no longer true when it takes the ring.
#[test]
#[should_panic(expected = "two threads have the ring")]
fn asking_before_taking_is_too_early() {
    use_a_number_again(|shared, thread| ask_first(shared, thread, Ordering::Release));
}

/// The number of a thread that has ended before a model begins.
const ENDED: u32 = 2;

/// A thread gets the number of one that has ended, and takes the ring of another. A third has its first event meanwhile.
fn take_by_a_number_again(claim: Claim) {
    model_bounded(3, move || {
        let shared = Shared::new();
        assert!(shared.ring().words().claim(ENDED, |_| false));
        shared.first_has_ended.store(true, Ordering::Relaxed);
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.first_has_ended.store(false, Ordering::Relaxed);
                shared.claim_and_write(1, claim)
            })
        };
        let claims = u64::from(shared.claim_and_write(3, claim)) + u64::from(other.join().unwrap());
        assert!(claims <= 1, "two threads have the ring");
    });
}

#[test]
fn a_ring_that_was_taken_is_kept_by_a_thread_whose_number_is_used_again() {
    take_by_a_number_again(|shared, thread| {
        shared.ring().words().claim(thread, |number| number == ENDED || shared.has_ended(number))
    });
}

/// The twin: a thread takes the ring, and what it did before is not visible with its number. Only an ordering is missing.
#[test]
#[cfg_attr(tripoint_loom, should_panic(expected = "two threads have the ring"))]
fn a_ring_that_was_taken_without_order_is_taken_again() {
    take_by_a_number_again(|shared, thread| {
        let ring = *shared.ring().words();
        let owner = ring.word(RingWord::Thread);
        let other = owner.load(Ordering::Acquire) as u32;
        (other == ENDED || shared.has_ended(other))
            && owner
                .compare_exchange(other.into(), thread.into(), Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    });
}

/// A thread returns its ring and ends, and the next one claims it. Another thread has its first event when the first has ended.
fn give_back_and_claim(give_back: fn(&WordRing<'_>)) {
    model_bounded(3, move || {
        let shared = Shared::new();
        assert!(shared.ring().words().claim(1, |_| false));
        let others = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                give_back(shared.ring().words());
                shared.first_has_ended.store(true, Ordering::Release);
                shared.claim_and_write(2, claim)
            })
        };
        let is_ours = shared.has_ended(1) && shared.claim_and_write(3, claim);
        let claims = u64::from(is_ours) + u64::from(others.join().unwrap());
        assert_eq!(claims, 1, "two threads have the ring, or none");
    });
}

#[test]
fn a_ring_that_is_returned_has_no_number() {
    give_back_and_claim(|ring| ring.give_back());
}

/// The twin: a ring that is free, and still has a number.
#[test]
#[should_panic(expected = "two threads have the ring")]
fn a_free_ring_with_a_number_has_two_threads() {
    give_back_and_claim(|ring| ring.word(RingWord::State).store(RingState::Free as u64, Ordering::Release));
}

/// A thread returns its ring, while another has its first event. The thread that has the ring then ends, and a third can have it.
fn give_back_and_end(give_back: fn(&WordRing<'_>)) {
    model_unbounded(move || {
        let shared = Shared::new();
        assert!(shared.ring().words().claim(1, |_| false));
        let first = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || give_back(shared.ring().words()))
        };
        let _ = shared.ring().words().claim(2, |_| false);
        first.join().unwrap();
        assert!(shared.ring().words().claim(3, |_| true), "no thread has the ring again");
    });
}

#[test]
fn a_ring_that_is_returned_is_not_lost() {
    give_back_and_end(|ring| ring.give_back());
}

/// The twin: a ring that is free before it has no number.
#[test]
#[should_panic(expected = "no thread has the ring again")]
fn a_ring_that_is_free_too_early_is_lost() {
    give_back_and_end(|ring| {
        ring.word(RingWord::State).store(RingState::Free as u64, Ordering::Release);
        ring.word(RingWord::Thread).store(0, Ordering::Relaxed);
    });
}

/// A thread asks whether another has ended, which returns its ring meanwhile. A third claims it. Loom takes the zero of the
/// one and the exchange of the other for unordered, so they are one thread here.
fn ask_too_late(ask: fn(&WordRing<'_>, &dyn Fn())) {
    model_unbounded(move || {
        let shared = Shared::new();
        let ring = *shared.ring().words();
        assert!(ring.claim(1, |_| false));
        ask(&ring, &|| {
            ring.give_back();
            assert!(ring.claim(2, |_| false));
        });
        assert_eq!(shared.word(RingWord::Thread), 2, "the ring has another number than its thread");
    });
}

#[test]
fn a_thread_that_asks_leaves_a_ring_that_was_claimed_meanwhile() {
    ask_too_late(|ring, meanwhile| {
        let is_claimed = ring.claim(3, |_| {
            meanwhile();
            false
        });
        assert!(!is_claimed);
    });
}

/// The twin: a thread that puts back the number that it found, whatever is there now.
#[test]
#[should_panic(expected = "the ring has another number than its thread")]
fn a_thread_that_puts_a_number_back_takes_the_next_ones() {
    ask_too_late(|ring, meanwhile| {
        meanwhile();
        ring.word(RingWord::Thread).store(1, Ordering::Release);
    });
}

/// A ring whose first block is full, and to whose second one a record was written; a thread then ends in the
/// middle of a long record, and another writes a short one. Meanwhile a reader copies the words that are one lap older.
fn end_in_the_middle(repair: fn(&RecordRing<'_>)) {
    model_unbounded(move || {
        let shared = Shared::new();
        assert!(shared.ring().words().claim(1, |_| false));
        // Three in each block, and the first record of the next one.
        (0..7).for_each(|_| shared.write(1, 0));
        let ring = *shared.ring().words();
        let tail = ring.tail();
        let mut before = [0; RECORD as usize];
        // What the long record overwrites, and the short one does not.
        let from = tail + RECORD - CAPACITY as u64;
        let copied = ring.copy(from, &mut before);
        assert_eq!((copied.words, copied.good_from), (RECORD as usize, from));
        let mark = Head {
            kind: RecordKind::Padding,
            without_addresses: false,
            words: 8,
            thread: 1,
            serial: 0,
            time: 0,
        };
        ring.announce(tail + 2 * RECORD);
        ring.put(tail, &mark.to_words());
        ring.put(tail + RECORD, &[!0; RECORD as usize]);
        shared.first_has_ended.store(true, Ordering::Release);
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut copy = [0; RECORD as usize];
                let ring: WordRing<'_> = *shared.ring().words();
                let copied = ring.copy(from, &mut copy);
                let good = copied.good_from.saturating_sub(from).min(RECORD) as usize;
                assert_eq!(copy[good..copied.words], before[good..copied.words], "a wrong word");
            })
        };
        assert!(claim(&shared, 2));
        repair(&shared.ring());
        shared.write(2, 0);
        reader.join().unwrap();
        assert_eq!(shared.word(RingWord::Serial), 8);
    });
}

#[test]
fn what_a_thread_left_of_a_record_is_padding() {
    end_in_the_middle(|ring| ring.repair(&CLOCK, 0, 2));
}

/// The twin: a thread that goes on where the other one ended announces less than that had announced.
#[test]
#[should_panic(expected = "a wrong word")]
fn going_on_in_the_middle_of_a_record_takes_back_what_was_announced() {
    end_in_the_middle(|_| ());
}
