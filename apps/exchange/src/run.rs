//! All books of a day, kept by a hot thread under the steady-state contract (design/exchange.md `.run`).
//!
//! ```text
//!   files or a generated day ──► reader ══ blocks ══► hot thread: deframe, parse, apply, note
//!                                  ▲                      │
//!                                  └═══ empty blocks ═════╧═══► scribe, if anything is noted
//! ```

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use point_log::Hook;
use stop::threads::spawn;
use tripoint::contract::{
    Arenas, Contract, ContractAllocator, Guard, HotThread, NoReason, Phase, PoolEvents, Record, RecordKind,
    Report, Route, ViolationSet, WarmupOptions,
};
use tripoint::{Arena, ArenaVm, ArenaVmOptions, Prefault};

use crate::book::{Books, Depth, Plan, Refused};
use crate::day::{Day, DayOptions};
use crate::frames::{BadFrame, Deframer, Form, Framed};
use crate::handoff::{self, Taker};
use crate::histogram::{Histogram, Percentiles};
use crate::homes::{Visitor, with_books};
use crate::inject::{Injection, Injector};
use crate::input::{Block, Source};
use crate::itch::Malformed;
use crate::keeper::{Keeper, Unknown};
use crate::lobster::BadLine;
use crate::notes::{Output, Outputs, Scribe, Wanted, write_book};
use crate::orderbook::Compared;
use crate::pace::Pace;
use crate::places::{Home, Places};
use crate::steady::{Readings, load, resident};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

/// The most hot threads that a command has.
const THREADS: usize = 3;

/// The contract of the hot threads.
pub(crate) static CONTRACT: Contract<NoReason, THREADS> = Contract::new();

/// Charges growth of the arena to the thread that caused it.
static EVENTS: (PoolEvents, Hook) = (PoolEvents, Hook);

/// How often the warm-up plays the day that is for rehearsal.
pub(crate) static ROUTES: [Route; 1] = [Route::with_minimum("rehearsal", 16)];

/// How long no event may come before the warm-up ends, in ns.
const QUIET_WINDOW: u64 = 50_000_000;

/// The message of the steady part at which a violation is injected.
const INJECTION_MESSAGE: u64 = 1_000;

/// Stack that is touched before it is needed, in bytes.
const STACK_TOUCHED: usize = 256 << 10;

/// What a run is asked for.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Files to read; a day is generated without any.
    pub inputs: Vec<PathBuf>,
    /// The orderbook file of each, if they are of LOBSTER.
    pub orderbooks: Vec<PathBuf>,
    pub form: Option<Form>,
    pub day: DayOptions,
    /// Whether a generated day has ten times as many orders live for a while.
    pub burst: bool,
    /// How many times as fast as they were recorded messages come in the steady part; at once without it.
    pub pace: Option<f64>,
    pub home: Home,
    pub plan: Plan,
    /// Messages before the arena is frozen.
    pub warmup: u64,
    pub inject: Option<Injection>,
    pub outputs: Outputs,
}

impl RunOptions {
    /// What an input is called; a generated day has no name.
    pub(crate) fn name_of(&self, input: usize) -> Option<String> {
        self.inputs.get(input).map(|path| path.display().to_string())
    }
}

/// Why the hot thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Frame(BadFrame),
    Malformed(Malformed),
    Line(BadLine),
    Refused(Refused),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(fault) => write!(f, "{fault}"),
            Self::Malformed(malformed) => write!(f, "{malformed}"),
            Self::Line(bad) => write!(f, "{bad}"),
            Self::Refused(refused) => write!(f, "{refused}"),
        }
    }
}

/// The message at which the hot thread stopped. Everything before it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Which of the inputs, from zero.
    pub input: usize,
    pub form: Form,
    pub number: u64,
    pub offset: u64,
    pub cause: Cause,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, offset, cause, .. } = self;
        match self.form {
            Form::Lobster => write!(f, "line {number}: {cause}"),
            Form::File | Form::Packets => write!(f, "message {number} at byte {offset}: {cause}"),
        }
    }
}

