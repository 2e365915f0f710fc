//! What a contract recorded of its threads, found by its magic (design/contract.md `.core`). It is there without
//! telemetry, debug information and symbols.

use std::collections::HashSet;

use serde::{Serialize, Serializer};
use tripoint_contract::{RecordKind, ViolationClass};

use crate::core_file::dump::CoreFile;
use crate::core_file::layout::{HEAD, Layout};
use crate::memory::Memory as _;

/// What a contract's layout begins with (contract/src/thread/layout.rs).
const MAGIC: &[u8] = b"tripointcontract";

/// No contract has more threads; a list of more is one that goes round.
const MAX_THREADS: usize = 1 << 16;

/// The longest name of a thread.
const MAX_NAME: u64 = 32;

/// A thread is registered in this state of its slot.
const REGISTERED: u64 = 2;

/// What the contracts of a process recorded.
#[derive(Debug, Default)]
pub(crate) struct Contract {
    pub(crate) threads: Vec<Thread>,
    /// What could not be read.
    pub(crate) faults: Vec<String>,
}

/// A thread that registered with a contract.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Thread {
    pub(crate) name: String,
    /// Whether it was registered at the end.
    pub(crate) is_live: bool,
    pub(crate) alarms: u64,
    /// Records for which there was no room.
    pub(crate) records_lost: u64,
    /// For each class that raised any, all alarms as one: the place is that of the last.
    pub(crate) alarm_of_class: Vec<Record>,
    /// In the order in which they were made.
    pub(crate) records: Vec<Record>,
}

/// An event, or alarms.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Record {
    pub(crate) kind: &'static str,
    pub(crate) class: &'static str,
    #[serde(skip)]
    serial: u64,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// The address that faulted, or the first argument of a system call; otherwise zero.
    #[serde(serialize_with = "as_hexadecimal")]
    pub(crate) address: u64,
    /// The number of the system call; otherwise zero.
    pub(crate) call: u64,
    /// In ns of the thread's clock.
    pub(crate) ns: u64,
    /// Return addresses, the innermost first.
    #[serde(skip)]
    pub(crate) site: Vec<u64>,
}

fn as_hexadecimal<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:#x}"))
}

impl CoreFile {
    /// What contracts recorded; nothing if there was none.
    pub(crate) fn contract(&self) -> Contract {
        let mut contract = Contract::default();
        let mut seen = HashSet::new();
        for at in self.magics(MAGIC) {
            let words = self.words(at + MAGIC.len() as u64, Layout::WORDS).unwrap_or_default();
            if !Layout::is_likely(&words) {
                continue;
            }
            match Layout::of(&words) {
                Ok(layout) => self.read_slots(&layout, &mut seen, &mut contract),
                Err(fault) => contract.faults.push(fault),
            }
        }
        contract
    }

    fn read_slots(&self, layout: &Layout, seen: &mut HashSet<u64>, contract: &mut Contract) {
        let mut slot = layout.last_slot;
        while slot != 0 && seen.len() < MAX_THREADS && seen.insert(slot) {
            match self.thread(layout, slot) {
                Some(thread) => contract.threads.push(thread),
                None => {
                    contract.faults.push(format!("the thread at {slot:#x} was not dumped, or not all of it"))
                }
            }
            let before = slot.checked_add(layout.slot_before).and_then(|place| self.words(place, 1));
            slot = before.map_or(0, |before| before[0]);
        }
    }

    fn thread(&self, layout: &Layout, slot: u64) -> Option<Thread> {
        let word = |base: u64, place: u64| Some(self.words(base.checked_add(place)?, 1)?[0]);
        let size = word(slot, layout.slot_name_size)?.min(MAX_NAME);
        let name = self.read(slot.checked_add(layout.slot_name)?, size as usize)?;
        let mut thread = Thread {
            name: String::from_utf8_lossy(&name).escape_debug().to_string(),
            is_live: word(slot, layout.slot_state)? == REGISTERED,
            alarms: word(slot, layout.slot_alarms)?,
            records_lost: 0,
            alarm_of_class: Vec::new(),
            records: Vec::new(),
        };
        let record = |place: u64| Some(Record::of(&self.words(place, layout.record_words as usize)?));
        for class in 0..ViolationClass::COUNT as u64 {
            let place = layout.account_size.checked_mul(class)?.checked_add(layout.slot_accounts)?;
            let account = slot.checked_add(place)?;
            if word(account, layout.alarm_version)? > 0 {
                let alarm = record(account.checked_add(layout.alarm_words)?)?;
                thread.alarm_of_class.push(Record { kind: RecordKind::Alarm.name(), ..alarm });
            }
        }
        for ring in [layout.slot_own, layout.slot_supervised] {
            let ring = slot.checked_add(ring)?;
            thread.records_lost = thread.records_lost.saturating_add(word(ring, layout.ring_lost)?);
            let tail = word(ring, layout.ring_tail)?;
            for number in tail.saturating_sub(layout.ring_records)..tail {
                let cell = number % layout.ring_records * layout.record_words * self.word() as u64;
                thread.records.push(record(ring.checked_add(layout.ring_cells)?.checked_add(cell)?)?);
            }
        }
        thread.records.sort_by_key(|record| record.serial);
        Some(thread)
    }
}

impl Record {
    /// The record in these words, of which there are at least [`HEAD`].
    fn of(words: &[u64]) -> Record {
        const KINDS: [RecordKind; 4] =
            [RecordKind::Violation, RecordKind::Excused, RecordKind::Rehearsed, RecordKind::Alarm];
        let name = |names: &[&'static str], index: u64| {
            usize::try_from(index).ok().and_then(|index| names.get(index).copied()).unwrap_or("?")
        };
        Record {
            kind: name(&KINDS.map(RecordKind::name), words[0]),
            class: name(&ViolationClass::NAMES, words[1]),
            serial: words[3],
            count: words[4],
            bytes: words[5],
            address: words[6],
            call: words[7],
            ns: words[9] << 32 | words[8],
            site: words[HEAD..].iter().copied().take_while(|address| *address != 0).collect(),
        }
    }
}
