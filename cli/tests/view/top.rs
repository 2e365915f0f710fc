//! `tripoint top`, in a real terminal: that of tmux (design/cli.md `.top`).
//!
//! Skipped, with a message, if there is no tmux.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use tripoint_core::{Event, EventHook};
use tripoint_telemetry::format::EventKind;
use tripoint_telemetry::reader::SwitchesFile;

use crate::recorded::{Hot, Recorded};
use crate::run::{run, tripoint};

/// How often a screen is looked at, with a pause, before what is missing will not come.
const LOOKS: u32 = 3000;

/// A terminal in which a shell runs the command, and then prints its status.
pub(crate) struct Screen {
    server: String,
}

impl Screen {
    /// `None` if there is no tmux.
    pub(crate) fn open(target: &Path, columns: u32) -> Option<Self> {
        Self::open_by("", target, columns)
    }

    /// The command is started by another, with its arguments, or by the shell if that is empty.
    fn open_by(starter: &str, target: &Path, columns: u32) -> Option<Self> {
        // A server that is ending would refuse a session.
        static SERVERS: AtomicUsize = AtomicUsize::new(0);
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let server = format!("tripoint-test-{}-{number}", std::process::id());
        let screen = Self { server };
        let columns = columns.to_string();
        let command = format!(
            "echo before; {starter} {} top {}; echo status $?; exec sh",
            env!("CARGO_BIN_EXE_tripoint"),
            target.display()
        );
        if Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_err() {
            tripoint_oracle::skipped!("there is no tmux");
            return None;
        }
        screen.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", "24", &command]);
        Some(screen)
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.server]).args(arguments).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "tmux {arguments:?}: {err}");
        out
    }

    fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The process of the command.
    fn child(&self) -> String {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        std::fs::read_to_string(children).unwrap().trim().to_owned()
    }

    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// The screen, once something holds of it.
    pub(crate) fn until(&self, mut holds: impl FnMut(&str) -> bool) -> String {
        for _ in 0..LOOKS {
            let text = self.text();
            if holds(&text) {
                return text;
            }
            // The pause is for the other processes; nothing depends on how long it is.
            thread::sleep(Duration::from_millis(20));
        }
        panic!("this was not to come:\n{}", self.text());
    }

    /// The screen, once what `plain` leaves of it was the same for several looks.
    pub(crate) fn settled(&self, plain: impl Fn(&str) -> String) -> String {
        let mut last = String::new();
        let mut same = 0;
        self.until(|text| {
            let text = plain(text);
            same = if text == last { same + 1 } else { 0 };
            last = text;
            same > 20
        })
    }

    fn shows(&self, expected: &str) -> String {
        self.until(|text| text.contains(expected))
    }

    /// The terminal is as it was before: the first screen, with a cursor, and keys are echoed (design/cli.md
    /// `.req.restored`).
    fn assert_is_restored(&self, status: u32) {
        let text = self.shows(&format!("status {status}"));
        assert!(text.contains("before") && !text.contains("Tab page"), "{text}");
        assert_eq!(self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]), "0 1\n");
        self.tmux(&["send-keys", "echo e''choed", "Enter"]);
        let text = self.shows("echoed");
        assert!(text.contains("echo e''choed"), "{text}");
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may be gone.
        let _ = Command::new("tmux").args(["-L", &self.server, "kill-server"]).stderr(Stdio::null()).status();
    }
}

#[test]
fn pages_show_what_is_recorded_and_keys_turn_and_sort_them() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let Some(screen) = Screen::open(&recorded.path(), 120) else { return };
    let text = screen.shows("violation: alloc of hot in");
    assert!(text.contains("phase Teardown") && text.contains("recorded::violates at"), "{text}");
    for (key, expected) in [
        ("2", "pools (bytes)"),
        ("3", "fills per second"),
        ("4", "allocates_while_steady"),
        ("Tab", "events"),
        ("1", "tallies"),
        ("BTab", "[x] thread attach"),
    ] {
        screen.press(key);
        screen.shows(expected);
    }
    screen.press("5");
    let first = |text: &str| {
        let row = text.lines().skip_while(|line| line.trim() != "events").nth(2);
        row.and_then(|row| row.split_whitespace().next()).map(str::to_owned)
    };
    screen.until(|text| first(text).as_deref() == Some("fill"));
    // By count, the greatest first.
    screen.press("s");
    screen.press("s");
    screen.until(|text| first(text).as_deref() == Some("sample"));
    screen.press("r");
    screen.until(|text| first(text).as_deref() == Some("fill"));
    screen.press("q");
    screen.assert_is_restored(0);
}

/// (design/cli.md `.output`)
#[test]
fn a_violation_is_red_unless_colours_are_unwanted() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    for (starter, is_red) in [("env -u NO_COLOR", true), ("env NO_COLOR=1", false)] {
        let Some(screen) = Screen::open_by(starter, &recorded.path(), 120) else { return };
        screen.shows("violation: alloc of hot in");
        // With the sequences for colours.
        let text = screen.tmux(&["capture-pane", "-p", "-e"]);
        assert_eq!(text.contains("[38;5;1m"), is_red, "{starter}: {text:?}");
        screen.press("q");
        screen.assert_is_restored(0);
    }
}