/// A stock and the best of its book.
#[derive(Clone, Debug)]
pub struct Top {
    pub locate: u16,
    pub stock: [u8; 8],
    pub messages: u64,
    pub buy: Option<Depth>,
    pub sell: Option<Depth>,
}

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Messages of each type, by its byte.
    pub by_type: Vec<(u8, u64)>,
    pub messages: u64,
    pub warmup: u64,
    pub steady_messages: u64,
    pub steady: Readings,
    /// Time of a message in the steady part.
    pub latency: Percentiles,
    pub busy: Duration,
    /// How many times as fast as recorded messages came, and how many of them had to wait.
    pub pace: Option<(f64, u64)>,
    /// See [`load`].
    pub load: Option<f64>,
    pub orders: usize,
    pub levels: usize,
    pub most: (usize, usize),
    pub tops: Vec<Top>,
    pub crossed: usize,
    /// Of LOBSTER: messages about orders that the files do not have, where the first is, and what the orderbook files said.
    pub unknown: u64,
    pub first_unknown: Option<String>,
    pub compared: Compared,
    pub checksum: u64,
    pub arena_bytes: usize,
    pub table_bytes: usize,
    pub resident: Option<(u64, u64)>,
    pub is_armed: bool,
    pub alarms: usize,
    pub detectors: Vec<String>,
    pub missing: Vec<String>,
    /// The contract's report, if it was violated.
    pub violations: Vec<String>,
    pub warnings: Vec<String>,
    pub failures: Vec<String>,
}

/// What the threads of a run share.
#[derive(Default)]
pub(crate) struct Shared {
    /// The messages of the warm-up are through: the contract's driver decides from here on.
    pub(crate) is_warm: AtomicBool,
    /// The warm-up has failed, and the hot thread goes on without.
    pub(crate) is_given_up: AtomicBool,
}

/// Keeps all books of the input, and reports. It can be called once in a process.
///
/// # Errors
/// If the run could not begin.
pub fn run(options: &RunOptions) -> Result<Outcome, String> {
    if options.burst && options.day.messages < BURST_MESSAGES * options.day.live as u64 {
        return Err(format!(
            "a burst of {} live orders needs {BURST_MESSAGES} messages for each",
            options.day.live
        ));
    }
    let source = if options.inputs.is_empty() {
        Source::day(options.day, options.burst)
    } else {
        Source::files(&options.inputs, &options.orderbooks, options.form)?
    };
    let outputs = &options.outputs;
    let book = Output::create(outputs.book.as_deref())?;
    let tops = Output::create(outputs.tops.as_deref())?;
    let trades = Output::create(outputs.trades.as_deref())?;
    let arena = create_arena()?;
    CONTRACT.begin_init().map_err(|error| error.to_string())?;
    let (filler, taker) = handoff::round(|| Block::with_notes(outputs.wanted()));
    let (taker, noted) = if outputs.wanted().is_any() {
        let (taker, noted) = taker.in_a_row();
        (taker, Some(noted))
    } else {
        (taker, None)
    };
    let shared = Shared::default();
    thread::scope(|scope| {
        let reader = spawn(scope, "reader", move || filler.send_all(source)).map_err(no_thread)?;
        let scribe = noted
            .map(|taker| spawn(scope, "scribe", move || Scribe { taker, tops, trades }.write_all()))
            .transpose()
            .map_err(no_thread)?;
        let hot = spawn(scope, "hot", || {
            let plans = [options.plan, rehearsal_plan(options.plan)];
            let keep = Keep { options, arena: &arena, taker, shared: &shared, book };
            with_books(options.home, &arena, plans, keep)?
        })
        .map_err(no_thread)?;
        let watched = watch(&arena, &shared, || hot.is_finished());
        let mut outcome = match hot.join() {
            Ok(outcome) => outcome?,
            Err(_) => return Err("the hot thread panicked".to_owned()),
        };
        match reader.join() {
            Ok(Ok(())) => {}
            Ok(Err(why)) => outcome.failures.push(why),
            Err(_) => outcome.failures.push("the reader panicked".to_owned()),
        }
        match scribe.map(thread::ScopedJoinHandle::join) {
            None | Some(Ok(Ok(()))) => {}
            Some(Ok(Err(why))) => outcome.failures.push(why),
            Some(Err(_)) => outcome.failures.push("the thread that writes panicked".to_owned()),
        }
        watched.add_to(&mut outcome);
        Ok(outcome)
    })
}

/// What is said if there is no thread.
pub(crate) fn no_thread(error: std::io::Error) -> String {
    format!("a thread cannot be started: {error} (see `ulimit -u`)")
}

/// An arena whose growth is charged to the thread that caused it.
pub(crate) fn create_arena() -> Result<ArenaVm, String> {
    let options = ArenaVmOptions {
        prefault: Prefault::AtFill,
        inherit_on_fork: false,
        event_hook: Some(&EVENTS),
        ..ArenaVmOptions::default()
    };
    ArenaVm::create(options).map_err(|error| error.to_string())
}

