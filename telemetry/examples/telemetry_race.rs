//! A reader against a writer in another process that never waits for it: every event is read or
//! counted, and what a killed writer completed is read (design/telemetry.md `.reader.figures`).
//!
//! ```text
//! telemetry_race [--events N] [--kills N] [--ring BYTES] [--seed N]
//!     --events    how many events two threads of the writer write each (default 1000000)
//!     --kills     how many writers are killed at random moments, and how many more while they create a file in
//!                 memory or with a path (default 20)
//!     --ring      the bytes of each ring (default 65536); half of the writers that are killed have 65536
//! ```

#[cfg(target_os = "linux")]
pub(crate) mod race {
    use core::time::Duration;
    use std::fs::{self, File};
    use std::io::{BufRead, BufReader, ErrorKind, Read};
    use std::path::{Path, PathBuf};
    use std::process::{Child, ChildStdin, Command, Stdio};
    use std::thread;
    use std::time::Instant;

    use tripoint_core::{Event, EventHook};
    use tripoint_telemetry::format::{BLOCK_WORDS, CLOCK_RECORD_WORDS, HEAD_WORDS, WORD_BYTES};
    use tripoint_telemetry::reader::{Events, Fields, Item, OpenError, Reader, Start};
    use tripoint_telemetry::{FileOptions, Room, Telemetry};

    /// The orders of a writer: the events of each thread, the bytes of a ring, and the path of its file, if
    /// it has one.
    const ORDERS: &str = "TRIPOINT_RACE_WRITER";

    /// The words of the record of each event: that a thread attached (its name takes two words),
    /// and that an arena grew (two fields).
    const RECORD_WORDS: usize = HEAD_WORDS + 2;

    /// The events in a block.
    const BLOCK_EVENTS: u64 = ((BLOCK_WORDS - CLOCK_RECORD_WORDS) / RECORD_WORDS) as u64;

    /// The threads of a writer.
    const THREADS: usize = 2;

