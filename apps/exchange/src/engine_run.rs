//! The engine and the builder of its books, each on a thread, under the steady-state contract (design/exchange.md
//! `.engine.run`).
//!
//! ```text
//!   day ══ blocks ══► [gateway ── requests, seats ──►] engine ══ feed ══► builder
//!                                     ◄── freed seats ──┘    ◄══ empty ═════┘
//! ```

use core::fmt;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use rtrb::{Consumer, Producer, RingBuffer};
use stop::threads::spawn;
use tripoint::ArenaVm;
use tripoint::contract::{Guard, NoReason, Phase};

use crate::book::{Books, Plan};
use crate::day::{Day, DayOptions};
use crate::engine::{Counts, Engine};
use crate::feed::{Feed, FeedBlock, Flaw, feed};
use crate::follow::Follower;
use crate::frames::{Deframer, Form};
use crate::gateway::seats::{HeapSeat, HeapSeats, PoolSeats};
use crate::gateway::{Handed, Received, SLIPS, Seats, Slip, VACANT, send};
use crate::handoff::{self, Taker};
use crate::homes::{
    HomeOf, HomeVisitor, PointedLevel, PointedOrder, Visitor, pools_for, warm, with_books, with_homes,
};
use crate::input::{Block, Source};
use crate::places::heap::{Global, Heap};
use crate::places::stored::Stored;
use crate::places::{Home, Places};
use crate::report::{Commas, known, line};
use crate::run::{
    CONTRACT, Outcome, ROUTES, Shared, create_arena, hot_thread, no_thread, touch_stack, watch,
};
use crate::steady::Readings;

/// Books that are not used: the two that a home makes are one for each plan.
const NO_BOOKS: Plan = Plan::of_live(1);

/// What a run of the engine is asked for.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    pub day: DayOptions,
    pub home: Home,
    pub plan: Plan,
    /// Requests before the arena is frozen.
    pub warmup: u64,
    /// Whether a gateway's thread allocates orders.
    pub gateway: bool,
    pub flaw: Option<Flaw>,
}

/// What a thread came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub steady: Option<Readings>,
    /// Requests, or messages, of the steady part, and the time that it took.
    pub count: u64,
    pub time: Duration,
}

/// What a run of the engine came to.
#[derive(Debug)]
pub struct EngineOutcome {
    pub counts: Counts,
    pub messages: u64,
    /// Messages of each type that the builder read.
    pub by_type: Vec<(u8, u64)>,
    pub books_compared: u64,
    pub levels_compared: u64,
    pub orders: usize,
    pub levels: usize,
    pub sum: u64,
    /// The hot threads by name.
    pub work: Vec<(&'static str, Work)>,
    pub time: Duration,
    /// What the contract says.
    pub contract: Outcome,
    pub failures: Vec<String>,
}

/// What the threads share.
struct Common<'a> {
    options: &'a EngineOptions,
    arena: &'a ArenaVm,
    shared: &'a Shared,
}