/// What the coordinator saw.
pub(crate) struct Watched {
    alarms: Vec<Record>,
    warnings: Vec<String>,
    failure: Option<String>,
    is_armed: bool,
}

/// Drives the warm-up, and takes records until the hot thread has ended.
pub(crate) fn watch(arena: &ArenaVm, shared: &Shared, has_ended: impl Fn() -> bool) -> Watched {
    const PAUSE: Duration = Duration::from_millis(1);
    const LOOKS_PER_POLL: u32 = 100;
    let arenas: [&dyn Arena; 1] = [arena];
    let memory = Arenas::new(&arenas);
    let mut watched = Watched { alarms: Vec::new(), warnings: Vec::new(), failure: None, is_armed: false };
    while !shared.is_warm.load(Ordering::Acquire) {
        if has_ended() {
            return watched;
        }
        thread::sleep(PAUSE);
    }
    watched.warnings.extend(lock_memory(&arenas));
    let options = WarmupOptions { quiet_window: QUIET_WINDOW, ..WarmupOptions::default() };
    match CONTRACT.warm_up(&ROUTES, &memory, options) {
        Ok(_) => watched.is_armed = true,
        Err(failure) => {
            watched.failure = Some(format!("the warm-up failed: {failure}"));
            shared.is_given_up.store(true, Ordering::Release);
        }
    }
    let mut lookout = Lookout::new(&arenas);
    let (start, mut looks) = (Instant::now(), 0_u32);
    loop {
        // Asked first: what was recorded before the end is still there.
        let is_over = has_ended();
        CONTRACT.drain(|record| {
            if record.kind == RecordKind::Alarm {
                watched.alarms.push(record);
            }
        });
        if is_over {
            break;
        }
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS_PER_POLL) && CONTRACT.is_armed() {
            lookout.look(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        thread::sleep(PAUSE);
    }
    watched.warnings.extend(lookout.warnings());
    watched
}

impl Watched {
    pub(crate) fn add_to(self, outcome: &mut Outcome) {
        let report = Report { records: &self.alarms, routes: &ROUTES, ..Report::new(&CONTRACT) };
        outcome.is_armed = self.is_armed && report.was_armed();
        outcome.alarms = report.alarms();
        outcome.detectors = report.live().names().map(str::to_owned).collect();
        outcome.missing = report.missing().names().map(str::to_owned).collect();
        if outcome.alarms > 0 {
            outcome.violations = report.to_string().lines().map(str::to_owned).collect();
            let violated = format!("the contract was violated: {} alarms", outcome.alarms);
            outcome.failures.push(violated);
        }
        outcome.warnings.extend(self.warnings);
        outcome.failures.extend(self.failure);
    }
}

/// The look at the whole process, now and then, while the hot thread is armed.
struct Lookout<'a> {
    #[cfg(target_os = "linux")]
    sentinel: tripoint::contract::Sentinel<'a, NoReason, THREADS>,
    #[cfg(not(target_os = "linux"))]
    arenas: &'a [&'a dyn Arena],
    warnings: Vec<String>,
}

/// The most warnings that are kept.
const WARNINGS: usize = 8;

impl<'a> Lookout<'a> {
    fn new(arenas: &'a [&'a dyn Arena]) -> Self {
        Self {
            #[cfg(target_os = "linux")]
            sentinel: tripoint::contract::Sentinel::new(&CONTRACT, arenas),
            #[cfg(not(target_os = "linux"))]
            arenas,
            warnings: Vec::new(),
        }
    }

    #[cfg(target_os = "linux")]
    fn look(&mut self, now: u64) {
        let warnings = &mut self.warnings;
        self.sentinel.poll(now, |warning| {
            if warnings.len() < WARNINGS {
                warnings.push(warning.to_string());
            }
        });
    }

    #[cfg(not(target_os = "linux"))]
    fn look(&mut self, _now: u64) {
        let _ = self.arenas.len();
        CONTRACT.request_poll();
    }

    fn warnings(self) -> Vec<String> {
        self.warnings
    }
}

/// Locks all memory except the arenas', so that code does not fault when it first runs. Returns what could not be locked.
#[cfg(target_os = "linux")]
fn lock_memory(arenas: &[&dyn Arena]) -> Option<String> {
    let locked = tripoint::contract::linux::lock_memory(arenas);
    (!locked.is_whole()).then(|| locked.to_string())
}

/// Locks nothing: this system has no way that we know.
#[cfg(not(target_os = "linux"))]
const fn lock_memory(_arenas: &[&dyn Arena]) -> Option<String> {
    None
}