    /// Writes, if this process is a writer; then the result is true.
    pub(crate) fn write_if_told() -> bool {
        let Ok(orders) = std::env::var(ORDERS) else { return false };
        let mut orders = orders.splitn(3, ' ');
        let mut number = || orders.next().unwrap().parse().unwrap();
        let (events, ring_bytes) = (number(), number());
        let path = orders.next().filter(|path| !path.is_empty()).map(Path::new);
        let room = Room { threads: THREADS + 1, ring_bytes, ..Room::default() };
        println!("\nbegun");
        let telemetry = Telemetry::create(&FileOptions { path, room, ..FileOptions::default() }).unwrap();
        println!("\nready");
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let _attached = telemetry.attach("racer");
                    (0..events).for_each(|size| telemetry.event(Event::Grow { size }));
                });
            }
        });
        println!("\ndone");
        // Until the reader is done with it.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        true
    }

    /// A writer in another process.
    struct Writer {
        child: Child,
        _input: ChildStdin,
        output: Option<thread::JoinHandle<()>>,
    }

    impl Writer {
        /// Starts a writer that writes that many events on each thread, and waits until it is ready.
        /// `arguments` lead this program to [`write_if_told`].
        fn start(arguments: &[&str], events: u64, ring_bytes: usize) -> Self {
            Self::start_until("ready", arguments, events, ring_bytes, None)
        }

        /// Starts a writer, of a file with a path or one without, and waits until it prints a line.
        fn start_until(
            last: &str,
            arguments: &[&str],
            events: u64,
            ring_bytes: usize,
            path: Option<&Path>,
        ) -> Self {
            let path = path.map_or("", |path| path.to_str().unwrap());
            let program = std::env::current_exe().unwrap();
            let mut child = Command::new(program)
                .args(arguments)
                .env(ORDERS, format!("{events} {ring_bytes} {path}"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let mut lines = BufReader::new(output).lines();
            assert!(lines.any(|line| line.unwrap() == last), "the writer ended");
            // It ends when the writer is done, or was killed.
            let output = thread::spawn(move || {
                lines.any(|line| line.is_ok_and(|line| line == "done"));
            });
            Self { child, _input: input, output: Some(output) }
        }

        fn is_done(&self) -> bool {
            self.output.as_ref().is_none_or(thread::JoinHandle::is_finished)
        }
    }

    impl Drop for Writer {
        fn drop(&mut self) {
            self.child.kill().ok();
            self.child.wait().ok();
            self.output.take().map(thread::JoinHandle::join);
        }
    }

    /// What was read of each ring.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Counts {
        pub(crate) read: u64,
        pub(crate) missed: u64,
    }

    /// Reads all that is new, and checks that it is what a writer writes, in its order.
    fn drain(events: &mut Events<'_>, counts: &mut [Counts], most: u64) {
        for _ in 0..most {
            let Some(item) = events.poll() else { return };
            match item {
                Item::Gap(gap) => {
                    let of_ring = &mut counts[gap.ring];
                    assert_eq!(gap.first, of_ring.read + of_ring.missed, "{gap}");
                    of_ring.missed += gap.count;
                }
                Item::Event(event) => {
                    let of_ring = &mut counts[event.ring];
                    assert_eq!(event.serial, of_ring.read + of_ring.missed, "{event}");
                    of_ring.read += 1;
                    match event.fields {
                        // The first event of a ring is that its thread attached.
                        Fields::Grow { size, .. } => assert_eq!(size, event.serial - 1, "{event}"),
                        Fields::ThreadAttach { .. } => assert_eq!(event.serial, 0, "{event}"),
                        Fields::ThreadDetach {} => {}
                        _ => panic!("{event}"),
                    }
                }
            }
        }
    }

    /// A reader against a writer that writes `events` on each thread: what was read and missed of each ring.
    pub(crate) fn against_a_live_writer(arguments: &[&str], events: u64, ring_bytes: usize) -> Counts {
        let writer = Writer::start(arguments, events, ring_bytes);
        let reader = Reader::attach(writer.child.id()).unwrap();
        let mut all = reader.events(Start::Oldest);
        let mut counts = vec![Counts::default(); reader.rings()];
        while !writer.is_done() {
            drain(&mut all, &mut counts, u64::MAX);
        }
        drain(&mut all, &mut counts, u64::MAX);
        assert_eq!(all.damaged_blocks(), 0);
        let mut sum = Counts::default();
        for (ring, counts) in counts.iter().enumerate() {
            let info = reader.ring(ring).unwrap().unwrap();
            assert_eq!(counts.read + counts.missed, info.events, "ring {ring}");
            assert_eq!(info.dropped, 0);
            sum.read += counts.read;
            sum.missed += counts.missed;
        }
        // Each thread attached and detached as well.
        assert_eq!(sum.read + sum.missed, THREADS as u64 * (events + 2));
        sum
    }

    /// Whether a reader that came after the writer's death has read all that it can: of `counts.read +
    /// counts.missed` events only those may be missed whose block was overwritten, or the writer had announced
    /// that it would be.
    pub(crate) fn is_all_recovered(counts: Counts, ring_bytes: usize) -> bool {
        let blocks = (ring_bytes / (BLOCK_WORDS * WORD_BYTES)) as u64;
        let begun = (counts.read + counts.missed) / BLOCK_EVENTS + 1;
        counts.missed <= begun.saturating_sub(blocks) * BLOCK_EVENTS
    }

    /// What was read of a writer that was killed.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Killed {
        pub(crate) counts: Counts,
        /// Whether one of its threads had begun a record that it did not complete.
        pub(crate) within_record: bool,
    }

    /// Kills a writer at a moment that `seed` draws, and reads what it completed. One in four is killed some
    /// time after it began, which may be before its first event; the others when they have written
    /// some events.
    pub(crate) fn against_a_killed_writer(arguments: &[&str], ring_bytes: usize, seed: u64) -> Killed {
        let mut writer = Writer::start(arguments, u64::MAX >> 1, ring_bytes);
        let reader = Reader::attach(writer.child.id()).unwrap();
        let mut all = reader.events(Start::Oldest);
        let mut counts = vec![Counts::default(); reader.rings()];
        let mut state = seed;
        if draw(&mut state).is_multiple_of(4) {
            thread::sleep(Duration::from_nanos(draw(&mut state) % 1_000_000));
        } else {
            let wanted = 1 + draw(&mut state) % 10_000;
            while counts.iter().map(|of_ring| of_ring.read + of_ring.missed).sum::<u64>() < wanted {
                assert!(!writer.is_done(), "seed {seed}: the writer ended");
                drain(&mut all, &mut counts, wanted);
            }
        }
        writer.child.kill().unwrap();
        writer.child.wait().unwrap();
        drain(&mut all, &mut counts, u64::MAX);
        assert_eq!(all.damaged_blocks(), 0, "seed {seed}");
        // A reader that comes now sees the same, but for what was overwritten.
        let mut again = vec![Counts::default(); reader.rings()];
        drain(&mut reader.events(Start::Oldest), &mut again, u64::MAX);
        let mut killed = Killed::default();
        for (ring, (counts, again)) in counts.iter().zip(&again).enumerate() {
            let info = reader.ring(ring).unwrap().unwrap();
            let found = counts.read + counts.missed;
            assert_eq!(found, again.read + again.missed, "seed {seed}, ring {ring}");
            assert!(is_all_recovered(*again, ring_bytes), "seed {seed}, ring {ring}: {again:?}");
            // Between showing a record and counting it, it may have been killed.
            assert!(found.abs_diff(info.events) <= 1, "seed {seed}, ring {ring}: {found} of {}", info.events);
            killed.counts.read += counts.read;
            killed.counts.missed += counts.missed;
            killed.within_record |= info.within_record;
        }
        killed
    }

    /// What a writer left that was killed before it was ready.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Left {
        /// No file.
        Nothing,
        /// A file that is not complete, which the reader says.
        Incomplete,
        /// A whole file.
        Whole,
    }

    /// Looks at a file that may not be complete; all that a whole one has is read.
    fn look_at(opened: Result<Reader, OpenError>, ring_bytes: usize) -> Left {
        match opened {
            Ok(reader) => {
                let mut counts = vec![Counts::default(); reader.rings()];
                let mut events = reader.events(Start::Oldest);
                drain(&mut events, &mut counts, u64::MAX);
                assert_eq!((events.damaged_blocks(), reader.damage()), (0, &[][..]));
                assert!(counts.iter().all(|counts| is_all_recovered(*counts, ring_bytes)), "{counts:?}");
                Left::Whole
            }
            Err(OpenError::System { error, .. }) if error.kind() == ErrorKind::NotFound => Left::Nothing,
            // Up to the first word of the header nothing in the file says what it is going to be.
            Err(OpenError::Unfinished { .. } | OpenError::NotTelemetry { .. }) => Left::Incomplete,
            Err(error) => panic!("{error}"),
        }
    }

    /// A process's file of data in memory.
    fn open_descriptor(process: u32) -> Option<File> {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
        let is_data = |path: &PathBuf| {
            fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:tripoint-telemetry "))
        };
        descriptors.map(|entry| entry.path()).find(is_data).and_then(|path| File::open(path).ok())
    }

    /// Kills a writer while it makes its file, in memory: at a moment that `seed` draws, or as soon as there is a
    /// file. A reader that attaches meanwhile finds out what there is.
    pub(crate) fn against_a_beginner_in_memory(arguments: &[&str], ring_bytes: usize, seed: u64) -> Left {
        let mut state = seed;
        let at_once = draw(&mut state).is_multiple_of(2);
        let delay = Duration::from_nanos(draw(&mut state) % 6_000_000);
        let mut writer = Writer::start_until("begun", arguments, u64::MAX >> 1, ring_bytes, None);
        let begun = Instant::now();
        let mut file = None;
        while begun.elapsed() < delay {
            match Reader::attach(writer.child.id()) {
                Ok(_) | Err(OpenError::NoneFound { .. } | OpenError::Unfinished { .. }) => {}
                Err(error) => panic!("seed {seed}: {error}"),
            }
            file = file.or_else(|| open_descriptor(writer.child.id()));
            if at_once && file.is_some() {
                break;
            }
        }
        writer.child.kill().unwrap();
        writer.child.wait().unwrap();
        file.map_or(Left::Nothing, |file| look_at(Reader::from_file(file), ring_bytes))
    }

    /// A folder that is removed with all that a killed writer left in it.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = Self(std::env::temp_dir().join(name));
            fs::create_dir(&folder.0).unwrap();
            folder
        }

        /// The data of a writer that has not received its name yet.
        fn unnamed(&self) -> Option<PathBuf> {
            let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names = names.filter_map(|name| name.into_string().ok());
            let name = names.find(|name| name.ends_with(".new") && !name.contains(".switches"))?;
            Some(self.0.join(name))
        }
    }

    /// Kills a writer while it makes a file with a path, at a moment that `seed` draws: at the path there is
    /// none, or a whole one.
    pub(crate) fn against_a_beginner(arguments: &[&str], ring_bytes: usize, seed: u64) -> Left {
        let mut state = seed;
        let delay = Duration::from_nanos(draw(&mut state) % 6_000_000);
        let folder = Folder::new(&format!("tripoint-race-{}-{seed}", std::process::id()));
        let path = folder.0.join("data");
        let mut writer = Writer::start_until("begun", arguments, u64::MAX >> 1, ring_bytes, Some(&path));
        thread::sleep(delay);
        writer.child.kill().unwrap();
        writer.child.wait().unwrap();
        let left = look_at(Reader::open(&path), ring_bytes);
        assert_ne!(left, Left::Incomplete, "seed {seed}");
        let Some(unnamed) = folder.unnamed() else { return left };
        assert_eq!(left, Left::Nothing, "seed {seed}: {}", unnamed.display());
        look_at(Reader::open(&unnamed), ring_bytes)
    }

    /// The generator SplitMix64 (Steele, Lea and Flood 2014).
    pub(crate) fn draw(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(target_os = "linux")]
