//! What is compared of an event.

use core::fmt;

use tripoint_telemetry::format::EventKind;
use tripoint_telemetry::reader::{Fields, Text};

/// The most numbers of an event, and the most texts.
const MOST: usize = 8;

/// An event without what differs between two runs: addresses count from the arena's base.
///
/// A batch is replayed as one of bytes, so what the log says of its objects is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: EventKind,
    parts: [Option<(&'static str, Part)>; MOST],
    texts: [Option<Text>; 2],
}

/// The arena of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose {
    pub(super) base: u64,
    /// Whether its memory is the system's.
    pub(super) is_of_system: bool,
    /// Whether it has a heap. The descriptors of the heap are not in the replay, so others are elsewhere.
    pub(super) has_heap: bool,
}

impl Whose {
    /// Whether an event is passed over: an arena that is frozen returns nothing to the system, and the log does not have
    /// that; what an arena with a heap does depends on the heap's collections; and the replay has no heap.
    pub(super) const fn passes_over(self, kind: EventKind) -> bool {
        match kind {
            EventKind::Shrink => self.is_of_system || self.has_heap,
            EventKind::Grow | EventKind::GrowthRefused | EventKind::Extend | EventKind::Retract => {
                self.has_heap
            }
            _ => is_of_heap(kind),
        }
    }
}

/// Whether only heaps have events of this kind.
pub(super) const fn is_of_heap(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::RegisterMutator
            | EventKind::DropMutator
            | EventKind::RegisterRoot
            | EventKind::DropRoot
            | EventKind::RegisterFrozen
            | EventKind::UpdateFrozen
            | EventKind::DropFrozen
            | EventKind::DropHeap
            | EventKind::BeginStop
            | EventKind::Stop
            | EventKind::PostponeStop
            | EventKind::EndStop
            | EventKind::GiveWay
            | EventKind::GoOn
            | EventKind::Flip
            | EventKind::CommitFailed
            | EventKind::BeginCollection
            | EventKind::BeginSweep
            | EventKind::EndCollection
            | EventKind::BeginStep
            | EventKind::EndStep
    )
}

/// A number of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Number(u64),
    /// Bytes from the arena's base; none for no address.
    Place(Option<u64>),
}

/// What is compared of one kind: its parts with their names, and perhaps texts.
macro_rules! compared {
    ($kind:ident { $($name:ident: $part:expr),* } $(, $text:ident)*) => {{
        let mut parts = [None; MOST];
        let named = [$((stringify!($name), $part)),*];
        parts.iter_mut().zip(named).for_each(|(place, part)| *place = Some(part));
        let mut texts = [None; 2];
        texts.iter_mut().zip([$($text),*]).for_each(|(place, text)| *place = Some(text));
        Some(Seen { kind: EventKind::$kind, parts, texts })
    }};
}