/// The day that is played while the contract's driver decides.
const REHEARSAL: DayOptions = DayOptions { seed: 1, messages: 3_000, live: 300, symbols: 10 };

const fn rehearsal_plan(plan: Plan) -> Plan {
    let _ = plan;
    Plan::of_live(4_000)
}

/// The hot thread's work, wherever orders live.
struct Keep<'a> {
    options: &'a RunOptions,
    arena: &'a ArenaVm,
    taker: Taker<Block>,
    shared: &'a Shared,
    /// Where to write all levels at the end.
    book: Option<Output>,
}

impl Visitor for Keep<'_> {
    type Out = Result<Outcome, String>;

    fn visit<P: Places>(self, [books, rehearsed]: [Books<P>; 2]) -> Self::Out {
        let Self { options, arena, mut taker, shared, book } = self;
        touch_stack();
        let names: Vec<_> = options.inputs.iter().map(|path| stock_of(path)).collect();
        let mut keeper = Keeper::new(books, options.outputs.wanted());
        let mut rehearsal = Rehearsal::new(rehearsed);
        let mut injector = Injector::new(options.inject, arena)?;
        let mut deframer = Deframer::new(Form::File);
        let mut latencies = Histogram::new();
        let mut busy = Duration::ZERO;
        let mut start = None;
        let mut pace = options.pace.map(Pace::new);
        let mut stopped = None;
        let mut number = 0;
        let guard =
            CONTRACT.register(hot_thread(options.home, "books")).map_err(|error| error.to_string())?;
        let (mut form, mut input) = (Form::File, None);
        while stopped.is_none()
            && let Some(mut block) = taker.take()
        {
            if let Some((begun, true)) = block.form {
                (form, input) = (begun, Some(input.map_or(0, |input: usize| input + 1)));
                deframer = Deframer::new(form);
                if form == Form::Lobster {
                    let input = input.unwrap_or(0);
                    keeper.begin_lobster(input, names.get(input).copied());
                }
            }
            keeper.notebook.swap(&mut block.notes);
            let mut clock = Instant::now();
            for frame in deframer.frames(&block.bytes, block.offset) {
                if number == options.warmup && start.is_none() {
                    start = Some(warm_up(shared, arena, &mut rehearsal, &guard));
                    clock = Instant::now();
                }
                if let (Some(pace), Some(_), Ok(framed)) = (&mut pace, &start, &frame) {
                    pace.wait(form, framed.bytes, || guard.check());
                    clock = Instant::now();
                }
                let kept = match frame {
                    Ok(framed) => keeper.keep(form, &framed).map_err(|cause| (framed, cause)),
                    Err((framed, fault)) => Err((framed, Cause::Frame(fault))),
                };
                if let Err((Framed { number, offset, .. }, cause)) = kept {
                    stopped = Some(Stopped { input: input.unwrap_or(0), form, number, offset, cause });
                    break;
                }
                number += 1;
                if start.is_some() {
                    let end = Instant::now();
                    let time = end - clock;
                    clock = end;
                    busy += time;
                    latencies.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
                    if latencies.len() == INJECTION_MESSAGE && injector.is_armed() {
                        injector.commit();
                    }
                }
                guard.check();
            }
            keeper.notebook.swap(&mut block.notes);
            taker.give_back(block);
        }
        // First, before making the report costs anything.
        let end = Readings::take(arena);
        guard.poll();
        guard.check();
        let steady = start.map(|start| end.since(&start)).unwrap_or_default();
        if start.is_none() && stopped.is_none() {
            // So that a short input says whether it could be armed.
            warm_up(shared, arena, &mut rehearsal, &guard);
        }
        drop(guard);
        drop(taker);
        let at = |input, what: &dyn fmt::Display| match options.name_of(input) {
            Some(name) => format!("{name}: {what}"),
            None => what.to_string(),
        };
        let mut failures: Vec<_> = stopped.iter().map(|stopped| at(stopped.input, stopped)).collect();
        let compared = keeper.orderbook.compared;
        let Unknown { messages: unknown, first } = keeper.unknown;
        let first_unknown = first.map(|(input, line)| at(input, &format_args!("line {line}")));
        if let Some(first) = &compared.first {
            let others = compared.mismatches - 1;
            failures.push(format!("{}; and {others} levels more", at(first.input, first)));
        }
        if injector.is_armed() {
            failures.push("nothing was injected: the steady part has fewer than 1000 messages".to_owned());
        }
        if let Err(broken) = keeper.books.check() {
            failures.push(format!("the books are broken: {broken}"));
        }
        if let Some(book) = book {
            failures.extend(write_book(book, &keeper.books, |locate| keeper.stock(locate).name).err());
        }
        let by_type = (0..=u8::MAX).map(|kind| (kind, keeper.by_type[usize::from(kind)]));
        let is_half = failures.is_empty()
            && stop::signal().is_none()
            && form != Form::Lobster
            && keeper.last_event != Some(END_OF_MESSAGES);
        let warnings = is_half.then(|| HALF_DAY.to_owned()).into_iter().collect();
        let books = &keeper.books;
        Ok(Outcome {
            by_type: by_type.filter(|(_, count)| *count > 0).collect(),
            messages: number,
            warmup: number - latencies.len(),
            steady_messages: latencies.len(),
            steady,
            latency: latencies.percentiles(),
            busy,
            pace: options.pace.zip(pace.map(|pace| pace.waited())),
            load: load(),
            orders: books.len(),
            levels: books.levels_live(),
            most: books.most(),
            tops: keeper.tops(),
            crossed: keeper.crossed(),
            unknown,
            first_unknown,
            compared,
            checksum: books.checksum(),
            arena_bytes: arena.sizes().committed,
            table_bytes: books.table_bytes(),
            resident: resident(),
            warnings,
            failures,
            ..Outcome::default()
        })
    }
}

