//! The reader of telemetry files on bytes of which nothing is true, and which change while they are
//! read: what the fuzz target and the property test do.

use core::fmt::Write;
use std::io;
use std::sync::{Mutex, OnceLock};

use tripoint_telemetry::format::{
    EventKind, FieldForm, HEADER_WORDS, MAX_RINGS, OBJECT_WORDS, TALLY_NUMBERS, TALLY_THREAD_WORDS,
    TallyWord, words_of_text,
};
use tripoint_telemetry::internal::Words;
use tripoint_telemetry::reader::{Item, Reader, Start};

use crate::telemetry_file::{NaiveFile, NaiveRing};

/// The most words of a change.
const CHANGE_BYTES: usize = 12;

/// The most items that a file as small as these can have in one look.
const ITEMS_MAX: usize = 100_000;

/// A small file with events of all kinds: one ring was lapped, one was not, and one is empty. Of the lasting rings, one
/// was lapped.
fn sound() -> &'static Vec<u8> {
    static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let mut file = NaiveFile::new(3, 2);
        file.lasting = (100..103).map(|thread| NaiveRing::new(thread, 2)).collect();
        let NaiveFile { rings, lasting, .. } = &mut file;
        let rings = rings.iter_mut().chain(lasting);
        for (ring, events) in rings.zip([200, 20, 0, 0, 200]) {
            for event in 0..events {
                let kind = EventKind::ALL[event % EventKind::ALL.len()];
                let mut fields = Vec::new();
                for field in kind.fields() {
                    match field.form {
                        FieldForm::Text => fields.extend(words_of_text(field.name, 64)),
                        FieldForm::Site => fields.extend([1, 2, 3]),
                        _ => fields.push(event as u64),
                    }
                }
                ring.write(kind as u16, 2 * event as u64, &fields);
            }
        }
        for table in &mut file.tables {
            table.push([2; 16]);
        }
        // Three classes, one detector, and two threads.
        let head =
            [2, 3, 1, TALLY_THREAD_WORDS as u64].into_iter().chain([0; TallyWord::Threads as usize - 4]);
        file.tallies = head.chain([7; 2 * (TALLY_THREAD_WORDS + 3 * TALLY_NUMBERS)]).collect();
        file.objects.push([2; OBJECT_WORDS]);
        file.bytes()
    })
}

/// Bytes that change whenever they were read a few times.
struct Changing {
    inner: Mutex<(Vec<u8>, Vec<u8>, u8)>,
}

impl Words for Changing {
    fn bytes(&self) -> io::Result<u64> {
        self.inner.lock().expect("no panic meanwhile").0.bytes()
    }

    fn read(&self, offset: u64, to: &mut [u64]) -> io::Result<()> {
        let mut inner = self.inner.lock().expect("no panic meanwhile");
        let (bytes, changes, reads) = &mut *inner;
        *reads = reads.wrapping_add(1);
        if *reads % 4 == 0 {
            let rest = changes.split_off(changes.len().min(CHANGE_BYTES));
            change(bytes, changes);
            *changes = rest;
        }
        bytes.read(offset, to)
    }
}

/// Makes the changes that `changes` says, of [`CHANGE_BYTES`] each: where, how, and with what.
fn change(bytes: &mut Vec<u8>, changes: &[u8]) {
    for change in changes.chunks_exact(CHANGE_BYTES) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]]));
        // Half of the changes are to words that say where things are.
        let place = if change[2] & 1 == 0 { place % (HEADER_WORDS * 8).min(512) } else { place };
        let value = &change[4..];
        match change[3] % 4 {
            0 => bytes.truncate(place),
            1 => {
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= 1 << (value[0] % 8);
                }
            }
            _ => {
                let at = place / 8 * 8;
                if let Some(word) = bytes.get_mut(at..at + 8) {
                    word.copy_from_slice(value);
                }
            }
        }
    }
}

/// Reads all of a file, and the counters and rings, in all forms.
///
/// # Panics
/// If the reader does more than a file of this size can have it do.
fn read_all(opened: Result<Reader, tripoint_telemetry::reader::OpenError>) {
    let mut text = String::new();
    let reader = match opened {
        Ok(reader) => reader,
        Err(error) => {
            write!(text, "{error} {error:?}").expect("a string takes all");
            let Some(reader) = error.into_readable() else { return };
            reader
        }
    };
    assert!(reader.rings() <= MAX_RINGS);
    for start in [Start::Oldest, Start::Now] {
        let mut events = reader.events(start);
        let mut items = 0;
        while let Some(item) = events.poll() {
            items += 1;
            assert!(items <= ITEMS_MAX, "a reader has to end");
            match item {
                Item::Gap(gap) => assert!(gap.count > 0),
                Item::Event(event) => write!(text, "{:?}", event.sample()).expect("a string takes all"),
            }
            text.clear();
            write!(text, "{item}").expect("a string takes all");
            assert!(!text.chars().any(char::is_control), "{text:?}");
            text.clear();
            item.write_json(&mut text).expect("a string takes all");
            assert!(!text.contains('\n'), "one line: {text}");
        }
    }
    for ring in 0..reader.rings() {
        write!(text, "{:?}", reader.ring(ring)).expect("a string takes all");
    }
    let objects = reader.objects();
    for object in objects.iter().flat_map(|objects| &objects.entries) {
        let place = objects.iter().find_map(|objects| objects.place(object.start.wrapping_add(1)));
        text.clear();
        write!(text, "{object} {}", object.build_id_text()).expect("a string takes all");
        place.iter().try_for_each(|place| write!(text, "{place}")).expect("a string takes all");
        assert!(!text.chars().any(char::is_control), "{text:?}");
        text.clear();
        object.write_json(&mut text).expect("a string takes all");
        assert!(!text.contains('\n'), "one line: {text}");
    }
    write!(text, "{:?} {:?} {reader:?}", reader.counters(), reader.state()).expect("a string takes all");
}

/// Reads what `data` makes of a telemetry file: bytes as they are, or a sound file with changes,
/// before it is read or meanwhile.
///
/// # Panics
/// If the reader panics, does not end, or shows what a terminal could obey.
pub fn telemetry_bytes(data: &[u8]) {
    let Some((&how, data)) = data.split_first() else { return };
    match how % 3 {
        0 => read_all(Reader::from_bytes(data.to_vec())),
        1 => {
            let mut bytes = sound().clone();
            change(&mut bytes, data);
            read_all(Reader::from_bytes(bytes));
        }
        _ => {
            let inner = Mutex::new((sound().clone(), data.to_vec(), 0));
            read_all(Reader::from_words(Changing { inner }));
        }
    }
}
