//! The kinds of events, with the fields of each
//! ([design/telemetry.md `.kinds`](crate::design::telemetry)).

#![forbid(unsafe_code)]

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, for people and for JSON.
    pub name: &'static str,
    /// The form of its value.
    pub form: FieldForm,
}

/// The form of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// One word: a number that names something.
    Number,
    /// One word that stands for something, for instance computed from its address and a secret. It may be
    /// any number of 64 bits, and is equal for the same thing.
    Handle,
    /// One word: how many.
    Count,
    /// One word: bytes.
    Bytes,
    /// One word: an address; zero if addresses are left out.
    Address,
    /// A text: the word with its length, then its bytes
    /// ([design/telemetry.md `.text`](crate::design::telemetry)).
    Text,
    /// Code addresses, the innermost first, one word each, up to the end of the record.
    Site,
}

/// The kinds of events. The number of a kind is in its records, and is the number of its bit
/// in the switch for events; all are below 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(u16)]
pub enum EventKind {
    /// A thread attached, with a name.
    ThreadAttach = 2,
    /// A thread that had attached is about to return its ring.
    ThreadDetach = 3,
    /// The program marked a place in the stream of events.
    Marker = 4,
    /// An arena was created.
    CreateArena = 8,
    /// An arena is about to release its memory.
    DestroyArena = 9,
    /// A pool was created.
    CreatePool = 10,
    /// A pool was destroyed.
    DestroyPool = 11,
    /// A pool took memory from its arena.
    Extend = 12,
    /// A pool returned memory to its arena.
    Retract = 13,
    /// An arena committed memory.
    Grow = 14,
    /// An arena decommitted memory.
    Shrink = 15,
    /// A frozen arena refused to grow.
    GrowthRefused = 16,
    /// An allocation point or another buffer was created.
    CreatePoint = 20,
    /// A buffer is being destroyed.
    DestroyPoint = 21,
    /// A buffer was filled.
    Fill = 22,
    /// A buffer returned what it did not use, or objects that were popped.
    Empty = 23,
    /// The owner of a buffer observed trips.
    Trip = 24,
    /// A buffer was flipped.
    Flip = 25,
    /// A commit failed.
    CommitFailed = 26,
    /// A frame was pushed.
    PushFrame = 27,
    /// A frame was popped.
    PopFrame = 28,
    /// A point whose log is on reserved an object, or a batch.
    Reserve = 32,
    /// A point whose log is on committed what it had reserved.
    Commit = 33,
    /// A point whose log is on abandoned what it had reserved, or its commit failed.
    Abandon = 34,
    /// A store whose log is on allocated an object. The type name is empty if it is not known.
    Alloc = 35,
    /// A store whose log is on is about to free an object.
    Free = 36,
    /// An object was sampled, on the thread of the record. Pool 0 is the program's global allocator, or a pool that is
    /// not known. The kind is the name of an [`ObjectKind`](crate::ObjectKind). The name of the pool's class and that
    /// of the type are empty if they are not known.
    Sample = 37,
    /// A thread begins to stop a heap. Mutator 0 is a thread without one there.
    BeginStop = 40,
    /// A heap is stopped.
    Stop = 41,
    /// A heap was not stopped in time. The mutator is one that did not give way; 0 if another thread stopped the heap.
    PostponeStop = 42,
    /// A stop is about to end.
    EndStop = 43,
    /// A mutator is about to wait for the end of a stop, on the thread of the record.
    GiveWay = 44,
    /// A mutator that gave way goes on.
    GoOn = 45,
    /// A collection of a heap begins. In files of tripoint before steps had kinds of their own, also a step.
    BeginCollection = 46,
    /// A collection has ended.
    EndCollection = 47,
    /// The program entered a phase of the contract.
    Phase = 48,
    /// The contract recorded a violation, something that it excuses, or an alarm.
    Violation = 49,
    /// An amnesty began.
    BeginAmnesty = 50,
    /// An amnesty ended.
    EndAmnesty = 51,
    /// A collection, or one in steps, knows what it keeps, and begins to sweep. Before it marked, or copied that many bytes.
    BeginSweep = 52,
    /// A step of a collection begins.
    BeginStep = 53,
    /// A step has ended. After the last one of a collection, `done` is 1, and `kept` and `freed` are of all of it; otherwise
    /// these are 0. `allowed_ns` is [`u64::MAX`] if the step was allowed any time, and so is `taken_ns` if its caller has no
    /// clock.
    EndStep = 54,
    /// The program noted the sizes of a pool.
    NoteSizes = 55,
}