/// How many messages a day has at least for each live order, if it is to reach its burst and to come back.
const BURST_MESSAGES: u64 = 40;

/// The system event that ends a day.
const END_OF_MESSAGES: u8 = b'C';

const HALF_DAY: &str =
    "the input does not end with the end of messages (system event C): it may be a part of a day";

/// What the hot thread is held to. A general allocator is called for each order: that is counted, and is no violation.
pub(crate) const fn hot_thread(home: Home, name: &'static str) -> HotThread<'static> {
    let general = ViolationSet::ALLOC.union(ViolationSet::REALLOC).union(ViolationSet::DEALLOC);
    let classes = match home {
        Home::Pools | Home::Point | Home::Owned | Home::Hand => ViolationSet::STEADY,
        _ => ViolationSet::STEADY.difference(general),
    };
    HotThread { classes, ..HotThread::new(name) }
}

/// A day that is played again and again, in books of its own.
struct Rehearsal<P: Places> {
    file: Vec<u8>,
    keeper: Keeper<P>,
    latencies: Histogram,
}

impl<P: Places> Rehearsal<P> {
    fn new(books: Books<P>) -> Self {
        let mut file = Vec::new();
        Day::new(REHEARSAL).fill(&mut file, usize::MAX);
        Self { file, keeper: Keeper::new(books, Wanted::default()), latencies: Histogram::new() }
    }

    /// Plays it once, by the same code as the input.
    fn play(&mut self, guard: &Guard<NoReason>) {
        let mut clock = Instant::now();
        for framed in Deframer::new(Form::File).frames(&self.file, 0).flatten() {
            // What cannot be, too: the code that refuses has run before.
            let _ = self.keeper.keep(Form::File, &framed);
            let end = Instant::now();
            self.latencies.record(u64::try_from((end - clock).as_nanos()).unwrap_or(u64::MAX));
            clock = end;
            guard.check();
        }
        self.keeper.books.clear();
    }
}

/// Plays the rehearsal until the process is in its steady state, or the coordinator gives up.
fn warm_up<P: Places>(
    shared: &Shared,
    arena: &ArenaVm,
    rehearsal: &mut Rehearsal<P>,
    guard: &Guard<NoReason>,
) -> Readings {
    shared.is_warm.store(true, Ordering::Release);
    while CONTRACT.phase() < Phase::SteadyState && !shared.is_given_up.load(Ordering::Acquire) {
        rehearsal.play(guard);
        let _ = core::hint::black_box(Readings::take(arena));
        ROUTES[0].pass();
    }
    arena.freeze();
    guard.check();
    Readings::take(arena)
}

/// The stock of a file of LOBSTER: what its name begins with.
fn stock_of(path: &Path) -> [u8; 8] {
    let name = path.file_name().map_or_else(Vec::new, |name| name.as_encoded_bytes().to_vec());
    let mut stock = [b' '; 8];
    for (to, from) in stock.iter_mut().zip(name.split(|&byte| byte == b'_').next().unwrap_or_default()) {
        *to = *from;
    }
    stock
}

#[inline(never)]
pub(crate) fn touch_stack() {
    core::hint::black_box(&mut [0_u8; STACK_TOUCHED]).fill(1);
}
