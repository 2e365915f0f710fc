//! Tables of counters, which can be read without any event
//! ([design/telemetry.md `.counters`](crate::design::telemetry)).

#![forbid(unsafe_code)]

/// The words of an entry of any table.
pub const TABLE_ENTRY_WORDS: usize = 16;

/// The words of a text in an entry: the word with its length, and at most 24 bytes.
pub const TABLE_TEXT_WORDS: usize = 4;

/// The state of an entry, the lowest byte of its first word. The bytes above it count how often it
/// was taken. A reader that reads the first word before and after the others, and finds it
/// unchanged, has read a single entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum EntryState {
    /// Never taken.
    Free = 0,
    /// Being taken.
    Making = 1,
    /// In use.
    Live = 2,
    /// What it counted no longer exists. Something new may take the entry.
    Gone = 3,
}

/// The words of an arena's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ArenaWord {
    /// See [`EntryState`].
    State = 0,
    /// The number of the arena in this file.
    Arena,
    /// The first address; zero if addresses are left out.
    Base,
    /// The bytes of its range.
    Bytes,
    /// The bytes that it committed.
    Grown,
    /// The bytes that it decommitted.
    Shrunk,
    /// How often it refused to grow.
    Refused,
    /// How many pools were created.
    PoolsCreated,
    /// How many pools were destroyed.
    PoolsDestroyed,
    /// How often a heap of the arena was stopped.
    Stops,
    /// How often a stop of a heap was postponed.
    StopsPostponed,
    /// How often a mutator waited for the end of a stop.
    Pauses,
    /// How many collections ended.
    Collections,
    /// The bytes that they freed.
    Freed,
}

/// The words of a heap's entry. A heap is known from its first stop on. If another one has its address after it was
/// dropped, both are counted as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum HeapWord {
    /// See [`EntryState`].
    State = 0,
    /// The number of its arena in this file.
    Arena,
    /// The number by which events name the heap; zero for all heaps that have none, because the number would show an
    /// address that is left out.
    Heap,
    /// How often a thread began to stop it.
    StopsBegun,
    /// How often it was stopped.
    Stops,
    /// How often a stop was postponed.
    StopsPostponed,
    /// The ticks from the beginnings of stops until it was stopped or they were postponed. While some have begun that have
    /// not ended, the moments of their beginnings are missing in it: it is the sum of the ends less that of the beginnings.
    TicksToStop,
    /// How often a mutator began to wait for the end of a stop.
    Pauses,
    /// How many of these waits have ended.
    PausesEnded,
    /// The ticks that mutators waited, as [`HeapWord::TicksToStop`].
    TicksPaused,
    /// How many collections ended, those in steps included.
    Collections,
    /// The bytes of objects that they copied.
    Copied,
    /// How many steps of collections there were.
    Steps,
    /// How many of them took longer than they were allowed.
    StepsLate,
    /// How long they took, in ns of their callers' clocks.
    StepTime,
    /// The longest of these times.
    LongestStep,
}

/// The words of a pool's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum PoolWord {
    /// See [`EntryState`].
    State = 0,
    /// The number of its arena in this file.
    Arena,
    /// The number of the pool in its arena.
    Pool,
    /// The bytes that it took from its arena.
    Extended,
    /// The bytes that it returned to its arena.
    Retracted,
    /// How often it filled a buffer.
    Fills,
    /// The bytes of these fills.
    Filled,
    /// How often it emptied a buffer.
    Empties,
    /// The bytes that were returned then.
    Emptied,
    /// The bytes that it had when the program noted them last; zero before.
    Total,
    /// Those of them that were in no object and no buffer then.
    Free,
    /// The first address of the extent of its that changed last; zero before there is one, and [`u64::MAX`] while its
    /// addresses are not known. For the writer.
    LastExtent,
    /// The name of its class, a text of [`TABLE_TEXT_WORDS`].
    Class = 12,
}

/// The words of the entry of an extent: addresses that a pool has, and that follow each other. An extent is gone, and its
/// words are zero, when all of its addresses were returned to the arena, or are left out from then on, or when another
/// extent of its pool found no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ExtentWord {
    /// See [`EntryState`].
    State = 0,
    /// The number of the arena in this file.
    Arena,
    /// The number of the pool.
    Pool,
    /// The first address.
    Base,
    /// The bytes from there on.
    Bytes,
}

/// The words of the entry of an allocation point or another buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum PointWord {
    /// See [`EntryState`].
    State = 0,
    /// The number of its arena in this file.
    Arena,
    /// The number of its pool.
    Pool,
    /// The number by which events name the buffer; zero for all buffers that have none, because the number would
    /// show an address that is left out.
    Buffer,
    /// How often it was filled.
    Fills,
    /// The bytes of these fills.
    Filled,
    /// How often it was emptied.
    Empties,
    /// The bytes that were returned then.
    Emptied,
    /// The bytes of the last fill: the room that it had then.
    Room,
    /// Trips that its owner observed.
    Trips,
    /// How often it was flipped.
    Flips,
    /// Commits that failed.
    CommitsFailed,
    /// Frames pushed.
    FramesPushed,
    /// Frames popped.
    FramesPopped,
}