#[allow(dead_code)] // A test takes in this file.
fn main() {
    if race::write_if_told() {
        return;
    }
    let (mut events, mut kills, mut ring, mut seed) = (1_000_000, 20, 64 << 10, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let number = arguments.next().and_then(|number| number.parse::<u64>().ok());
        let Some(number) = number else { panic!("{option} wants a number") };
        match option.as_str() {
            "--events" => events = number,
            "--kills" => kills = number,
            "--ring" => ring = number,
            "--seed" => seed = number,
            _ => panic!("no such option: {option}"),
        }
    }
    let ring = usize::try_from(ring).expect("a ring that fits in memory");
    let begun = std::time::Instant::now();
    let counts = race::against_a_live_writer(&[], events, ring);
    println!("{events} events on each of two threads: {counts:?}, in {:?}", begun.elapsed());
    let (mut sum, mut within_record) = (race::Counts::default(), 0);
    let mut state = seed;
    // A small ring laps before its writer is killed.
    for ring in [ring, 64 << 10].into_iter().cycle().zip(0..kills).map(|(ring, _)| ring) {
        let killed = race::against_a_killed_writer(&[], ring, race::draw(&mut state));
        sum.read += killed.counts.read;
        sum.missed += killed.counts.missed;
        within_record += usize::from(killed.within_record);
    }
    println!("{kills} writers killed, seed {seed}: {sum:?}; {within_record} of them within a record");
    for (place, kill) in [
        ("in memory", race::against_a_beginner_in_memory as fn(&[&str], usize, u64) -> race::Left),
        ("with a path", race::against_a_beginner),
    ] {
        let left: Vec<_> = (0..kills).map(|_| kill(&[], ring, race::draw(&mut state))).collect();
        let count = |what| left.iter().filter(|left| **left == what).count();
        let counts = [race::Left::Nothing, race::Left::Incomplete, race::Left::Whole].map(count);
        println!(
            "{kills} killed as they began, {place}: no file, an incomplete one, a whole one: {counts:?}"
        );
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