/// Runs engine and builder, and compares after every message. It can be called once in a process.
///
/// # Errors
/// If the run could not begin.
pub fn run_engine(options: &EngineOptions) -> Result<EngineOutcome, String> {
    if options.gateway && !matches!(options.home, Home::Pools | Home::System) {
        return Err(format!(
            "orders in {} cannot be freed by another thread than the one that allocated them: with --gateway use \
             pools or system",
            options.home
        ));
    }
    let arena = create_arena()?;
    CONTRACT.begin_init().map_err(|error| error.to_string())?;
    let (filler, taker) = handoff::round(Block::touched);
    let (feed, followed) = feed(options.flaw)?;
    let shared = Shared::default();
    let common = &Common { options, arena: &arena, shared: &shared };
    let day = Day::new(options.day);
    let middles: Vec<_> = (1..=options.day.symbols).map(|locate| day.middle(locate)).collect();
    drop(day);
    let desk = Desk { common, feed, middles: &middles };
    let start = Instant::now();
    // Made here, so that it outlives both threads that have units of it.
    let pools = pools_for(&arena, Plan { orders: options.plan.orders + SLIPS, ..options.plan })?;
    thread::scope(|scope| {
        let reader = spawn(scope, "reader", move || filler.send_all(Source::day(options.day, false)))
            .map_err(no_thread)?;
        let builder = spawn(scope, "builder", move || {
            let follow = Build { common, followed };
            with_books(options.home, common.arena, [options.plan, NO_BOOKS], follow)?
        })
        .map_err(no_thread)?;
        let mut gateway = None;
        let engine = match (options.gateway, options.home) {
            (false, _) => spawn(scope, "engine", move || {
                let serve = Serve { desk, taker };
                with_homes(options.home, common.arena, [options.plan, NO_BOOKS], serve)?
            }),
            (true, Home::Pools) => {
                let [orders, levels] = &pools;
                warm::<PointedOrder, _>(orders)?;
                warm::<PointedLevel, _>(levels)?;
                let (to_engine, slips) = touched_ring();
                gateway = Some(
                    spawn(scope, "gateway", move || {
                        let cache = orders.cache();
                        let seat = || cache.pool_boxed(VACANT).ok();
                        forward::<PoolSeats<'_>>(common, taker, to_engine, seat)
                    })
                    .map_err(no_thread)?,
                );
                spawn(scope, "engine", move || {
                    let cache = levels.cache();
                    let orders = Handed::new(PoolSeats::new(orders));
                    let home =
                        HomeOf::<Received<_, _>> { orders, levels: Stored::new(&cache), plan: options.plan };
                    desk.serve_slips(home, slips)
                })
            }
            (true, _) => {
                let (to_engine, slips) = touched_ring();
                gateway = Some(
                    spawn(scope, "gateway", move || {
                        forward::<HeapSeats<Global>>(common, taker, to_engine, || HeapSeat::new(Global))
                    })
                    .map_err(no_thread)?,
                );
                spawn(scope, "engine", move || {
                    let (orders, levels) = (Handed::new(HeapSeats(Global)), Heap::new(Global));
                    let home = HomeOf::<Received<_, _>> { orders, levels, plan: options.plan };
                    desk.serve_slips(home, slips)
                })
            }
        }
        .map_err(no_thread)?;
        let watched = watch(&arena, &shared, || engine.is_finished() && builder.is_finished());
        let served = join(engine, "engine")??;
        let built = join(builder, "builder")??;
        let forwarded = gateway.map(|gateway| join(gateway, "gateway")).transpose()?.transpose()?;
        join(reader, "reader")??;
        let mut contract = Outcome::default();
        watched.add_to(&mut contract);
        let mut failures = core::mem::take(&mut contract.failures);
        if !contract.is_armed && failures.is_empty() && stop::signal().is_none() {
            failures.push("no steady part: the day ended within the warm-up (see --warmup)".to_owned());
        }
        failures.extend(built.difference.clone());
        if built.difference.is_none() && built.sums != served.sums {
            failures.push("at the end the sums of engine and builder differ".to_owned());
        }
        if options.flaw.is_some() && failures.is_empty() {
            failures.push("the flaw was not found, or no message could have it".to_owned());
        }
        let mut work = vec![("engine", served.work), ("builder", built.work)];
        work.extend(forwarded.map(|work| ("gateway", work)));
        Ok(EngineOutcome {
            counts: served.counts,
            messages: served.messages,
            by_type: built.by_type,
            books_compared: built.compared,
            levels_compared: built.levels_compared,
            orders: built.orders,
            levels: built.levels,
            sum: built.sums,
            work,
            time: start.elapsed(),
            contract,
            failures,
        })
    })
}

fn join<T>(thread: ScopedJoinHandle<'_, T>, name: &str) -> Result<T, String> {
    thread.join().map_err(|_| format!("the {name}'s thread panicked"))
}

