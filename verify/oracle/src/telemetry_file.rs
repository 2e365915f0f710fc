//! A naive writer of telemetry files: it keeps all that was ever written and makes bytes of it when
//! asked, so that readers have something to be compared with that knows the truth.

use tripoint_telemetry::format::{
    BLOCK_WORDS, BYTE_ORDER, CLOCK_RECORD_WORDS, ClockKind, FileState, HEAD_WORDS, HEADER_WORDS, Head,
    HeaderWord, MAGIC, OBJECT_WORDS, PAGE_WORDS, RING_HEAD_WORDS, RecordKind, RingState, RingWord,
    SECTION_WORDS, SectionKind, SectionWord, TABLE_ENTRY_WORDS, TallyWord, VERSION, WORD_BYTES,
    words_left_in_block,
};

/// An event as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaiveEvent {
    /// Its number in the ring.
    pub serial: u64,
    /// The number of its kind.
    pub kind: u16,
    /// Its time.
    pub time: u64,
    /// The words after the head.
    pub fields: Vec<u64>,
    /// Where its record begins.
    position: u64,
}

/// A ring and all that was ever written to it.
#[derive(Clone, Debug)]
pub struct NaiveRing {
    log: Vec<u64>,
    blocks: usize,
    /// The thread that has the ring.
    pub thread: u32,
    /// All events ever written.
    pub events: Vec<NaiveEvent>,
    /// The words of a record that its writer has begun and not completed.
    pub begun: u64,
}

impl NaiveRing {
    /// An empty ring of `blocks` blocks, a power of two and two at least.
    #[must_use]
    pub const fn new(thread: u32, blocks: usize) -> Self {
        Self { log: Vec::new(), blocks, thread, events: Vec::new(), begun: 0 }
    }

    fn position(&self) -> u64 {
        self.log.len() as u64
    }

    fn push(&mut self, kind: RecordKind, time: u64, fields: &[u64]) {
        let words = u16::try_from(HEAD_WORDS + fields.len()).expect("a short record");
        let (thread, serial) = (self.thread, self.events.len() as u64);
        let head = Head { kind, without_addresses: false, words, thread, serial, time };
        self.log.extend(head.to_words());
        self.log.extend(fields);
    }

    /// Writes an event. The clock that blocks begin with runs at two ticks a nanosecond.
    pub fn write(&mut self, kind: u16, time: u64, fields: &[u64]) {
        let words = HEAD_WORDS + fields.len();
        assert!(words <= BLOCK_WORDS - CLOCK_RECORD_WORDS, "it would not fit in a block");
        let left = words_left_in_block(self.position());
        if words > left {
            // The first word of a head is enough.
            let words = u16::try_from(left).expect("a block is short");
            let head = Head {
                kind: RecordKind::Padding,
                without_addresses: false,
                words,
                thread: 0,
                serial: 0,
                time: 0,
            };
            let rest = left - 1;
            self.log.push(head.to_words()[0]);
            self.log.extend(core::iter::repeat_n(u64::MAX, rest));
        }
        if self.position().is_multiple_of(BLOCK_WORDS as u64) {
            self.push(RecordKind::Clock, time, &[time / 2]);
        }
        let event = NaiveEvent {
            serial: self.events.len() as u64,
            kind,
            time,
            fields: fields.to_vec(),
            position: self.position(),
        };
        self.push(RecordKind::from_number(kind), time, fields);
        self.events.push(event);
    }

    fn capacity(&self) -> usize {
        self.blocks * BLOCK_WORDS
    }

    /// The events that a reader finds that comes only now: those in blocks of which nothing was
    /// overwritten.
    #[must_use]
    pub fn readable(&self) -> &[NaiveEvent] {
        let kept_from = self.position().saturating_sub(self.capacity() as u64);
        let first = kept_from.next_multiple_of(BLOCK_WORDS as u64);
        &self.events[self.events.partition_point(|event| event.position < first)..]
    }

    fn words(&self) -> Vec<u64> {
        let mut words = vec![0; RING_HEAD_WORDS + self.capacity()];
        for (position, &word) in self.log.iter().enumerate() {
            words[RING_HEAD_WORDS + position % self.capacity()] = word;
        }
        words[RingWord::Intent as usize] = self.position() + self.begun;
        words[RingWord::Tail as usize] = self.position();
        words[RingWord::Serial as usize] = self.events.len() as u64;
        words[RingWord::State as usize] = RingState::Claimed as u64;
        words[RingWord::Thread as usize] = u64::from(self.thread);
        words[RingWord::Claims as usize] = 1;
        let name = format!("thread {}", self.thread);
        for (to, bytes) in words[RingWord::Name as usize..].iter_mut().zip(name.as_bytes().chunks(WORD_BYTES))
        {
            let mut word = [0; WORD_BYTES];
            word[..bytes.len()].copy_from_slice(bytes);
            *to = u64::from_ne_bytes(word);
        }
        words
    }
}