#[test]
fn what_happens_meanwhile_is_shown_in_any_size() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let Some(screen) = Screen::open(&recorded.path(), 100) else { return };
    screen.shows("no violation, nothing lost");
    screen.tmux(&["resize-window", "-x", "30", "-y", "8"]);
    screen.until(|text| text.lines().all(|line| line.chars().count() <= 30) && text.contains("no violation"));
    screen.tmux(&["resize-window", "-x", "1", "-y", "1"]);
    screen.tmux(&["resize-window", "-x", "140", "-y", "30"]);
    screen.shows("q end  Tab page");
    let hook = recorded.telemetry.arena_hook();
    screen.press("5");
    (0..7).for_each(|_| hook.event(Event::Grow { size: 4096 }));
    screen.press("2");
    // Seven pages, of an arena of its own.
    screen.shows("28672");
    screen.press("C-c");
    screen.assert_is_restored(0);
}

#[test]
fn switches_are_turned_in_the_process() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let switches = SwitchesFile::open(recorded.path()).unwrap();
    let kind = EventKind::ALL[0];
    switches.set_event(kind, true).unwrap();
    let Some(screen) = Screen::open(&recorded.path(), 80) else { return };
    screen.shows("no violation");
    screen.press("6");
    screen.shows(&format!("[x] {}", kind.name()));
    screen.press("Space");
    screen.shows("sampling: on");
    assert_eq!(switches.sampling().unwrap(), Some(true));
    screen.press("-");
    screen.shows("mean 1048576 bytes");
    screen.press("+");
    screen.shows("mean 524288 bytes");
    screen.press("Down");
    screen.press("Down");
    screen.press("Space");
    screen.shows(&format!("[ ] {}", kind.name()));
    assert!(!switches.is_on(kind).unwrap());
    screen.press("Escape");
    screen.assert_is_restored(0);
}

#[test]
fn the_terminal_is_restored_after_a_signal() {
    for signal in ["INT", "TERM", "HUP"] {
        let recorded = Recorded::of_a_run(Hot::Keeps);
        let Some(screen) = Screen::open(&recorded.path(), 80) else { return };
        screen.shows("no violation");
        let kill = Command::new("kill").args([&format!("-{signal}"), &screen.child()]).status().unwrap();
        assert!(kill.success());
        screen.assert_is_restored(0);
    }
}

#[test]
fn it_ends_with_its_terminal() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let Some(screen) = Screen::open(&recorded.path(), 80) else { return };
    screen.shows("no violation");
    let process = format!("/proc/{}", screen.child());
    assert!(Path::new(&process).exists());
    drop(screen);
    for _ in 0..LOOKS {
        if !Path::new(&process).exists() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("it goes on without a terminal");
}

/// (design/cli.md `.top.ended`)
#[test]
fn it_says_that_the_process_has_ended_and_refuses_a_capture() {
    let recorded = Recorded::of_a_run(Hot::Keeps);
    let Some(screen) = Screen::open(&recorded.path(), 100) else { return };
    let text = screen.shows("no violation");
    assert!(!text.contains("has ended"), "{text}");
    drop(screen);
    let killed = recorded.killed();
    let Some(screen) = Screen::open(&killed, 100) else { return };
    screen.shows("process 4294967294, has ended without closing its recording");
    screen.press("q");
    screen.assert_is_restored(0);

    let capture = recorded.folder().join("capture");
    let attached = run(&["attach", "--duration", "10ms", "-o", capture.to_str().unwrap()], &recorded.path());
    assert_eq!(attached.status, Some(0), "{}", attached.err);
    let refused = run(&["top", "--once"], &capture);
    assert_eq!((refused.status, refused.out.as_str()), (Some(2), ""));
    assert!(
        refused.err.contains("is a capture") && refused.err.contains("tripoint report"),
        "{}",
        refused.err
    );
}

#[test]
fn without_a_terminal_it_prints_once_if_asked_for_and_otherwise_says_so() {
    let recorded = Recorded::of_a_run(Hot::Violates);
    let refused = run(&["top"], &recorded.path());
    assert_eq!((refused.status, refused.out.as_str()), (Some(2), ""));
    assert!(refused.err.contains("needs a terminal"), "{}", refused.err);

    let once = run(&["top", "--once"], &recorded.path());
    assert_eq!(once.status, Some(1), "{}", once.err);
    assert_eq!(run(&["top", "--once"], &Recorded::of_a_run(Hot::Keeps).path()).status, Some(0));
    for expected in ["violations", "pools", "fills per second", "violates"] {
        assert!(once.out.contains(expected), "{expected}: {}", once.out);
    }
    let json = run(&["top", "--once", "--json"], &recorded.path()).json();
    assert_eq!(json["violations"][0]["class"], "alloc");

    let none = tripoint(&["top", "--once"], Path::new("/none")).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
}