/// A ring of slips whose memory has been written to.
fn touched_ring<S>() -> (Producer<Slip<S>>, Consumer<Slip<S>>) {
    let (mut to_engine, slips) = RingBuffer::<Slip<S>>::new(SLIPS);
    if let Ok(mut places) = to_engine.write_chunk_uninit(SLIPS) {
        let (first, second) = places.as_mut_slices();
        for place in first.iter_mut().chain(second) {
            let bytes = core::hint::black_box(place.as_mut_ptr().cast::<u8>());
            // SAFETY: a place for a slip, which takes bytes, and in which there is none: the chunk is not committed.
            unsafe { bytes.write_bytes(0, size_of::<Slip<S>>()) };
        }
    }
    (to_engine, slips)
}

/// Readings and the time when the steady part began.
struct Start {
    readings: Readings,
    time: Instant,
    count: u64,
}

impl Start {
    /// What came since.
    fn work(start: Option<&Self>, arena: &ArenaVm, count: u64) -> Work {
        let now = Readings::take(arena);
        start.map_or_else(Work::default, |start| Work {
            steady: Some(now.since(&start.readings)),
            count: count - start.count,
            time: start.time.elapsed(),
        })
    }
}

impl Common<'_> {
    /// Waits until the contract's driver has armed all hot threads, or it makes no sense to go on. All code of the steady
    /// part has run in the warm-up.
    fn warm_up(&self, guard: &Guard<NoReason>, count: u64, goes_on: impl Fn() -> bool) -> Start {
        while CONTRACT.phase() < Phase::SteadyState
            && !self.shared.is_given_up.load(Ordering::Acquire)
            && goes_on()
        {
            let _ = core::hint::black_box(Readings::take(self.arena));
            guard.check();
            ROUTES[0].pass();
            thread::yield_now();
        }
        guard.check();
        Start { readings: Readings::take(self.arena), time: Instant::now(), count }
    }
}

/// The engine's end of everything.
struct Desk<'a> {
    common: &'a Common<'a>,
    feed: Feed,
    middles: &'a [u32],
}

/// What the engine came to.
struct Served {
    counts: Counts,
    messages: u64,
    sums: u64,
    work: Work,
}

fn sum_of_sums(sums: &[u64]) -> u64 {
    sums.iter().fold(0, |sum, &of_book| (sum ^ of_book).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

/// An engine at work.
struct Service<'a, P: Places> {
    common: &'a Common<'a>,
    engine: Engine<P>,
    feed: Feed,
    guard: Guard<NoReason>,
    start: Option<Start>,
}

impl<'a> Desk<'a> {
    fn open<P: Places>(self, home: HomeOf<P>) -> Result<Service<'a, P>, String> {
        touch_stack();
        let engine = Engine::new(home, self.middles);
        let contract = hot_thread(self.common.options.home, "engine");
        let guard = CONTRACT.register(contract).map_err(|error| error.to_string())?;
        Ok(Service { common: self.common, engine, feed: self.feed, guard, start: None })
    }

    /// Serves requests that come from the gateway.
    fn serve_slips<S: Seats, L>(
        self,
        home: HomeOf<Received<S, L>>,
        mut slips: Consumer<Slip<S::Seat>>,
    ) -> Result<Served, String>
    where
        L: crate::places::Place<PointedLevel, Name = crate::places::stored::Pointer>,
    {
        let mut service = self.open(home)?;
        while let Some(mut slip) = handoff::take(&mut slips) {
            service.engine.orders_mut().hand(slip.seat.take());
            let goes_on = service.request(slip.bytes())?;
            service.engine.orders_mut().release();
            if !goes_on {
                break;
            }
        }
        Ok(service.close())
    }
}

