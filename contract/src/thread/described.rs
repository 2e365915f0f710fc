//! What readers of a thread's tallies have to know besides: who it is, what it is held to, and which detectors were live
//! (design/contract.md `.tallies`).

use tripoint_core::internal::{AtomicUsize, Ordering};

use crate::thread::placed::Placed;
use crate::thread::standing::ThreadKind;
use crate::words::atomics::const_fn;
use crate::words::class::ViolationSet;
use crate::words::detector_set::DetectorSet;
use crate::words::name::{NAME_SIZE, Name};

/// How many words describe a thread. Those of telemetry have 64 bits.
pub(crate) const WORDS: usize = if cfg!(target_pointer_width = "64") { 16 } else { 24 };

/// The words that describe a thread. Those after the name are free.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Word {
    /// What it is and was: [`REGISTERED`] and others.
    State = 0,
    /// The [`ViolationSet`] that it is held to.
    Held,
    /// The [`DetectorSet`] that it asked for.
    Wanted,
    /// The [`DetectorSet`] that is live.
    Live,
    /// [`Slot::records_lost`](crate::Slot::records_lost).
    RecordsLost,
    /// [`Slot::overlapped`](crate::Slot::overlapped).
    Overlapped,
    /// The bytes of its name, in the lower half, and before it was cut off, in the upper; then the bytes.
    Name = 8,
}

/// The index of [`Word::RecordsLost`], which only grows.
const LOST: usize = Word::RecordsLost as usize;
/// The index of [`Word::Overlapped`], which is counted.
const OVERLAPPED: usize = Word::Overlapped as usize;

/// A thread registered.
const REGISTERED: usize = 1;
/// It is a hot one.
const HOT: usize = 1 << 1;
/// It was armed.
const ARMED: usize = 1 << 2;
/// It has left.
const LEFT: usize = 1 << 3;
/// It left in the steady state or later, and was never armed.
const LEFT_UNARMED: usize = 1 << 4;

/// A description, which the thread's own slot uses too.
#[derive(Debug)]
pub(crate) struct Described {
    words: Placed<WORDS>,
}

