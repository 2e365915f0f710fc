//! Static probes: what tracers find in the program, and what they read as it runs
//! (design/telemetry.md `.probes`).

use std::collections::BTreeMap;
use std::process::{Command, Output};

use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection};
use tripoint_core::EventHook;
use tripoint_telemetry::Probes;
use tripoint_telemetry::format::{EventKind, Field, FieldForm};

use crate::events::all_events;

/// Leads this program to [`every_event_fires`] alone.
const ARGUMENTS: [&str; 4] = ["--exact", "probes::every_event_fires", "--nocapture", "--test-threads=1"];

/// The kinds that are events of telemetry itself.
const OWN: [EventKind; 4] =
    [EventKind::ThreadAttach, EventKind::ThreadDetach, EventKind::Marker, EventKind::NoteSizes];

/// The name of the kind's probe.
fn name(kind: EventKind) -> String {
    kind.name().replace(' ', "_")
}

/// The fields as the probe has them: texts first, the arena and the site last.
fn fields(kind: EventKind) -> Vec<&'static Field> {
    let mut fields: Vec<_> = kind.fields().iter().collect();
    fields.sort_by_key(|field| match field.form {
        FieldForm::Text => 0,
        FieldForm::Site => 3,
        _ if field.name == "arena" => 2,
        _ => 1,
    });
    fields
}

/// How many arguments the probe has: a site is two of them.
fn arguments(kind: EventKind) -> usize {
    kind.fields().len() + kind.fields().iter().filter(|field| field.form == FieldForm::Site).count()
}

/// Fires all, in this program or in one that is traced.
#[test]
fn every_event_fires() {
    let probes = Probes::of_arena(1);
    for (index, (event, ..)) in all_events().iter().enumerate() {
        probes.event_at(*event, &[0xc0de, index]);
    }
}

/// What a note says of a probe.
#[derive(Debug)]
struct Note {
    provider: String,
    address: u64,
    semaphore: u64,
    arguments: usize,
}

/// The notes of this very program, by the names of the probes.
fn notes(program: &[u8]) -> BTreeMap<String, Vec<Note>> {
    let file = FileHeader64::<Endianness>::parse(program).unwrap();
    let endian = file.endian().unwrap();
    let sections = file.sections(endian, program).unwrap();
    let (_, section) = sections.section_by_name(endian, b".note.stapsdt").expect("there are probes");
    let mut notes = section.notes(endian, program).unwrap().expect("these are notes");
    let mut found: BTreeMap<String, Vec<Note>> = BTreeMap::new();
    while let Some(note) = notes.next().unwrap() {
        assert_eq!((note.name(), note.n_type(endian).0), (&b"stapsdt"[..], 3));
        let (words, texts) = note.desc().split_at(3 * 8);
        let [address, _base, semaphore] =
            [0, 8, 16].map(|at| u64::from_ne_bytes(words[at..at + 8].try_into().unwrap()));
        let texts: Vec<_> =
            texts.split(|byte| *byte == 0).map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
        let note = Note {
            provider: texts[0].clone(),
            address,
            semaphore,
            arguments: texts[2].split_whitespace().count(),
        };
        found.entry(texts[1].clone()).or_default().push(note);
    }
    found
}

/// The instruction at an address.
fn instruction(program: &[u8], address: u64) -> &[u8] {
    let bytes = if cfg!(target_arch = "x86_64") { 1 } else { 4 };
    let file = object::File::parse(program).unwrap();
    file.sections().find_map(|section| section.data_range(address, bytes).ok()?).expect("it is in a section")
}

#[test]
fn the_program_names_every_probe_and_each_is_one_nop() {
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let mut notes = notes(&program);
    let nop: &[u8] = if cfg!(target_arch = "x86_64") { &[0x90] } else { &0xd503_201f_u32.to_le_bytes() };
    for &kind in EventKind::ALL.iter().filter(|kind| !OWN.contains(kind)) {
        let found = notes.remove(&name(kind)).unwrap_or_default();
        let [note] = &found[..] else { panic!("{kind:?}: {found:?}") };
        assert_eq!((note.provider.as_str(), note.arguments), ("tripoint", arguments(kind)), "{kind:?}");
        // Tracers read no more.
        assert!(note.arguments <= 12, "{kind:?}");
        assert_eq!(note.semaphore, 0, "{kind:?}");
        assert_eq!(instruction(&program, note.address), nop, "{kind:?}");
    }
    // No name of a probe that is not there, as would be that of telemetry's own kinds.
    notes.retain(|_, notes| notes.iter().any(|note| note.provider == "tripoint"));
    assert!(notes.is_empty(), "{notes:?}");
}