macro_rules! kinds {
    ($($kind:ident, $name:literal { $($field:ident: $form:ident),* $(,)? })*) => {
        impl EventKind {
            /// All kinds, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// The name, for people and for JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The fields, in the order in which they follow the head of a record.
            #[must_use]
            pub const fn fields(self) -> &'static [Field] {
                match self {
                    $(Self::$kind => &[
                        $(Field { name: stringify!($field), form: FieldForm::$form }),*
                    ],)*
                }
            }
        }
    };
}

/// Passes the list of all kinds to another macro: the table of fields and the reader's typed events
/// are made of the same list.
macro_rules! with_kinds {
    ($make:ident) => {
        $make! {
            ThreadAttach, "thread attach" { name: Text }
            ThreadDetach, "thread detach" {}
            Marker, "marker" { value: Number, name: Text, site: Site }
            CreateArena, "create arena" { arena: Number, base: Address, size: Bytes, site: Site }
            DestroyArena, "destroy arena" { arena: Number, base: Address, size: Bytes, site: Site }
            CreatePool, "create pool" { arena: Number, pool: Number, class: Text, site: Site }
            DestroyPool, "destroy pool" { arena: Number, pool: Number, class: Text, site: Site }
            Extend, "extend" { arena: Number, pool: Number, base: Address, size: Bytes, site: Site }
            Retract, "retract" { arena: Number, pool: Number, base: Address, size: Bytes, site: Site }
            Grow, "grow" { arena: Number, size: Bytes, site: Site }
            Shrink, "shrink" { arena: Number, size: Bytes, site: Site }
            GrowthRefused, "growth refused" { arena: Number, size: Bytes, site: Site }
            CreatePoint, "create point" { arena: Number, pool: Number, buffer: Handle, kind: Text, site: Site }
            DestroyPoint, "destroy point" { arena: Number, pool: Number, buffer: Handle, site: Site }
            Fill, "fill" { arena: Number, pool: Number, buffer: Handle, base: Address, size: Bytes, site: Site }
            Empty, "empty" { arena: Number, pool: Number, buffer: Handle, base: Address, size: Bytes, site: Site }
            Trip, "trip" { arena: Number, pool: Number, buffer: Handle, requests: Count, site: Site }
            Flip, "flip" { arena: Number, pool: Number, buffer: Handle, base: Address, size: Bytes, site: Site }
            CommitFailed, "commit failed" {
                arena: Number, pool: Number, buffer: Handle, object: Address, size: Bytes, site: Site,
            }
            PushFrame, "push frame" { arena: Number, pool: Number, buffer: Handle, init: Address, site: Site }
            PopFrame, "pop frame" {
                arena: Number, pool: Number, buffer: Handle, init: Address, size: Bytes, site: Site,
            }
            Reserve, "reserve" {
                arena: Number, pool: Number, buffer: Handle, object: Address, size: Bytes, unit: Bytes,
                type_name: Text, site: Site,
            }
            Commit, "commit" { arena: Number, pool: Number, buffer: Handle, object: Address, size: Bytes, site: Site }
            Abandon, "abandon" { arena: Number, pool: Number, buffer: Handle, object: Address, site: Site }
            Alloc, "alloc" {
                arena: Number, pool: Number, object: Address, size: Bytes, align: Bytes, type_name: Text, site: Site,
            }
            Free, "free" { arena: Number, pool: Number, object: Address, size: Bytes, align: Bytes, site: Site }
            Sample, "sample" {
                arena: Number, pool: Number, object: Address, size: Bytes, offset: Bytes, mean: Bytes,
                kind: Text, class: Text, type_name: Text, site: Site,
            }
            BeginStop, "begin stop" { arena: Number, heap: Handle, mutator: Number, site: Site }
            Stop, "stop" { arena: Number, heap: Handle, site: Site }
            PostponeStop, "postpone stop" { arena: Number, heap: Handle, mutator: Number, site: Site }
            EndStop, "end stop" { arena: Number, heap: Handle, site: Site }
            GiveWay, "give way" { arena: Number, heap: Handle, mutator: Number, site: Site }
            GoOn, "go on" { arena: Number, heap: Handle, mutator: Number, site: Site }
            BeginCollection, "begin collection" { arena: Number, heap: Handle, reason: Text, site: Site }
            EndCollection, "end collection" {
                arena: Number, heap: Handle, examined: Bytes, kept: Bytes, freed: Bytes, site: Site,
            }
            Phase, "phase" { from: Text, to: Text, site: Site }
            Violation, "violation" {
                slot: Number, count: Count, bytes: Bytes, address: Address, call: Number,
                kind: Text, class: Text, site: Site,
            }
            BeginAmnesty, "begin amnesty" { slot: Number, reason: Text, site: Site }
            EndAmnesty, "end amnesty" { slot: Number, reason: Text, site: Site }
            BeginSweep, "begin sweep" { arena: Number, heap: Handle, copied: Bytes, site: Site }
            BeginStep, "begin step" { arena: Number, heap: Handle, site: Site }
            EndStep, "end step" {
                arena: Number, heap: Handle, examined: Bytes, done: Number, kept: Bytes, freed: Bytes,
                allowed_ns: Count, taken_ns: Count, site: Site,
            }
            NoteSizes, "note sizes" {
                arena: Number, pool: Number, total: Bytes, free: Bytes, largest_free: Bytes, high_water: Bytes,
            }
        }
    };
}

