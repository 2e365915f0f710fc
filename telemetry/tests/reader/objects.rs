//! The objects that a process had loaded, by which its addresses are named.

use core::ops::Range;

use serde_json::{Value, json};
use tripoint_oracle::NaiveFile;
use tripoint_telemetry::format::{
    EntryState, MAX_BUILD_ID_BYTES, MAX_PATH_BYTES, OBJECT_WORDS, ObjectWord, words_of_text,
};
use tripoint_telemetry::reader::Reader;

/// The entry of an object that was loaded.
pub(crate) fn object_entry(
    base: u64,
    addresses: Range<u64>,
    build_id: &[u8],
    path: &str,
) -> [u64; OBJECT_WORDS] {
    let mut entry = [0; OBJECT_WORDS];
    for (word, value) in [
        (ObjectWord::State, EntryState::Live as u64),
        (ObjectWord::Base, base),
        (ObjectWord::Start, addresses.start),
        (ObjectWord::End, addresses.end),
        (ObjectWord::BuildIdBytes, build_id.len() as u64),
    ] {
        entry[word as usize] = value;
    }
    for (to, bytes) in entry[ObjectWord::BuildId as usize..].iter_mut().zip(build_id.chunks(8)) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        *to = u64::from_ne_bytes(word);
    }
    let path = words_of_text(path, MAX_PATH_BYTES);
    entry[ObjectWord::Path as usize..].iter_mut().zip(path).for_each(|(to, word)| *to = word);
    entry
}

#[test]
fn a_frame_is_placed_in_the_object_that_was_loaded_last() {
    let mut file = NaiveFile::new(1, 2);
    file.objects = vec![
        object_entry(0x1000, 0x1100..0x3000, &[0xab; 20], "/bin/program"),
        object_entry(0x7000, 0x7000..0x9000, &[], "/lib/removed.so"),
        object_entry(0x6000, 0x8000..0xa000, &[1], "/lib/a\x1b[31m name"),
        object_entry(u64::MAX, 0..u64::MAX, &[0; 40], &"p".repeat(999)),
        [0; OBJECT_WORDS],
    ];
    // What has no entry's state is no entry, and an identifier is not longer than its place.
    file.objects[3][ObjectWord::State as usize] = 77;
    file.objects[2][ObjectWord::BuildIdBytes as usize] = u64::MAX;
    let read = |file: &NaiveFile| Reader::from_bytes(file.bytes()).unwrap().objects().unwrap();
    let objects = read(&file);
    assert_eq!((objects.entries.len(), objects.unsteady), (3, 1));
    let shown = |frame| objects.place(frame).map(|place| place.to_string());
    assert_eq!(shown(0x1101).as_deref(), Some("/bin/program+0x100"));
    assert_eq!(
        shown(0x3000).as_deref(),
        Some("/bin/program+0x1fff"),
        "the call is before the return address"
    );
    assert_eq!(shown(0x8000).as_deref(), Some("/lib/removed.so+0xfff"));
    assert_eq!(shown(0x8001).as_deref(), Some("/lib/a\\u{1b}[31m name+0x2000"));
    assert_eq!([0, 1, 0x1100, 0x3001, u64::MAX].map(shown), [const { None }; 5]);
    assert_eq!(objects.entries[0].build_id_text().to_string(), "ab".repeat(20));
    assert_eq!(objects.entries[2].build_id.len(), MAX_BUILD_ID_BYTES);
    let mut line = String::new();
    objects.entries[1].write_json(&mut line).unwrap();
    let expected = json!({
        "object": "/lib/removed.so", "build_id": "", "base": "0x7000", "start": "0x7000", "end": "0x9000",
    });
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);

    // Of a path that is too long, the end is missing, and that is said.
    file.objects[3][ObjectWord::State as usize] = EntryState::Live as u64;
    let objects = read(&file);
    assert!(objects.entries[3].is_path_cut && objects.entries[3].to_string().ends_with("p…"));
    assert_eq!(objects.place(1).unwrap().offset, 1, "base and frame are as they are");
}