impl<P: Places> Service<'_, P> {
    /// Serves a request. Returns whether the builder is still there.
    #[inline]
    fn request(&mut self, bytes: &[u8]) -> Result<bool, String> {
        self.engine.request(bytes, &mut self.feed).map_err(|malformed| malformed.to_string())?;
        if self.feed.is_nearly_full() {
            self.engine.publish_levels(&mut self.feed);
            self.feed.send();
        }
        if self.start.is_none() && self.engine.counts().requests == self.common.options.warmup {
            self.engine.publish_levels(&mut self.feed);
            self.feed.send_last_of_warmup();
            let feed = &self.feed;
            let count = self.engine.counts().requests;
            self.start = Some(self.common.warm_up(&self.guard, count, || !feed.is_abandoned()));
        }
        self.guard.check();
        Ok(!self.feed.is_abandoned())
    }

    /// Publishes what is left, and all levels.
    fn close(mut self) -> Served {
        let work = Start::work(self.start.as_ref(), self.common.arena, self.engine.counts().requests);
        self.guard.poll();
        self.guard.check();
        drop(self.guard);
        // What is left of the turn of the stocks, and one whole turn.
        for _ in 0..2 {
            while !self.feed.is_abandoned() {
                let is_last = self.engine.publish_levels(&mut self.feed);
                self.feed.send();
                if is_last {
                    break;
                }
            }
        }
        Served {
            counts: self.engine.counts(),
            messages: self.feed.messages(),
            sums: sum_of_sums(self.engine.sums()),
            work,
        }
    }
}

/// The engine's thread without a gateway.
struct Serve<'a> {
    desk: Desk<'a>,
    taker: Taker<Block>,
}

impl HomeVisitor for Serve<'_> {
    type Out = Result<Served, String>;

    fn visit<P: Places>(self, [home, _]: [HomeOf<P>; 2]) -> Self::Out {
        let mut service = self.desk.open(home)?;
        let mut taker = self.taker;
        let mut deframer = Deframer::new(Form::File);
        let mut goes_on = true;
        while let Some(block) = taker.take() {
            for frame in deframer.frames(&block.bytes, block.offset) {
                let framed = frame.map_err(|(_, fault)| fault.to_string())?;
                goes_on = service.request(framed.bytes)?;
                if !goes_on {
                    break;
                }
            }
            taker.give_back(block);
            if !goes_on {
                break;
            }
        }
        Ok(service.close())
    }
}

/// The gateway's thread: takes a seat for each order that may rest, and hands it over with the request.
fn forward<S: Seats>(
    common: &Common<'_>,
    mut taker: Taker<Block>,
    mut to_engine: Producer<Slip<S::Seat>>,
    mut seat: impl FnMut() -> Option<S::Seat>,
) -> Result<Work, String> {
    touch_stack();
    let contract = hot_thread(common.options.home, "gateway");
    let guard = CONTRACT.register(contract).map_err(|error| error.to_string())?;
    let mut deframer = Deframer::new(Form::File);
    let (mut count, mut start) = (0, None);
    while let Some(block) = taker.take() {
        for frame in deframer.frames(&block.bytes, block.offset) {
            let framed = frame.map_err(|(_, fault)| fault.to_string())?;
            if to_engine.is_abandoned() {
                break;
            }
            let needs_seat = Slip::<S::Seat>::needs_seat(framed.bytes);
            let slip = Slip::new(framed.bytes, if needs_seat { seat() } else { None });
            let is_sent = send(&mut to_engine, slip, || {
                guard.check();
                thread::yield_now();
            });
            if !is_sent {
                break;
            }
            count += 1;
            guard.check();
            if count == common.options.warmup {
                let goes_on = || !to_engine.is_abandoned();
                start = Some(common.warm_up(&guard, count, goes_on));
            }
        }
        taker.give_back(block);
        if to_engine.is_abandoned() {
            break;
        }
    }
    let work = Start::work(start.as_ref(), common.arena, count);
    guard.poll();
    guard.check();
    drop(guard);
    Ok(work)
}

/// The builder's thread.
struct Build<'a> {
    common: &'a Common<'a>,
    followed: Taker<FeedBlock>,
}

/// What the builder came to.
struct Built {
    difference: Option<String>,
    by_type: Vec<(u8, u64)>,
    compared: u64,
    levels_compared: u64,
    orders: usize,
    levels: usize,
    sums: u64,
    work: Work,
}