/// What a debugger prints of each event: its arguments in order, a site by what it points to.
fn expected() -> Vec<String> {
    let shared = [
        ("arena", 1),
        ("pool", 9),
        ("buffer", 0xb000),
        ("cache", 0xb000),
        ("heap", 0xb000),
        ("root", 0xb000),
        ("segment", 0xb000),
    ];
    let line = |(index, (_, kind, words, texts)): (usize, &crate::events::Expected)| {
        let field = |field: &Field| match field.form {
            FieldForm::Text => texts.iter().find(|(name, _)| *name == field.name).unwrap().1.to_owned(),
            FieldForm::Site => format!("2 c0de {index:x}"),
            _ => {
                let mut words = words.iter().chain(&shared);
                format!("{:x}", words.find(|(name, _)| *name == field.name).unwrap().1)
            }
        };
        let fields: Vec<_> = fields(*kind).into_iter().map(field).collect();
        format!("fired {}|{}", name(*kind), fields.join("|"))
    };
    all_events().iter().enumerate().map(line).collect()
}

/// The commands that have gdb print the arguments of a kind's probe.
fn breakpoint(kind: EventKind) -> String {
    let (mut format, mut values) = (String::new(), String::new());
    for (at, field) in fields(kind).into_iter().enumerate() {
        let (form, value) = match field.form {
            FieldForm::Text => ("|%s", format!(", (char *)$_probe_arg{at}")),
            FieldForm::Site => {
                let word = |index| format!("((unsigned long *)$_probe_arg{at})[{index}]");
                ("|%lx %lx %lx", format!(", $_probe_arg{}, {}, {}", at + 1, word(0), word(1)))
            }
            _ => ("|%lx", format!(", $_probe_arg{at}")),
        };
        format += form;
        values += &value;
    }
    let name = name(kind);
    format!(
        "break -probe-stap tripoint:{name}\ncommands\nsilent\n\
         printf \"fired {name}{format}\\n\"{values}\ncontinue\nend\n"
    )
}

/// Runs a tool, or says why not. A tool that does not end by itself is ended.
fn run_tool(tool: &str, arguments: &[&str]) -> Option<Output> {
    let output = Command::new("timeout").args(["-k", "5", "120", tool]).args(arguments).output();
    match output.as_ref().map(|output| output.status.code()) {
        // These are how `timeout` ends if it cannot run the tool, or has ended it.
        Err(_) | Ok(None | Some(124..=127 | 137)) => {
            tripoint_oracle::skipped!("{tool} is not there, or does not end: {output:?}");
            None
        }
        _ => output.ok(),
    }
}

/// gdb knows these probes, too.
#[test]
fn a_debugger_reads_every_argument() {
    let script = std::env::temp_dir().join(format!("tripoint-probes-{}", std::process::id()));
    let kinds = EventKind::ALL.iter().filter(|kind| !OWN.contains(kind));
    let breakpoints: String = kinds.map(|kind| breakpoint(*kind)).collect();
    std::fs::write(&script, format!("set language c\nset pagination off\n{breakpoints}run\n")).unwrap();
    let options = ["-nx", "-batch", "-iex", "set debuginfod enabled off", "-x", script.to_str().unwrap()];
    let program = std::env::current_exe().unwrap();
    let program = ["--args", program.to_str().unwrap()];
    let output = run_tool("gdb", &[&options[..], &program, &ARGUMENTS].concat());
    std::fs::remove_file(&script).unwrap();
    let Some(output) = output else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    if !said.contains("running 1 test") {
        return tripoint_oracle::skipped!(
            "gdb starts nothing here: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let fired: Vec<_> =
        said.lines().filter_map(|line| Some(&line[line.find("fired ")?..])).map(str::to_owned).collect();
    assert_eq!(fired, expected(), "{output:?}");
}

/// What bpftrace prints if it runs this program with this script.
fn trace(program: &str, script: &str) -> Option<Output> {
    let child = format!("{program} {}", ARGUMENTS.join(" "));
    run_tool("bpftrace", &["-e", script, "-c", &child])
}

/// The line of the guide, and in short that of design/telemetry.md.
#[test]
fn bpftrace_reads_arguments() {
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    if program.contains([' ', ':']) {
        return tripoint_oracle::skipped!("bpftrace cannot be told this path: {program}");
    }
    // What the program prints comes between.
    let prints = |output: &Output, line: &str| String::from_utf8_lossy(&output.stdout).contains(line);
    // What needs no static probe: where this does not work, the system is the reason.
    let Some(control) = trace(program, &format!("uprobe:{program}:main {{ printf(\"began\\n\"); }}")) else {
        return;
    };
    if !prints(&control, "began\n") {
        return tripoint_oracle::skipped!("bpftrace traces nothing here: {control:?}");
    }
    let script = format!(
        "usdt:{program}:tripoint:grow {{ printf(\"grow %d\\n\", arg0); }} \
         usdt:{program}:tripoint:violation {{ printf(\"%s: %s\\n\", str(arg0), str(arg1)); }}"
    );
    let Some(output) = trace(program, &script) else { return };
    assert!(prints(&output, "grow 96\n") && prints(&output, "violation: minor fault\n"), "{output:?}");
}
