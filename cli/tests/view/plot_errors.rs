//! What `tripoint plot` cannot draw (design/cli.md `.plot.empty`).

use std::path::Path;

use crate::plot::{Drawn, END, capture};
use crate::recorded::{Hot, Recorded};
use crate::run::{Ran, run};

fn plot(target: &Path, out: &str, arguments: &[&str]) -> Ran {
    run(&[&["plot", "-o", out], arguments].concat(), target)
}

#[test]
fn a_picture_of_nothing_says_so_in_words_and_by_its_status() {
    let recorded = Recorded::empty();
    for (kind, why) in [
        ("footprint", "the recording has no sizes of arenas and pools"),
        ("fragmentation", "the program noted no sizes of pools"),
        ("map", "the recording has no addresses of pools"),
        ("fills", "the recording has no fills"),
        ("latency", "the recording has no stops of heaps"),
        ("flame", "the recording has no samples"),
        ("collections", "the recording has no collections"),
    ] {
        let drawn = Drawn::of(&recorded.path(), &["--picture", kind]);
        assert_eq!(drawn.ran.status, Some(2), "{kind}");
        assert!(drawn.ran.err.contains(why), "{kind}: {}", drawn.ran.err);
        assert!(drawn.texts().iter().any(|text| text.starts_with(why)), "{kind}: {:?}", drawn.texts());
    }
    let folder = recorded.folder().join("none/");
    let ran = plot(&recorded.path(), folder.to_str().unwrap(), &[]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.contains("nothing that any picture shows"), "{}", ran.err);
}

#[test]
fn a_folder_leaves_out_pictures_of_nothing() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let folder = recorded.folder().join("pictures/");
    let ran = plot(&recorded.path(), folder.to_str().unwrap(), &[]);
    assert_eq!(ran.status, Some(0), "{}", ran.err);
    assert!(folder.join("fills.svg").exists() && !folder.join("collections.svg").exists());
}

#[test]
fn one_moment_and_equal_values_are_drawn() {
    let recorded = Recorded::empty();
    let line = |at: u64, size: u64| {
        format!("{{\"ring\":0,\"tid\":1,\"ns\":{at},\"event\":\"grow\",\"arena\":1,\"size\":{size}}}")
    };
    for lines in
        [vec![line(5, 4096)], vec![line(5, 4096), line(5, 0)], vec![line(0, 1), line(u64::MAX, u64::MAX)]]
    {
        let path = capture(&recorded, lines.into_iter(), END);
        let drawn = Drawn::of(&path, &[]);
        assert_eq!(drawn.ran.status, Some(0), "{}", drawn.ran.err);
        assert!(!drawn.svg.contains("NaN") && drawn.texts().len() > 5);
    }
}

/// (design/cli.md `.req.readable`)
#[test]
fn a_bad_recording_is_drawn_as_far_as_it_goes() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let garbage = recorded.beside("garbage", b"this is no recording");
    let out = recorded.folder().join("out.svg");
    let ran = plot(&garbage, out.to_str().unwrap(), &[]);
    assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""));
    assert!(ran.err.contains("garbage") && !out.exists(), "{}", ran.err);

    let bytes = recorded.bytes();
    let cut = recorded.beside("cut", &bytes[..bytes.len() - 4096]);
    let drawn = Drawn::of(&cut, &["--picture", "fills"]);
    assert_eq!(drawn.ran.status, Some(2));
    assert!(drawn.ran.err.contains("ends after"), "{}", drawn.ran.err);
    assert!(drawn.texts().iter().any(|text| text.starts_with("the file ends after")), "{:?}", drawn.texts());
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_another_is_replaced() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    for out in ["/none/out.svg", "/dev/full", "/dev/null/out.svg"] {
        let ran = plot(&recorded.path(), out, &["--form", "svg"]);
        assert_eq!(ran.status, Some(2), "{out}");
        assert!(ran.err.contains(out), "{out}: {}", ran.err);
    }
    use std::os::unix::fs::FileTypeExt as _;
    assert!(std::fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    let there = recorded.beside("there.svg", b"before");
    assert_eq!(plot(&recorded.path(), there.to_str().unwrap(), &[]).status, Some(0));
    assert!(std::fs::read_to_string(&there).unwrap().starts_with("<svg"));
}

#[test]
fn bad_arguments_have_status_2() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    for arguments in
        [&["--picture", "nothing"][..], &["--width", "1"], &["--height", "99999"], &["--theme", "blue"]]
    {
        assert_eq!(plot(&recorded.path(), "/dev/null", arguments).status, Some(2), "{arguments:?}");
    }
    let ran = plot(&recorded.path(), recorded.folder().join("out.jpeg").to_str().unwrap(), &[]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.err.contains(".svg or .png"), "{}", ran.err);
}
