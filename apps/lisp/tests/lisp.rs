//! The program of the small Lisp: its suite, as it is, with little memory and under stress, and what it says to programs
//! that are wrong (design/gc.md `.req.stress`).
#![cfg(not(miri))]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::{env, fs, process, thread};

static LISP: LazyLock<PathBuf> = LazyLock::new(|| PathBuf::from(env!("CARGO_BIN_EXE_lisp")));

/// Runs a file of the program with these arguments.
fn run_file(file: &str, arguments: &[&str]) -> Output {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    Command::new(&*LISP).args(arguments).arg(path).output().unwrap()
}

/// What is printed if this is typed.
fn talk(input: impl AsRef<[u8]> + Send, arguments: &[&str]) -> Vec<String> {
    let mut child = Command::new(&*LISP)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        // What it prints meanwhile is read.
        scope.spawn(move || stdin.write_all(input.as_ref()).unwrap());
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout).lines().map(str::to_owned).collect()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

/// All of a suite holds, and it has that many assertions.
fn assert_holds(output: &Output, assertions: usize) {
    let said = text(&output.stdout);
    let counts = said.lines().last().unwrap_or_default();
    println!("{counts}");
    assert!(output.status.success() && text(&output.stderr).is_empty(), "{said}{}", text(&output.stderr));
    let count = counts.strip_suffix(" assertions, 0 failed").and_then(|count| count.parse::<usize>().ok());
    assert!(count.is_some_and(|count| count >= assertions), "{counts}");
}

#[test]
fn the_suite_holds() {
    assert_holds(&run_file("suite.lisp", &[]), 290);
}

/// With so little memory, collections begin because memory is refused.
#[test]
fn the_suite_holds_in_little_memory() {
    assert_holds(&run_file("suite.lisp", &["--memory", "3000"]), 290);
}

/// Every allocation collects, which takes long without optimisation.
#[test]
fn the_suite_holds_under_stress() {
    if cfg!(debug_assertions) {
        tripoint_oracle::skipped!("the whole suite under stress, without optimisation");
    } else {
        assert_holds(&run_file("suite.lisp", &["--stress"]), 290);
    }
    assert_holds(&run_file("stress.lisp", &["--stress"]), 15);
}

/// The control: an interpreter that does not keep the value on top of its stack. Only stress shows it.
#[test]
fn a_root_that_is_forgotten_is_found_under_stress() {
    assert_holds(&run_file("stress.lisp", &["--forget"]), 15);
    let found = run_file("stress.lisp", &["--forget", "--stress"]);
    assert!(!found.status.success(), "{}", text(&found.stdout));
}

#[test]
fn values_are_printed() {
    let said =
        talk("1\n(+ 1\n 2) 'a\n\"b\"\n(define c 5) c ; comment\n(list 1 \"two\" 'three (vector)) car\n", &[]);
    assert_eq!(said, ["1", "3", "a", "\"b\"", "5", "(1 \"two\" three #())", "#<builtin car>"]);
}

#[test]
fn errors_say_where_and_why_and_the_rest_goes_on() {
    let program = "(car 5)\n\n(list 1\n  (cdr 'a))\n)\n(foo)\n\"open\n(1 . )\n5";
    let said = talk(program, &[]);
    let expected = [
        "error: line 1: car: 5 is no pair",
        "error: line 4: cdr: a is no pair",
        "error: line 5: a parenthesis is closed that was not opened",
        "error: line 6: foo is not defined",
        "error: line 7: the expression is not whole",
    ];
    assert_eq!(said, expected);
    assert_eq!(talk("(1 . )\n5\n", &[]).last().unwrap(), "5");

    let path = env::temp_dir().join(format!("tripoint-lisp-{}.lisp", process::id()));
    fs::write(&path, "(define (f n)\n  (+ 1\n     (car n)))\n(f 7)\n(display \"on\")\n(g\n").unwrap();
    let output = Command::new(&*LISP).arg(&path).output().unwrap();
    fs::remove_file(&path).unwrap();
    let said: Vec<_> =
        text(&output.stderr).lines().map(|line| line.split_once(".lisp:").unwrap().1).collect();
    assert_eq!(said, ["3: car: 7 is no pair", "6: the program ends in the expression that begins here"]);
    assert_eq!((text(&output.stdout), output.status.success()), ("on", false));
}

#[test]
fn programs_that_are_nested_too_deep_are_errors() {
    let text = format!("{}{}\n(+ 1 2)\n", "(".repeat(300_000), ")".repeat(300_000));
    assert_eq!(talk(&text, &[]), ["error: line 1: nested too deep: the stack is full", "3"]);
    let quoted = format!("(define a '{}{})\n(equal? a a)\na\n", "(".repeat(50_000), ")".repeat(50_000));
    let said = talk(&quoted, &[]);
    assert_eq!((said[0].as_str(), said[1].len(), said.len()), ("#t", 10_004, 2));
    let said = talk("(define (f n) (+ 1 (f n)))\n(f 0)\n(+ 1 2)\n", &[]);
    assert_eq!(said, ["error: line 1: nested too deep: the stack is full", "3"]);
}

/// Objects that hold themselves are printed and compared up to a bound, with memory for that alone.
#[test]
fn cycles_end() {
    let program = "
        (define (fill vector index) (if (< index 10000) (begin (vector-set! vector index vector) (fill vector (+ index 1))) 0))
        (define one (make-vector 10000 0))
        (fill one 0)
        one
        (define other (make-vector 10000 0))
        (fill other 0)
        (equal? one other)
        (define list (cons 1 2))
        (set-cdr! list list)
        list";
    let said = talk(program, &[]);
    assert_eq!(said.len(), 5, "{:?}", said.iter().map(String::len).collect::<Vec<_>>());
    assert!(said[1].starts_with("#(#(#(") && said[1].ends_with("..."));
    assert_eq!(said[3], "error: line 8: equal?: more than 1000000 parts");
    assert!(said[4].starts_with("(1 1 1 ") && said[4].ends_with("..."));
}