#[cfg(all(feature = "reader", unix, not(tripoint_loom)))]
pub(crate) use with_kinds;

with_kinds!(kinds);

/// How many numbers kinds can have: as many as a word has bits.
const NUMBERS: usize = u64::BITS as usize;

/// The kind of each number.
const BY_NUMBER: [Option<EventKind>; NUMBERS] = {
    let mut kinds = [None; NUMBERS];
    let mut rest = EventKind::ALL;
    while let [kind, others @ ..] = rest {
        kinds[*kind as usize] = Some(*kind);
        rest = others;
    }
    kinds
};

impl EventKind {
    /// The mask of this kind in the switch [`Events`](super::SwitchWord::Events).
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self as u64
    }

    /// The kind with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        if (number as usize) < NUMBERS { BY_NUMBER[number as usize] } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::{HEAD_WORDS, MAX_FRAMES, MAX_RECORD_WORDS, MAX_TEXT_BYTES};
    use crate::format::text::text_words;

    fn most_words(form: FieldForm) -> usize {
        match form {
            FieldForm::Text => 1 + text_words(MAX_TEXT_BYTES),
            FieldForm::Site => MAX_FRAMES,
            _ => 1,
        }
    }

    #[test]
    fn every_kind_has_a_bit_a_name_and_room_in_a_record() {
        let order = |form| match form {
            FieldForm::Text => 1,
            FieldForm::Site => 2,
            _ => 0,
        };
        for (index, &kind) in EventKind::ALL.iter().enumerate() {
            assert!((kind as u16) < 64 && kind as u16 > 1);
            assert!(EventKind::ALL[..index].iter().all(|other| *other < kind && other.name() != kind.name()));
            assert_eq!(EventKind::from_number(kind as u16), Some(kind));
            let words: usize = kind.fields().iter().map(|field| most_words(field.form)).sum();
            assert!(HEAD_WORDS + words <= MAX_RECORD_WORDS, "{kind:?} may take {words} words");
            assert!(kind.fields().is_sorted_by_key(|field| order(field.form)), "words, texts, a site");
        }
    }
}
