//! A program with contract and telemetry that can be wired in many ways, right and wrong: `wired PATH SWITCH...`
//! (cli/tests/view/wired.rs). It runs until its input ends.

use std::collections::BTreeSet;
use std::error::Error;
use std::hint::black_box;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;

use tripoint::contract::{
    AmnestyReason, Arenas, Budget, Contract, ContractAllocator, DetectorSet, HotThread, PoolEvents, Route,
    ViolationSet, WarmupOptions,
};
use tripoint::events::{Event, EventHook};
use tripoint::telemetry::{FileOptions, Room, Telemetry};
use tripoint::{Arena, ArenaVm, ArenaVmOptions, Mfs, MfsOptions, UnitOf};

#[global_allocator]
static ALLOCATOR: ContractAllocator = ContractAllocator::system();

#[derive(Clone, Copy, Debug)]
struct Quiet;

impl AmnestyReason for Quiet {
    const NAMES: &'static [&'static str] = &["quiet"];

    fn index(self) -> usize {
        0
    }
}

static CONTRACT: Contract<Quiet> = Contract::new();
static ROUTES: [Route; 2] = [Route::with_minimum("first", 100), Route::with_minimum("second", 100)];

/// A hook of the program's own, which passes on events and nothing else.
struct Forwards(&'static Telemetry);

impl EventHook for Forwards {
    fn event(&self, event: Event) {
        self.0.event(event);
    }

    fn event_at(&self, event: Event, site: &[usize]) {
        self.0.event_at(event, site);
    }
}

/// Another hook of the program's own.
struct Counts(AtomicUsize);

impl EventHook for Counts {
    fn event(&self, _: Event) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Three violations, of three lines.
#[inline(never)]
fn leaks() {
    let mut list = black_box(vec![7_u64; 8]);
    list.push(7);
    drop(black_box(list));
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("where is the telemetry to be?")?;
    let switches: BTreeSet<String> = arguments.collect();
    let is = |switch: &str| switches.contains(switch);

    let tallies = if is("no room") { 0 } else if is("little room") { 4 } else { 8 };
    let room = Room { tallies, ..Room::default() };
    let options = FileOptions { path: Some(Path::new(&path)), room, ..FileOptions::default() };
    let telemetry: &'static Telemetry = Box::leak(Box::new(Telemetry::create(&options)?));
    let counts: &'static Counts = Box::leak(Box::new(Counts(AtomicUsize::new(0))));
    let hook: &'static dyn EventHook = match () {
        () if is("forwards") => Box::leak(Box::new(Forwards(telemetry))),
        () if is("pair") => Box::leak(Box::new((telemetry, counts))),
        () if is("pair reversed") => Box::leak(Box::new((counts, telemetry))),
        () => telemetry,
    };
    if is("late") {
        CONTRACT.begin_init()?;
    }
    if !is("not observed") {
        // Some programs do not look.
        let observed = CONTRACT.observe_with(hook);
        assert_eq!(observed.is_err(), is("late") || is("little room"), "{observed:?}");
    }
    if !is("late") {
        CONTRACT.begin_init()?;
    }

    let hook: &'static dyn EventHook = match () {
        () if is("arena only to telemetry") => Box::leak(Box::new(telemetry.arena_hook())),
        () if is("arena only to contract") => Box::leak(Box::new(PoolEvents)),
        () => Box::leak(Box::new((PoolEvents, telemetry.arena_hook()))),
    };
    let options = ArenaVmOptions { event_hook: Some(hook), ..ArenaVmOptions::default() };
    let arena = if is("no arena") { None } else { Some(ArenaVm::create(options)?) };
    let options = MfsOptions::default();
    let pool = arena.as_ref().map(|arena| Mfs::create(arena, UnitOf::<[u64; 4]>::new(), options)).transpose()?;

    let detectors = if is("faults too") {
        DetectorSet::ALLOCATOR.union(DetectorSet::FAULT_POLL)
    } else {
        DetectorSet::ALLOCATOR
    };
    let classes = if is("held to fills") { ViolationSet::FILL } else { ViolationSet::STEADY };
    let thread = HotThread { detectors, classes, ..HotThread::new("first") };
    if is("by hand") {
        let guard = CONTRACT.register(thread)?;
        guard.arm();
        if is("leak") {
            leaks();
        }
        drop(guard);
        return Ok(());
    }
    if is("no hot thread") || is("leaves early") {
        if is("leaves early") {
            drop(CONTRACT.register(thread)?);
        }
        CONTRACT.begin_warmup()?;
        CONTRACT.enter_steady_state(&())?;
        return end(&is);
    }
    if is("the second never checks") || is("the second leaves early") {
        return beside_the_second(&is, thread);
    }
    if is("never checks") {
        let _guard = CONTRACT.register(thread)?;
        CONTRACT.begin_warmup()?;
        CONTRACT.enter_steady_state(&())?;
        return end(&is);
    }
    // The main thread may be one of the contract's, too.
    let cold = is("cold").then(|| CONTRACT.register_cold("logger", Budget::new(1_000, 1 << 20, 1_000_000_000)));
    let _cold = cold.transpose()?;
    run(&is, thread, pool.as_ref(), arena.as_ref())
}

