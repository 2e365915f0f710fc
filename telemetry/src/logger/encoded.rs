//! An event as the words of a record.

#![forbid(unsafe_code)]

use tripoint_core::{Addr, Event};

use crate::format::{EventKind, HEAD_WORDS, Head, MAX_RECORD_WORDS, RecordKind};
use crate::recorder::written::{self, Addresses, Way};
use crate::ring::record_ring::Record;

/// The words of a record.
#[derive(Debug)]
pub(super) struct Encoded {
    words: [u64; MAX_RECORD_WORDS],
    len: usize,
}

impl Encoded {
    /// A record without a time. Handles are addresses.
    pub(super) fn new(event: &Event, site: &[usize], thread: u32, serial: u64) -> Self {
        let mut encoded = Self { words: [0; MAX_RECORD_WORDS], len: HEAD_WORDS };
        let way = ToWords { encoded: &mut encoded, site, thread, serial };
        written::any(1, event, |handle: Addr| handle.get() as u64, way);
        encoded
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

/// The way that an event takes to its words.
struct ToWords<'e> {
    encoded: &'e mut Encoded,
    site: &'e [usize],
    thread: u32,
    serial: u64,
}

impl Way for ToWords<'_> {
    fn write<const FIELDS: usize, const TEXTS: usize>(
        self,
        kind: EventKind,
        texts: [&str; TEXTS],
        fields: impl FnOnce(Addresses) -> [u64; FIELDS],
    ) -> bool {
        let Self { encoded, site, thread, serial } = self;
        let fields = fields(Addresses { left_out: false });
        let record = Record { kind, without_addresses: false, thread, fields, texts, site };
        let words = record.words();
        let kind = RecordKind::Event(kind);
        // At most MAX_RECORD_WORDS.
        let head = Head { kind, without_addresses: false, words: words as u16, thread, serial, time: 0 };
        let all = head.to_words().into_iter().chain(fields).chain(record.body());
        encoded.words.iter_mut().zip(all).for_each(|(place, word)| *place = word);
        encoded.len = words;
        true
    }
}