impl Described {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { words: Placed::new() }
        }
    }

    /// Keeps it in these words from now on. Called before anything uses it.
    pub(crate) fn place(&self, words: &'static [AtomicUsize; WORDS]) {
        self.words.place(words);
    }

    /// Keeps it in the slot again.
    pub(crate) fn take_back(&self) {
        self.words.take_back(|index, own, word| {
            match index {
                LOST => own.fetch_max(word, Ordering::Relaxed),
                OVERLAPPED => own.fetch_add(word, Ordering::Relaxed),
                _ => own.fetch_or(word, Ordering::Relaxed),
            };
        });
    }

    fn word(&self, word: Word) -> &AtomicUsize {
        &self.words.in_use()[word as usize]
    }

    /// Describes no thread.
    pub(crate) fn reset(&self) {
        self.words.reset();
    }

    /// Begins to describe a thread that registers, of which nothing else is left. Readers find it only when it is
    /// described wholly ([`Described::hold_to`]).
    pub(crate) fn begin(&self, name: &str) {
        let (whole, name) = (name.len(), Name::new(name));
        let kept = name.as_str().as_bytes();
        let text = &self.words.in_use()[Word::Name as usize..];
        // On targets of less than 64 bits there is no reader of it.
        let half = usize::BITS / 2;
        let whole = whole.min((1 << half) - 1);
        text[0].store(whole << half | kept.len(), Ordering::Relaxed);
        for (word, bytes) in text[1..].iter().zip(kept.chunks(size_of::<usize>())) {
            let mut padded = [0; size_of::<usize>()];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(usize::from_ne_bytes(padded), Ordering::Relaxed);
        }
    }

    /// Notes what the thread is held to, and the detectors that it asked for; and last of all, that it is there.
    pub(crate) fn hold_to(&self, kind: ThreadKind, classes: ViolationSet, wanted: DetectorSet) {
        self.word(Word::Held).store(classes.bits(), Ordering::Relaxed);
        self.word(Word::Wanted).store(wanted.bits(), Ordering::Relaxed);
        let kind = if kind == ThreadKind::Hot { HOT } else { 0 };
        self.word(Word::State).store(REGISTERED | kind, Ordering::Release);
    }

    /// The detectors that are live for the thread.
    pub(crate) fn live(&self) -> DetectorSet {
        DetectorSet::from_bits_truncate(self.word(Word::Live).load(Ordering::Relaxed))
    }

    pub(crate) fn add_live(&self, detectors: DetectorSet) {
        self.word(Word::Live).fetch_or(detectors.bits(), Ordering::Relaxed);
    }

    #[cfg(tripoint_kernel)]
    pub(crate) fn remove_live(&self, detectors: DetectorSet) {
        self.word(Word::Live).fetch_and(!detectors.bits(), Ordering::Relaxed);
    }

    /// Notes that the thread was armed.
    pub(crate) fn arm(&self) {
        self.word(Word::State).fetch_or(ARMED, Ordering::Relaxed);
    }

    /// Notes that the thread has left; `unarmed` says that the contract never bound it, and should have.
    pub(crate) fn end(&self, unarmed: bool) {
        let left = if unarmed { LEFT | LEFT_UNARMED } else { LEFT };
        self.word(Word::State).fetch_or(left, Ordering::Relaxed);
    }

    /// Whether [`Described::end`] was told that the thread was never armed.
    pub(crate) fn left_unarmed(&self) -> bool {
        self.word(Word::State).load(Ordering::Relaxed) & LEFT_UNARMED != 0
    }

    /// Notes how many records were lost by now.
    pub(crate) fn note_lost(&self, lost: usize) {
        // The thread and its supervisor may be here at once, with different numbers.
        self.word(Word::RecordsLost).fetch_max(lost, Ordering::Relaxed);
    }

    /// Counts an event that came while another one was written down.
    pub(crate) fn count_overlapped(&self) {
        self.word(Word::Overlapped).fetch_add(1, Ordering::Relaxed);
    }
}

const _: () = assert!(Word::Name as usize + 1 + NAME_SIZE / size_of::<usize>() <= WORDS);

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;
    use crate::words::atomics::zeros;

    fn lost(described: &Described) -> usize {
        described.word(Word::RecordsLost).load(Ordering::Relaxed)
    }

    /// The thread lost its sixth record while its supervisor was about to note the fifth.
    #[test]
    fn the_later_number_of_lost_records_stays() {
        let described = Described::new();
        described.note_lost(6);
        described.note_lost(5);
        assert_eq!(lost(&described), 6);
    }

    /// A handler counts in the slot before what is in the words has been taken over.
    #[test]
    fn what_a_handler_noted_meanwhile_is_not_added_twice() {
        static SHARED: [AtomicUsize; WORDS] = zeros();
        let described = Described::new();
        described.arm();
        described.add_live(DetectorSet::ALLOCATOR);
        described.note_lost(6);
        described.count_overlapped();
        described.place(&SHARED);
        described.begin("hot");
        described.hold_to(ThreadKind::Hot, ViolationSet::ALLOC, DetectorSet::ALLOCATOR);
        described.arm();
        described.add_live(DetectorSet::ALLOCATOR);
        described.note_lost(5);
        described.count_overlapped();
        described.take_back();
        assert_eq!(described.word(Word::State).load(Ordering::Relaxed), REGISTERED | HOT | ARMED);
        assert_eq!(described.live(), DetectorSet::ALLOCATOR);
        assert_eq!(lost(&described), 6);
        assert_eq!(
            described.word(Word::Overlapped).load(Ordering::Relaxed),
            2,
            "these are counted one by one"
        );
        assert_eq!(described.word(Word::Held).load(Ordering::Relaxed), ViolationSet::ALLOC.bits());
    }
}