/// The first is armed, and the second leaves without a check: in the steady state, or before.
fn beside_the_second(
    is: &impl Fn(&str) -> bool,
    thread: HotThread<'static>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let first = CONTRACT.register(thread)?;
    std::thread::scope(|scope| {
        let (registered, is_registered) = channel();
        let (leave, may_leave) = channel::<()>();
        let second = scope.spawn(move || -> tripoint::Result<()> {
            let _guard = CONTRACT.register(HotThread { name: "second", ..thread })?;
            let _ = registered.send(());
            let _ = may_leave.recv();
            Ok(())
        });
        is_registered.recv()?;
        if is("the second never checks") {
            CONTRACT.begin_warmup()?;
            CONTRACT.enter_steady_state(&())?;
            drop(leave);
            second.join().map_err(|_| "the second panicked")??;
        } else {
            drop(leave);
            second.join().map_err(|_| "the second panicked")??;
            CONTRACT.begin_warmup()?;
            CONTRACT.enter_steady_state(&())?;
        }
        first.check();
        drop(first);
        end(is)
    })
}

fn run<'p>(
    is: &(impl Fn(&str) -> bool + Sync),
    thread: HotThread<'static>,
    pool: Option<&'p Mfs<&'p ArenaVm, UnitOf<[u64; 4]>>>,
    arena: Option<&ArenaVm>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    CONTRACT.run(|run| {
        let names: &[&'static str] = if is("two") { &["first", "second"] } else { &["first"] };
        for (index, name) in names.iter().enumerate() {
            run.hot(HotThread { name, ..thread }, move |hot| {
                let mut leaks_left = usize::from(is("leak") && index + 1 == names.len());
                let cache = pool.map(Mfs::cache);
                let guard = hot.register()?;
                if is("leak before") {
                    leaks();
                }
                while hot.goes_on() {
                    let order = cache.as_ref().map(|cache| cache.boxed([61_659; 4])).transpose()?;
                    if CONTRACT.is_armed() && leaks_left > 0 {
                        leaks_left -= 1;
                        let _amnesty = is("excused").then(|| guard.amnesty(Quiet));
                        leaks();
                    }
                    drop(black_box(order));
                    ROUTES[index].pass();
                    guard.check();
                }
                Ok(())
            })?;
        }
        if is("never warm") {
            return Ok(());
        }
        let arenas: Vec<&dyn Arena> = arena.iter().map(|&arena| arena as &dyn Arena).collect();
        let options = WarmupOptions { quiet_window: 5_000_000, ..WarmupOptions::default() }; // ns
        run.warm_up(&ROUTES[..names.len()], &Arenas::new(&arenas), options)?;
        if is("cold leak") {
            leaks();
        }
        end(is).map_err(|error| error.to_string().into())
    })?;
    if is("teardown") {
        CONTRACT.begin_teardown(&())?;
    }
    Ok(())
}

/// Says that the run is steady, and waits until the input ends.
fn end(is: &impl Fn(&str) -> bool) -> Result<(), Box<dyn Error + Send + Sync>> {
    println!("steady");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    if is("killed") {
        std::process::abort();
    }
    Ok(())
}