impl Seen {
    /// What is compared of an event of an arena like this; none of kinds that are not replayed, and of trips, which
    /// are counted.
    pub(super) fn of(fields: &Fields, Whose { base, has_heap, .. }: Whose) -> Option<Self> {
        let number = Part::Number;
        let at = |address: u64| Part::Place((address != 0).then(|| address.wrapping_sub(base)));
        // Those of a call are all of one point, which the replay finds by its buffer in the log.
        let buffer_at = |buffer: u64| if has_heap { Part::Place(None) } else { at(buffer) };
        match *fields {
            Fields::CreateArena {
                grain, commit_limit, base, size, memory_base, memory_size, class, ..
            } => {
                compared!(
                    CreateArena {
                        grain: number(grain),
                        commit_limit: number(commit_limit),
                        base: at(base),
                        size: number(size),
                        memory_base: at(memory_base),
                        memory_size: number(memory_size)
                    },
                    class
                )
            }
            Fields::DestroyArena { base, size, .. } => {
                compared!(DestroyArena { base: at(base), size: number(size) })
            }
            Fields::Grow { size, .. } => compared!(Grow { size: number(size) }),
            Fields::Shrink { size, .. } => compared!(Shrink { size: number(size) }),
            Fields::GrowthRefused { size, .. } => compared!(GrowthRefused { size: number(size) }),
            Fields::CreatePool { pool, class, .. } => compared!(CreatePool { pool: number(pool) }, class),
            Fields::DestroyPool { pool, class, .. } => compared!(DestroyPool { pool: number(pool) }, class),
            Fields::Extend { pool, base, size, .. } => {
                compared!(Extend { pool: number(pool), base: at(base), size: number(size) })
            }
            Fields::Retract { pool, base, size, .. } => {
                compared!(Retract { pool: number(pool), base: at(base), size: number(size) })
            }
            Fields::CreatePoint { pool, buffer, ranks, kind, .. } => {
                compared!(
                    CreatePoint { pool: number(pool), buffer: buffer_at(buffer), ranks: number(ranks) },
                    kind
                )
            }
            Fields::DestroyPoint { pool, buffer, .. } => {
                compared!(DestroyPoint { pool: number(pool), buffer: buffer_at(buffer) })
            }
            Fields::Fill { pool, buffer, base, size, .. } => {
                compared!(Fill {
                    pool: number(pool),
                    buffer: buffer_at(buffer),
                    base: at(base),
                    size: number(size)
                })
            }
            Fields::Empty { pool, buffer, base, size, .. } => {
                compared!(Empty {
                    pool: number(pool),
                    buffer: buffer_at(buffer),
                    base: at(base),
                    size: number(size)
                })
            }
            Fields::PushFrame { pool, buffer, init, .. } => {
                compared!(PushFrame { pool: number(pool), buffer: buffer_at(buffer), init: at(init) })
            }
            Fields::PopFrame { pool, buffer, init, size, .. } => {
                compared!(PopFrame {
                    pool: number(pool),
                    buffer: buffer_at(buffer),
                    init: at(init),
                    size: number(size)
                })
            }
            Fields::Reserve { pool, buffer, object, size, requested, .. } => {
                compared!(Reserve {
                    pool: number(pool),
                    buffer: buffer_at(buffer),
                    object: at(object),
                    size: number(size),
                    requested: number(requested)
                })
            }
            Fields::RefuseReserve { pool, buffer, requested, align, error, .. } => {
                compared!(
                    RefuseReserve {
                        pool: number(pool),
                        buffer: buffer_at(buffer),
                        requested: number(requested),
                        align: number(align)
                    },
                    error
                )
            }
            Fields::Commit { pool, buffer, object, size, .. } => {
                compared!(Commit {
                    pool: number(pool),
                    buffer: buffer_at(buffer),
                    object: at(object),
                    size: number(size)
                })
            }
            Fields::Abandon { pool, buffer, object, .. } => {
                compared!(Abandon { pool: number(pool), buffer: buffer_at(buffer), object: at(object) })
            }
            Fields::EmptyPoint { pool, buffer, .. } => {
                compared!(EmptyPoint { pool: number(pool), buffer: buffer_at(buffer) })
            }
            Fields::FreeAtPoint { pool, buffer, object, size, align, .. } => {
                compared!(FreeAtPoint {
                    pool: number(pool),
                    buffer: buffer_at(buffer),
                    object: at(object),
                    size: number(size),
                    align: number(align)
                })
            }
            Fields::Alloc { pool, object, size, align, .. } => {
                compared!(Alloc {
                    pool: number(pool),
                    object: at(object),
                    size: number(size),
                    align: number(align)
                })
            }
            Fields::RefuseAlloc { pool, size, align, error, .. } => {
                compared!(RefuseAlloc { pool: number(pool), size: number(size), align: number(align) }, error)
            }
            Fields::Free { pool, object, size, align, .. } => {
                compared!(Free {
                    pool: number(pool),
                    object: at(object),
                    size: number(size),
                    align: number(align)
                })
            }
            Fields::Resize { pool, object, size, new_size, new_align, resized, .. } => {
                compared!(Resize {
                    pool: number(pool),
                    object: at(object),
                    size: number(size),
                    new_size: number(new_size),
                    new_align: number(new_align),
                    resized: at(resized)
                })
            }
            Fields::PacketUnit { pool, unit, start, length, .. } => {
                compared!(PacketUnit {
                    pool: number(pool),
                    unit: number(unit),
                    start: number(start),
                    length: number(length)
                })
            }
            Fields::PacketCall {
                pool, cache, packet_ring, asked, length, moved, trips, call, error, ..
            } => {
                compared!(
                    PacketCall {
                        pool: number(pool),
                        cache: buffer_at(cache),
                        packet_ring: number(packet_ring),
                        asked: number(asked),
                        length: number(length),
                        moved: number(moved),
                        trips: number(trips)
                    },
                    call,
                    error
                )
            }
            _ => None,
        }
    }

    /// Whether a call of the program ends with this event, or begins with it. The other events are what calls do.
    pub(super) const fn is_call(self) -> bool {
        !matches!(
            self.kind,
            EventKind::Grow
                | EventKind::Shrink
                | EventKind::GrowthRefused
                | EventKind::Extend
                | EventKind::Retract
                | EventKind::Fill
                | EventKind::Empty
                | EventKind::Commit
                | EventKind::Abandon
                | EventKind::PacketUnit
        )
    }

    /// Whether it says that a call was refused.
    pub(super) const fn is_refusal(self) -> bool {
        matches!(self.kind, EventKind::RefuseReserve | EventKind::RefuseAlloc)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        for (name, part) in self.parts.iter().flatten() {
            match part {
                Part::Number(number) => write!(f, " {name}={number}"),
                Part::Place(Some(place)) => write!(f, " {name}=+{place:#x}"),
                Part::Place(None) => write!(f, " {name}=none"),
            }?;
        }
        self.texts.iter().flatten().try_for_each(|text| write!(f, " \"{text}\""))
    }
}
