//! Shows what another process records: its events as they happen, how many were missed, and its
//! counters.
//!
//! ```text
//! telemetry_tail                          lists the processes that have telemetry
//! telemetry_tail PID | PATH [OPTION]...   events of a process, of a file with a path, or of a core file
//!     --json        one line of JSON for each event, gap and counter
//!     --once        what is there, without waiting for more; without this, until the process ends
//!     --counters    the counters instead of events
//!     --latency     before each event how long after it this program read it (not in JSON)
//!     --objects     the program and its libraries instead of events: addresses, build identifier, path
//!     --estimate    what samples say of all that was allocated, pool by pool
//!     --by GROUP    the same by type, site, size or thread, from the events that are still there
//! ```

#[cfg(unix)]
mod estimates;
#[cfg(unix)]
mod tail {
    use core::fmt::Write as _;
    use core::time::Duration;
    use std::io::{self, BufWriter, ErrorKind, Write};
    use std::path::Path;
    use std::thread;
    use std::time::SystemTime;

    use tripoint_telemetry::format::FileState;
    use tripoint_telemetry::reader::{
        Counters, Item, LoadedObject, OpenError, Reader, Start, Table, discover,
    };

    use crate::estimates::By;

    /// How long to wait if there is nothing new.
    const PAUSE: Duration = Duration::from_millis(20);

    /// What the arguments ask for.
    #[derive(Default)]
    pub(super) struct Options {
        pub(super) target: Option<String>,
        pub(super) json: bool,
        pub(super) once: bool,
        pub(super) counters: bool,
        pub(super) latency: bool,
        pub(super) objects: bool,
        pub(super) estimate: Option<By>,
    }

    pub(super) fn run(options: &Options) -> Result<(), Box<dyn core::error::Error>> {
        let Some(target) = &options.target else { return Ok(list()?) };
        let process = target.parse::<u32>().ok();
        let opened = process.map_or_else(|| Reader::open(target), Reader::attach);
        let reader = match opened {
            Ok(reader) => reader,
            Err(error @ OpenError::Truncated { .. }) => {
                eprintln!("{error}");
                error.into_readable().ok_or("its header is cut off")?
            }
            Err(error) => return Err(error.into()),
        };
        reader.damage().iter().for_each(|damage| eprintln!("{damage}"));
        let shown = if let Some(by) = options.estimate {
            crate::estimates::show(&reader, by, &mut BufWriter::new(io::stdout().lock()))
        } else if options.counters {
            show_counters(&reader.counters()?, options.json)
        } else if options.objects {
            show_objects(&reader.objects()?, options.json)
        } else {
            follow(&reader, process.map_or(reader.info().process, u64::from), options)
        };
        match shown {
            // Who reads the output has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }

    fn list() -> io::Result<()> {
        let found = discover()?;
        if found.is_empty() {
            eprintln!("no process that you may look at has telemetry in memory");
        }
        for found in found {
            let age = found.made.and_then(|made| SystemTime::now().duration_since(made).ok());
            let age = age.map_or_else(|| "?".to_owned(), |age| age.as_secs().to_string());
            println!("{} {:?} for {age} s, {}", found.process, found.program, found.path.display());
        }
        Ok(())
    }

    fn follow(reader: &Reader, process: u64, options: &Options) -> io::Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        let mut events = reader.events(Start::Oldest);
        let mut line = String::new();
        loop {
            // What was written before the process ended is read after this.
            let objects = reader.objects()?;
            let ended = reader.state()? == FileState::Closed || has_ended(process);
            while let Some(item) = events.poll() {
                line.clear();
                let written = if options.json {
                    item.write_json(&mut line)
                } else {
                    let latency = options.latency.then(|| latency(reader, &item)).flatten();
                    latency
                        .map_or(Ok(()), |latency| write!(line, "after {latency:.1?}: "))
                        .and_then(|()| write!(line, "{item}"))
                };
                written.map_err(io::Error::other)?;
                writeln!(out, "{line}")?;
                if let (Item::Event(event), false) = (&item, options.json) {
                    let places = event.frames().iter().filter_map(|frame| objects.place(*frame));
                    places.into_iter().try_for_each(|place| writeln!(out, "    at {place}"))?;
                }
            }
            out.flush()?;
            if ended || options.once {
                break;
            }
            thread::sleep(PAUSE);
        }
        for ring in 0..reader.rings() {
            if let Some(info) = reader.ring(ring)?
                && info.dropped > 0
            {
                eprintln!("ring {ring}: {} events were dropped, because it was in use", info.dropped);
            }
        }
        if events.damaged_blocks() > 0 {
            eprintln!("{} blocks could not be read as a whole", events.damaged_blocks());
        }
        Ok(())
    }

    /// How long ago an event was, by its time of day.
    fn latency(reader: &Reader, item: &Item) -> Option<Duration> {
        let Item::Event(event) = item else { return None };
        let time = reader.info().time_of_day(event.nanoseconds?)?;
        SystemTime::now().duration_since(time).ok()
    }

    /// Whether there is no such process here. The process of a core file, or of a file with a path that was
    /// killed, never says that it has ended.
    fn has_ended(process: u64) -> bool {
        !Path::new("/proc").join(process.to_string()).exists()
    }

    fn show_objects(objects: &Table<LoadedObject>, json: bool) -> io::Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        let mut line = String::new();
        for object in &objects.entries {
            line.clear();
            if json {
                object.write_json(&mut line).map_err(io::Error::other)?;
                writeln!(out, "{line}")?;
            } else {
                let LoadedObject { start, end, .. } = object;
                writeln!(out, "{start:#x}-{end:#x} {} {object}", object.build_id_text())?;
            }
        }
        if objects.left_out > 0 {
            eprintln!("{} more found no entry", objects.left_out);
        }
        out.flush()
    }

    fn show_counters(counters: &Counters, json: bool) -> io::Result<()> {
        let mut text = String::new();
        let written = if json { counters.write_json(&mut text) } else { write!(text, "{counters}") };
        written.map_err(io::Error::other)?;
        writeln!(io::stdout(), "{}", text.trim_end())
    }
}

#[cfg(unix)]
const USAGE: &str =
    "usage: telemetry_tail [PID | PATH] [--once] [--json] [--latency] [--counters | --objects]
       telemetry_tail PID | PATH --estimate [--by pool|type|site|size|thread]";

/// What the arguments ask for; none if they make no sense.
#[cfg(unix)]
fn options(arguments: impl IntoIterator<Item = String>) -> Option<tail::Options> {
    let mut options = tail::Options::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => options.json = true,
            "--once" => options.once = true,
            "--counters" => options.counters = true,
            "--latency" => options.latency = true,
            "--objects" => options.objects = true,
            "--estimate" => options.estimate = options.estimate.or(Some(estimates::By::Pool)),
            "--by" => options.estimate = Some(estimates::By::from_name(&arguments.next()?)?),
            _ if !argument.starts_with('-') && options.target.is_none() => options.target = Some(argument),
            _ => return None,
        }
    }
    let shown = [options.estimate.is_some(), options.counters, options.objects];
    let is_shown_as_asked = options.estimate.is_none() || options.target.is_some() && !options.json;
    (shown.into_iter().filter(|shown| *shown).count() <= 1 && is_shown_as_asked).then_some(options)
}

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match tail::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(unix))]
fn main() {}