/// A telemetry file.
#[derive(Clone, Debug)]
pub struct NaiveFile {
    /// Its rings, all of the same size.
    pub rings: Vec<NaiveRing>,
    /// Its lasting rings, all of the same size; none for a file without.
    pub lasting: Vec<NaiveRing>,
    /// The tables of counters, in the order of their kinds; the last two are of samples and of extents.
    pub tables: [Vec<[u64; TABLE_ENTRY_WORDS]>; 6],
    /// The words of the tallies; none for a file without.
    pub tallies: Vec<u64>,
    /// The table of objects that are loaded.
    pub objects: Vec<[u64; OBJECT_WORDS]>,
    /// The process that writes.
    pub process: u64,
}

impl NaiveFile {
    /// A file with empty rings, and without counters.
    #[must_use]
    pub fn new(rings: u32, blocks: usize) -> Self {
        let rings = (0..rings).map(|ring| NaiveRing::new(100 + ring, blocks)).collect();
        let (tallies, objects, lasting) = (Vec::new(), Vec::new(), Vec::new());
        Self { rings, lasting, tables: Default::default(), tallies, objects, process: 4_711 }
    }

    /// The words of the file.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let mut words = vec![0; HEADER_WORDS];
        let kinds = [
            SectionKind::Arenas,
            SectionKind::Pools,
            SectionKind::Points,
            SectionKind::Phase,
            SectionKind::Samples,
            SectionKind::Extents,
        ];
        let mut sections: Vec<_> = kinds
            .into_iter()
            .zip(&self.tables)
            .map(|(kind, table)| (kind, table.iter().map(|entry| entry.to_vec()).collect::<Vec<_>>()))
            .collect();
        let tallies = Some(self.tallies.clone()).filter(|words| !words.is_empty());
        sections.push((SectionKind::Tallies, tallies.into_iter().collect()));
        sections.push((SectionKind::Objects, self.objects.iter().map(|entry| entry.to_vec()).collect()));
        let rings = |rings: &[NaiveRing]| rings.iter().map(NaiveRing::words).collect();
        sections.push((SectionKind::LastingRings, rings(&self.lasting)));
        sections.push((SectionKind::Rings, rings(&self.rings)));
        for (index, (kind, entries)) in sections.iter().enumerate() {
            words.resize(words.len().next_multiple_of(PAGE_WORDS), 0);
            let least = match kind {
                SectionKind::Tallies => TallyWord::Threads as usize,
                SectionKind::Objects => OBJECT_WORDS,
                SectionKind::LastingRings => RING_HEAD_WORDS + 2 * BLOCK_WORDS,
                _ => TABLE_ENTRY_WORDS,
            };
            let entry_words = entries.first().map_or(least, Vec::len);
            let at = HeaderWord::SectionTable as usize + index * SECTION_WORDS;
            words[at + SectionWord::Kind as usize] = *kind as u64;
            words[at + SectionWord::Offset as usize] = (words.len() * WORD_BYTES) as u64;
            words[at + SectionWord::Entries as usize] = entries.len() as u64;
            words[at + SectionWord::EntryBytes as usize] = (entry_words * WORD_BYTES) as u64;
            words[at + SectionWord::LeftOut as usize] = index as u64;
            words.extend(entries.iter().flatten());
        }
        let bytes = (words.len() * WORD_BYTES) as u64;
        for (word, value) in [
            (HeaderWord::Magic, u64::from_ne_bytes(MAGIC)),
            (HeaderWord::Version, VERSION),
            (HeaderWord::ByteOrder, BYTE_ORDER),
            (HeaderWord::State, FileState::Open as u64),
            (HeaderWord::Process, self.process),
            (HeaderWord::FileBytes, bytes),
            (HeaderWord::PointerBytes, 8),
            (HeaderWord::Clock, ClockKind::Ticks as u64),
            (HeaderWord::SpanTicks, 2_000),
            (HeaderWord::SpanNanoseconds, 1_000),
            (HeaderWord::Sections, sections.len() as u64),
        ] {
            words[word as usize] = value;
        }
        words
    }

    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.words().into_iter().flat_map(u64::to_ne_bytes).collect()
    }
}
