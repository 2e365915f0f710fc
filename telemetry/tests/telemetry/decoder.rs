//! The simplest reader: of words that do not change meanwhile, and that are as the format says.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;

use tripoint_oracle::forever;
use tripoint_telemetry::format::{
    BLOCK_WORDS, EventKind, FieldForm, HEAD_WORDS, Head, HeaderWord, MAX_TEXT_BYTES, RING_HEAD_WORDS,
    RecordKind, RingWord, SECTION_WORDS, SWITCHES_WORDS, SectionKind, SectionWord, text_from_words,
};
use tripoint_telemetry::{Clock, Room, Telemetry};

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) kind: EventKind,
    pub(crate) head: Head,
    /// The words after the head.
    pub(crate) fields: Vec<u64>,
    pub(crate) words: BTreeMap<&'static str, u64>,
    pub(crate) texts: BTreeMap<&'static str, String>,
    pub(crate) site: Vec<u64>,
}

/// A ring with the events that are in it.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    head: Vec<u64>,
    pub(crate) name: String,
    pub(crate) events: Vec<Found>,
}

impl Ring {
    pub(crate) fn word(&self, word: RingWord) -> u64 {
        self.head[word as usize]
    }
}

/// All words of a file.
pub(crate) struct File(Vec<u64>);

impl File {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks();
        assert!(rest.is_empty());
        Self(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }

    /// The file as other processes see it.
    #[cfg(unix)]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.iter().copied().flat_map(u64::to_ne_bytes).collect()
    }

    pub(crate) fn header(&self, word: HeaderWord) -> u64 {
        self.0[word as usize]
    }

    /// The entries of a section, and how many were left out.
    fn section(&self, kind: SectionKind) -> (Vec<&[u64]>, u64) {
        let table = self.0[HeaderWord::SectionTable as usize..].chunks(SECTION_WORDS);
        let sections = self.header(HeaderWord::Sections) as usize;
        let of_kind = |section: &&[u64]| section[SectionWord::Kind as usize] == kind as u64;
        let section = table.take(sections).find(of_kind).expect("the section is there");
        let [start, entries, words] = [SectionWord::Offset, SectionWord::Entries, SectionWord::EntryBytes]
            .map(|word| section[word as usize]);
        let all = &self.0[(start / 8) as usize..][..(entries * words / 8) as usize];
        (all.chunks((words / 8) as usize).collect(), section[SectionWord::LeftOut as usize])
    }

    /// All entries of a table, in use or not.
    pub(crate) fn entries(&self, kind: SectionKind) -> Vec<&[u64]> {
        self.section(kind).0
    }

    /// The entries of a table that are in use.
    pub(crate) fn live(&self, kind: SectionKind) -> Vec<&[u64]> {
        self.entries(kind).into_iter().filter(|entry| entry[0] % 256 == 2).collect()
    }

    pub(crate) fn left_out(&self, kind: SectionKind) -> u64 {
        self.section(kind).1
    }

    pub(crate) fn rings(&self) -> Vec<Ring> {
        self.section(SectionKind::Rings).0.into_iter().map(ring).collect()
    }

    pub(crate) fn lasting_rings(&self) -> Vec<Ring> {
        self.section(SectionKind::LastingRings).0.into_iter().map(ring).collect()
    }

    /// The first word of the first ring, and the words of each.
    fn rings_at(&self) -> (usize, usize) {
        let rings = self.section(SectionKind::Rings).0;
        (rings[0].as_ptr().addr().wrapping_sub(self.0.as_ptr().addr()) / 8, rings[0].len())
    }

    /// The events of all rings, each in its order.
    pub(crate) fn events(&self) -> Vec<Found> {
        self.rings().into_iter().flat_map(|ring| ring.events).collect()
    }
}

fn ring(words: &[u64]) -> Ring {
    let (head, blocks) = words.split_at(RING_HEAD_WORDS);
    let (tail, capacity) = (head[RingWord::Tail as usize], blocks.len() as u64);
    let mut position = tail.saturating_sub(capacity).next_multiple_of(BLOCK_WORDS as u64);
    let mut events: Vec<Found> = Vec::new();
    while position < tail {
        let words = &blocks[(position % capacity) as usize..];
        let size = usize::from(Head::from_words([words[0], 0, 0]).words);
        if let RecordKind::Event(kind) = Head::from_words([words[0], 0, 0]).kind {
            let found = event(kind, &words[..size]);
            assert!(events.last().is_none_or(|last| last.head.serial + 1 == found.head.serial), "a gap");
            events.push(found);
        }
        position += size as u64;
    }
    let name: Vec<u8> =
        head[RingWord::Name as usize..][..4].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = String::from_utf8(name).unwrap().trim_end_matches('\0').to_owned();
    Ring { head: head.to_vec(), name, events }
}

fn event(kind: EventKind, record: &[u64]) -> Found {
    let (head, mut rest) = record.split_at(HEAD_WORDS);
    let head = Head::from_words(head.try_into().unwrap());
    let mut found = Found {
        kind,
        head,
        fields: rest.to_vec(),
        words: BTreeMap::new(),
        texts: BTreeMap::new(),
        site: Vec::new(),
    };
    for field in kind.fields() {
        match field.form {
            FieldForm::Text => {
                let mut bytes = [0; MAX_TEXT_BYTES];
                let text = text_from_words(rest, &mut bytes).unwrap().0;
                rest = &rest[1 + text.len().div_ceil(8)..];
                found.texts.insert(field.name, String::from_utf8(text.to_vec()).unwrap());
            }
            FieldForm::Site => found.site = core::mem::take(&mut rest).to_vec(),
            _ => {
                found.words.insert(field.name, rest[0]);
                rest = &rest[1..];
            }
        }
    }
    assert!(rest.is_empty(), "{kind:?} has words left: {rest:?}");
    found
}

/// Telemetry in memory, and its words.
pub(crate) struct InMemory {
    pub(crate) telemetry: Telemetry,
    words: &'static [AtomicU64],
}

impl InMemory {
    pub(crate) fn new(room: &Room) -> Self {
        Self::with_clock(room, Clock::new(|| 42))
    }

    pub(crate) fn with_clock(room: &Room, clock: Clock) -> Self {
        let words = (0..room.bytes().unwrap() / 8).map(|_| AtomicU64::new(!0)).collect::<Box<[_]>>();
        Self::on(forever(words), room, clock)
    }

    fn on(words: &'static [AtomicU64], room: &Room, clock: Clock) -> Self {
        Self { telemetry: Telemetry::in_memory(words, room, clock).unwrap(), words }
    }

    /// The same, with a secret for the numbers of buffers.
    pub(crate) fn with_secret(self, secret: [u64; 2]) -> Self {
        Self { telemetry: self.telemetry.with_secret(secret), ..self }
    }

    /// Other telemetry in the same memory.
    pub(crate) fn again(self, room: &Room) -> Self {
        drop(self.telemetry);
        Self::on(self.words, room, Clock::new(|| 42))
    }

    /// A word of the head of a ring.
    pub(crate) fn word_of_ring(&self, ring: usize, word: RingWord) -> &'static AtomicU64 {
        let file = self.file();
        let (start, words) = file.rings_at();
        &self.words[SWITCHES_WORDS + start + ring * words + word as usize]
    }

    /// The words as they are now.
    pub(crate) fn file(&self) -> File {
        File(self.words[SWITCHES_WORDS..].iter().map(|word| word.load(Ordering::Relaxed)).collect())
    }
}
