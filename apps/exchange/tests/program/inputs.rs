//! Ways in: files, pipes, compressed or not, one and several (design/exchange.md `.input`).

use decompress::compress::{gzip, zstd};

use super::*;

pub(super) fn small_day() -> Vec<u8> {
    exchange(&[&["day"], &SMALL[..]].concat()).stdout
}

/// The sum of all books, of a run that went well.
fn sum(inputs: &[&str]) -> String {
    let ran = exchange(&[&["run", "--room", "10000", "--warmup", "20000", "--input"], inputs].concat());
    assert!(ran.status.success(), "{inputs:?}: {}", text(&ran.stderr));
    value(&text(&ran.stdout), "hash of all books")
}

/// Where the message begins that has this number, from zero.
fn offset_of(day: &[u8], number: usize) -> usize {
    let mut at = 0;
    for _ in 0..number {
        at += 2 + usize::from(u16::from_be_bytes([day[at], day[at + 1]]));
    }
    at
}

#[test]
fn compressed_files_and_standard_inputs_have_the_same_books() {
    let day = small_day();
    let plain = sum(&[&file("plain", &day)]);
    assert_eq!(sum(&[&file("gzip", gzip(&day))]), plain);
    assert_eq!(sum(&[&file("zstd", zstd(&day))]), plain);
    for bytes in [gzip(&day), zstd(&day)] {
        let ran = run_input(&bytes, &[]);
        assert_eq!(value(&text(&ran.stdout), "hash of all books"), plain);
    }
}

#[cfg(unix)]
#[test]
fn named_pipes_are_inputs() {
    let day = small_day();
    let plain = sum(&[&file("whole", &day)]);
    let (first, second) = day.split_at(offset_of(&day, 20_000));
    let pipes = [zstd(first), second.to_vec()].map(|bytes| {
        let path = scratch(&format!("pipe-{}", bytes.len()));
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the name ends with a zero byte and lives.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        // Opening it waits for the program, or for the end of this test.
        let to = path.clone();
        (path, std::thread::spawn(move || std::fs::write(to, bytes)))
    });
    let paths = pipes.each_ref().map(|(path, _)| path.to_str().unwrap());
    assert_eq!(sum(&paths), plain);
    for (path, writer) in pipes {
        writer.join().unwrap().unwrap();
        std::fs::remove_file(path).unwrap();
    }
}

/// (design/exchange.md `.req.damage`)
#[test]
fn several_files_are_one_day_and_a_failure_has_the_place_in_its_own() {
    let day = small_day();
    let (first, second) = day.split_at(offset_of(&day, 30_000));
    let first = file("first", gzip(first));
    assert_eq!(sum(&[&first, &file("second", second)]), sum(&[&file("both", &day)]));
    // The tenth message of the second file gets a type that there is not.
    let mut damaged = second.to_vec();
    let at = offset_of(second, 9);
    damaged[at + 2] = b'z';
    let damaged = file("damaged", damaged);
    let ran = exchange(&["run", "--room", "10000", "--input", &first, &damaged]);
    assert_eq!(ran.status.code(), Some(1));
    let expected = format!("damaged: message 10 at byte {at}: ITCH 5.0 has no messages of type 'z'");
    assert!(text(&ran.stderr).contains(&expected), "{}", text(&ran.stderr));
    assert_eq!(value(&text(&ran.stdout), "messages"), "30,009");
    // A file that is not there is named when its turn comes, and what came before is reported.
    let ran = exchange(&["run", "--room", "10000", "--input", &first, "no/such/day"]);
    assert!(text(&ran.stderr).contains("no/such/day: "), "{}", text(&ran.stderr));
    assert_eq!(value(&text(&ran.stdout), "messages"), "30,000");
}

#[test]
fn a_cut_of_zstd_is_named_and_what_came_before_is_reported() {
    let zipped = zstd(&small_day());
    let ran = run_input(&zipped[..zipped.len() / 2], &[]);
    assert_eq!(ran.status.code(), Some(1));
    assert!(text(&ran.stderr).contains("the zstd stream is cut off here"), "{}", text(&ran.stderr));
    assert!(text(&ran.stdout).contains("live orders"));
}

#[test]
fn other_forms_are_named_with_what_to_do() {
    for (begin, advice) in [
        (&b"\xfd7zXZ\x00 and more"[..], "compressed by xz: `xzcat FILE | exchange run --input -`"),
        (b"PK\x03\x04 and more", "compressed by zip: `unzip -p FILE |"),
        (b"\xd4\xc3\xb2\xa1 and more", "extract the payloads of UDP"),
        (b"{\"e\":\"depthUpdate\"}", "order-book --input FILE"),
        (b"time,type,order id,size,price,direction", "tail -n +2 FILE"),
        (b"what is this?", "say which with --form"),
    ] {
        let ran = run_input(begin, &[]);
        assert_eq!(ran.status.code(), Some(1));
        assert!(text(&ran.stderr).contains(advice), "{advice}: {}", text(&ran.stderr));
    }
    let asked = run_input(b"what is this?", &["--form", "lobster"]);
    assert!(text(&asked.stderr).contains("line 1: 1 fields"), "{}", text(&asked.stderr));
}