/// What is no text is reported, and what comes before and behind it counts.
#[test]
fn input_that_is_not_utf_8_is_an_error() {
    let said = talk(b"(+ 1 2)\n(list 1\n\xff)\n(+ 3 4)\n", &[]);
    assert_eq!(said, ["3", "error: line 3: a line that is not UTF-8", "7"]);

    let path = env::temp_dir().join(format!("tripoint-lisp-{}-bytes.lisp", process::id()));
    for (program, failures) in [
        (
            &b"(display 1)\n(display \"\xff\")\n(display 2)\n"[..],
            &["2: from here on the program is not UTF-8"][..],
        ),
        (
            b"(display 1)\n(car 1)\n\xff",
            &["2: car: 1 is no pair", "3: from here on the program is not UTF-8"],
        ),
    ] {
        fs::write(&path, program).unwrap();
        let output = Command::new(&*LISP).arg(&path).output().unwrap();
        let said = text(&output.stderr).lines().map(|line| line.split_once(".lisp:").unwrap().1);
        assert_eq!(said.collect::<Vec<_>>(), failures);
        assert_eq!((text(&output.stdout), output.status.success()), ("1", false));
    }
    fs::remove_file(&path).unwrap();
    let said = talk(format!("(read-line (open-input-file {:?}))", &*LISP), &[]);
    assert_eq!(said, ["error: line 1: read-line: a line that is not UTF-8"]);
}

/// A file that has no end is given up, and so is a line.
#[test]
#[cfg(target_os = "linux")]
fn input_that_has_no_end_is_an_error() {
    let zeros = || fs::File::open("/dev/zero").unwrap();
    let output = Command::new(&*LISP).stdin(zeros()).output().unwrap();
    assert_eq!(text(&output.stdout), "error: line 1: a line has more than 1048576 bytes\n");
    assert!(!output.status.success() && output.stderr.is_empty());
    let output = Command::new(&*LISP).args(["--memory", "3000", "/dev/zero"]).output().unwrap();
    assert_eq!(text(&output.stderr), "/dev/zero: larger than the memory of the heap (--memory)\n");
    assert!(!output.status.success());
    let said = talk("(read-line (open-input-file \"/dev/zero\"))\n(+ 1 2)\n", &[]);
    assert_eq!(said, ["error: line 1: read-line: a line has more than 1048576 bytes", "3"]);
}

/// An expression of many lines is read once: read anew with each line, these would be 10^11 characters.
#[test]
fn long_expressions_are_read_line_by_line() {
    let lines = 200_000;
    let numbers = (0..lines).map(|line| format!("{line}\n"));
    let program = format!("(define list '({}))\n(fold + 0 list)", numbers.collect::<String>());
    assert_eq!(talk(program, &[]), [(lines * (lines - 1) / 2).to_string()]);
    let text = format!("(string-length \"{}\")", "one \\\"line\\\"\n".repeat(lines));
    assert_eq!(talk(text, &[]), [(11 * lines).to_string()]);
    // A mark of escape at the end of a line, and one at the end of the input.
    assert_eq!(
        talk("(write \"a\\\nb\")\n5 \"c\\", &[]),
        ["\"a\\nb\"5", "error: line 3: the expression is not whole"]
    );
}

/// Strings and lists that are never closed take a bounded amount of memory.
#[test]
fn expressions_that_have_no_end_are_errors() {
    let said = talk(format!("\"{}", "a line\n".repeat(3 << 20)), &["--memory", "3000"]);
    assert!(said[0].ends_with("an object would be too large"), "{}", said[0]);
    let said = talk("(\n".repeat(300_000), &[]);
    assert!(said[0].ends_with("nested too deep: the stack is full"), "{}", said[0]);
}

#[test]
fn a_heap_that_is_full_is_an_error() {
    let program = "
        (define (grow list) (grow (cons list list)))
        (grow 1)
        (+ 1 2)
        (define (double text) (double (string-append text text)))
        (double \"text\")
        (make-vector 500000 0)
        (define kept (numbers-below 1000))
        (grow 1)
        (fold + 0 kept)";
    let said = talk(program, &["--memory", "2000"]);
    assert_eq!(said.len(), 6, "{said:?}");
    for line in [0, 2, 3, 4] {
        assert!(said[line].contains("out of memory"), "{said:?}");
    }
    assert_eq!((said[1].as_str(), said[5].as_str()), ("3", "499500"));
}

#[test]
fn files_are_written_and_read_and_dropped_ones_are_closed() {
    let path = env::temp_dir().join(format!("tripoint-lisp-{}.txt", process::id()));
    let program = format!(
        "(define path {path:?})
         (write-string \"one\\ntwo\" (open-output-file path))
         (gc)
         (list (open-ports) (dropped-ports))
         (define port (open-input-file path))
         (list (read-line port) (read-line port) (end? (read-line port)))
         (close-port port)
         (open-input-file \"/no/such/file\")"
    );
    let said = talk(&program, &[]);
    fs::remove_file(&path).unwrap();
    assert_eq!(said[1..4], ["(0 1)", "(\"one\" \"two\" #t)", "#t"]);
    assert!(said[4].starts_with("error: line 8: open-input-file: /no/such/file: "), "{said:?}");
}
