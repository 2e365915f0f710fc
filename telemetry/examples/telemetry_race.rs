//! A reader against a writer in another process that never waits for it: every event is read or
//! counted, and what a killed writer completed is read (design/telemetry.md `.reader.figures`).
//!
//! ```text
//! telemetry_race [--events N] [--kills N] [--ring BYTES] [--seed N]
//!     --events    how many events two threads of the writer write each (default 1000000)
//!     --kills     how many writers are killed at random moments (default 20)
//!     --ring      the bytes of each ring (default 65536)
//! ```

#[cfg(target_os = "linux")]
pub(crate) mod race {
    use core::time::Duration;
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, ChildStdin, Command, Stdio};
    use std::thread;

    use tripoint_core::{Event, EventHook};
    use tripoint_telemetry::reader::{Events, Fields, Item, Reader, Start};
    use tripoint_telemetry::{FileOptions, Room, Telemetry};

    /// What a writer is told: the events of each thread, and the bytes of a ring.
    const ORDERS: &str = "TRIPOINT_RACE_WRITER";

    /// The threads of a writer.
    const THREADS: usize = 2;

    /// Writes, if this process is a writer; then the result is true.
    pub(crate) fn write_if_told() -> bool {
        let Ok(orders) = std::env::var(ORDERS) else { return false };
        let mut orders = orders.split(' ').map(|number| number.parse().unwrap());
        let (events, ring_bytes) = (orders.next().unwrap(), orders.next().unwrap());
        let room = Room { threads: THREADS + 1, ring_bytes, ..Room::default() };
        let telemetry = Telemetry::create(&FileOptions { room, ..FileOptions::default() }).unwrap();
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
        /// Starts a writer that writes so many events on each thread. `arguments` lead this program
        /// to [`write_if_told`].
        fn start(arguments: &[&str], events: u64, ring_bytes: usize) -> Self {
            let program = std::env::current_exe().unwrap();
            let mut child = Command::new(program)
                .args(arguments)
                .env(ORDERS, format!("{events} {ring_bytes}"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            let mut lines = BufReader::new(output).lines();
            assert!(lines.any(|line| line.unwrap() == "ready"), "the writer ended");
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

    /// Kills a writer at a moment that `seed` draws, and reads what it completed.
    pub(crate) fn against_a_killed_writer(arguments: &[&str], ring_bytes: usize, seed: u64) -> Counts {
        let mut writer = Writer::start(arguments, u64::MAX >> 1, ring_bytes);
        let reader = Reader::attach(writer.child.id()).unwrap();
        let mut all = reader.events(Start::Oldest);
        let mut counts = vec![Counts::default(); reader.rings()];
        let mut state = seed;
        drain(&mut all, &mut counts, draw(&mut state) % 10_000);
        thread::sleep(Duration::from_nanos(draw(&mut state) % 1_000_000));
        writer.child.kill().unwrap();
        writer.child.wait().unwrap();
        drain(&mut all, &mut counts, u64::MAX);
        assert_eq!(all.damaged_blocks(), 0, "seed {seed}");
        // A reader that comes now sees the same, but for what was overwritten.
        let mut again = vec![Counts::default(); reader.rings()];
        drain(&mut reader.events(Start::Oldest), &mut again, u64::MAX);
        let mut sum = Counts::default();
        for (ring, (counts, again)) in counts.iter().zip(&again).enumerate() {
            let written = reader.ring(ring).unwrap().unwrap().events;
            let found = counts.read + counts.missed;
            assert_eq!(found, again.read + again.missed, "seed {seed}, ring {ring}");
            // Between showing a record and counting it, it may have been killed.
            assert!(found.abs_diff(written) <= 1, "seed {seed}, ring {ring}: {found} of {written}");
            sum.read += counts.read;
            sum.missed += counts.missed;
        }
        sum
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
    let mut sum = race::Counts::default();
    let mut state = seed;
    for _ in 0..kills {
        let counts = race::against_a_killed_writer(&[], ring, race::draw(&mut state));
        sum.read += counts.read;
        sum.missed += counts.missed;
    }
    println!("{kills} writers killed, seed {seed}: {sum:?}");
}

#[cfg(not(target_os = "linux"))]
fn main() {}