impl Visitor for Build<'_> {
    type Out = Result<Built, String>;

    fn visit<P: Places>(self, [books, _]: [Books<P>; 2]) -> Self::Out {
        let Self { common, mut followed } = self;
        touch_stack();
        let mut follower = Follower::new(books, common.options.day.symbols);
        let contract = hot_thread(common.options.home, "builder");
        let guard = CONTRACT.register(contract).map_err(|error| error.to_string())?;
        let (mut start, mut difference, mut count) = (None, None, 0_u64);
        while let Some(block) = followed.take() {
            difference = follower.follow(&block, || guard.check()).err();
            count += block.sums.len() as u64;
            let ends_warmup = block.ends_warmup;
            followed.give_back(block);
            if difference.is_some() {
                break;
            }
            if ends_warmup {
                // The engine's thread has registered: it sent this.
                common.shared.is_warm.store(true, Ordering::Release);
                start = Some(common.warm_up(&guard, count, || true));
            }
        }
        let work = Start::work(start.as_ref(), common.arena, count);
        guard.poll();
        guard.check();
        drop(guard);
        drop(followed);
        let mut difference = difference.map(|found| found.to_string());
        if let (None, Err(broken)) = (&difference, follower.books.check()) {
            difference = Some(format!("the books are broken: {broken}"));
        }
        let by_type = (0..=u8::MAX).map(|kind| (kind, follower.by_type[usize::from(kind)]));
        Ok(Built {
            difference,
            by_type: by_type.filter(|(_, count)| *count > 0).collect(),
            compared: follower.compared,
            levels_compared: follower.levels_compared,
            orders: follower.books.len(),
            levels: follower.books.levels_live(),
            sums: sum_of_sums(follower.sums()),
            work,
        })
    }
}

impl fmt::Display for EngineOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { requests, trades, placeless, late, outside, refused } = self.counts;
        line(
            f,
            "requests",
            format_args!(
                "{}: {} too late, {} outside of their band, {} refused",
                Commas(requests),
                Commas(late),
                Commas(outside),
                Commas(refused)
            ),
        )?;
        line(f, "trades", format_args!("{}, {} orders had no place", Commas(trades), Commas(placeless)))?;
        let types: Vec<_> = self
            .by_type
            .iter()
            .map(|(kind, count)| format!("{} {}", char::from(*kind), Commas(*count)))
            .collect();
        line(f, "messages", format_args!("{}: {}", Commas(self.messages), types.join(", ")))?;
        line(
            f,
            "compared",
            format_args!(
                "a sum after each message, {} books with {} levels",
                Commas(self.books_compared),
                Commas(self.levels_compared)
            ),
        )?;
        line(
            f,
            "live orders",
            format_args!("{} in {} levels", Commas(self.orders as u64), Commas(self.levels as u64)),
        )?;
        line(f, "hash of all books", format_args!("{:016x}", self.sum))?;
        for (name, Work { steady, count, time }) in &self.work {
            let Some(steady) = steady else {
                line(
                    f,
                    name,
                    format_args!("no steady part: the day ended within the warm-up (see --warmup)"),
                )?;
                continue;
            };
            let faults = steady.minor_faults.zip(steady.major_faults);
            let faults = known(faults.map(|(minor, major)| minor + major));
            let interruptions = known(steady.interruptions);
            line(
                f,
                name,
                format_args!(
                    "steady: {} in {:.1} s; arena growth {}, allocator calls {}, memory calls {}, page faults {faults}; \
                     interrupted {interruptions} times",
                    Commas(*count),
                    time.as_secs_f64(),
                    steady.arena_growth,
                    Commas(steady.allocator_calls),
                    steady.memory_calls
                ),
            )?;
        }
        line(f, "whole run", format_args!("{:.1} s", self.time.as_secs_f64()))?;
        self.contract.write_contract(f)
    }
}