/// The number of the arena and of the pool in the first entry of the table of samples: that of
/// all pools that found no entry of their own.
pub const OTHER_POOLS: u64 = u64::MAX;

/// The words of the entry of a pool's samples: sums over all that were ever reported, whatever became of
/// the events. Sums of estimates are numbers of floating point, as their 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum SampleWord {
    /// See [`EntryState`].
    State = 0,
    /// The number of the arena in this file; zero for none. [`OTHER_POOLS`] in the first entry.
    Arena,
    /// The number of the pool; zero for the program's global allocator, or if it is not known.
    /// [`OTHER_POOLS`] in the first entry.
    Pool,
    /// How many objects were sampled.
    Samples,
    /// The bytes that they stand for, in floating point.
    Bytes,
    /// The objects that they stand for, in floating point.
    Objects,
    /// The variance of the bytes, in floating point.
    Variance,
    /// The failed trials that they stand for.
    Trials,
    /// The bytes from each byte drawn to the end of its object.
    Rest,
    /// The mean of the first sample, in bytes; zero before there is one.
    Mean,
    /// How many samples had another mean.
    OtherMeans,
    /// The bytes of the sampled objects themselves.
    Sampled,
    /// The name of the pool's class, a text of [`TABLE_TEXT_WORDS`].
    Class = 12,
}

/// The words of the entry of the steady-state contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum PhaseWord {
    /// See [`EntryState`]. It is [`EntryState::Making`] while the phase changes.
    State = 0,
    /// How often the phase changed.
    Changes,
    /// When it changed last, in ticks of the file's clock.
    Time,
    /// The name of the phase, a text of [`TABLE_TEXT_WORDS`].
    Phase,
    /// Amnesties that began.
    AmnestiesBegun = 8,
    /// Amnesties that ended.
    AmnestiesEnded,
}

/// The most classes of events that tallies distinguish.
pub const MAX_TALLY_CLASSES: usize = 16;

/// The most threads whose tallies a reader reads.
pub const MAX_TALLY_THREADS: usize = 4_096;

/// The most detectors that tallies distinguish.
pub const MAX_TALLY_DETECTORS: usize = 16;

/// The words of the one entry of tallies of the steady-state contract: first the names of the classes of events and of the
/// detectors, then the words of each thread. A thread has [`TallyWord::ThreadWords`], which say who it is
/// ([`TallyThreadWord`]), and then as many [`TallyNumber`]s as there are classes, times [`TALLY_NUMBERS`]: first one kind
/// of number of all classes, then the next kind of all classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum TallyWord {
    /// See [`EntryState`]. It is [`EntryState::Live`] from the moment at which a contract has the words.
    State = 0,
    /// The number of classes, at most [`MAX_TALLY_CLASSES`].
    Classes,
    /// The number of detectors, at most [`MAX_TALLY_DETECTORS`].
    Detectors,
    /// The words of each thread before its numbers, [`TALLY_THREAD_WORDS`]. Zero in version 1 of the format, whose
    /// threads begin at [`TallyWord::DetectorNames`] and have numbers only.
    ThreadWords,
    /// The number of threads that the contract has places for.
    Places,
    /// The names of the classes, each a text of [`TABLE_TEXT_WORDS`].
    Names = 8,
    /// The names of the detectors, each a text of [`TABLE_TEXT_WORDS`].
    DetectorNames = 8 + MAX_TALLY_CLASSES * TABLE_TEXT_WORDS,
    /// The words of the first thread.
    Threads = 8 + (MAX_TALLY_CLASSES + MAX_TALLY_DETECTORS) * TABLE_TEXT_WORDS,
}

/// How many words say who a thread is.
pub const TALLY_THREAD_WORDS: usize = 16;

/// The words that say who a thread of the contract is. Classes and detectors are sets: bit `i` is the one with index `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum TallyThreadWord {
    /// Bit 0: a thread registered; bit 1: as a hot one; bit 2: it was armed; bit 3: it has left; bit 4: in the steady
    /// state or later, as a hot one that was never armed.
    State = 0,
    /// The classes that it is held to.
    Held,
    /// The detectors that it asked for.
    Wanted,
    /// The detectors that are live for it.
    Live,
    /// How many of its violations made no record, and so no event. They are counted.
    RecordsLost,
    /// How many events came while another one was written down, and are not counted.
    Overlapped,
    /// Its name, a text.
    Name = 8,
}

/// What is counted of one class of events of one thread, since it registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum TallyNumber {
    /// The number of events.
    Count = 0,
    /// Their bytes.
    Bytes,
    /// The number of events that an amnesty excused; part of the count.
    Excused,
    /// Their bytes.
    ExcusedBytes,
    /// The number of events while the thread was armed; part of the count.
    ArmedCount,
    /// Their bytes.
    ArmedBytes,
    /// The number of these that an amnesty excused.
    ArmedExcused,
    /// Their bytes.
    ArmedExcusedBytes,
}

/// How many [`TallyNumber`]s there are.
pub const TALLY_NUMBERS: usize = TallyNumber::ArmedExcusedBytes as usize + 1;
