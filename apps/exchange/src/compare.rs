//! The same day in one process, with orders in one home after the other: chunk by chunk, in an order that is drawn
//! (design/exchange.md `.compare`).
//!
//! | phase | what happens |
//! |---|---|
//! | `open` | the books fill up to `--live` orders; no memory has been touched that a home did not touch itself |
//! | `steady` | as many orders come as go |
//! | `down` | nine of ten orders are deleted, in an order that is drawn |
//! | `burst` | ten times as many orders come in a row |
//! | `back` | and are deleted again, in an order that is drawn |
//! | `night` | the rest is deleted; nothing is timed that a home does then |
//! | `morning` | the books fill up as at `open` |
//! | `second` | steady again, on memory that has aged |
//! | `noisy` | the same, while another thread allocates and frees in the same home, if that can be shared |
//!
//! At the end all orders that are left are dropped.

mod entrants;
mod gateway;
mod neighbour;
mod phases;
mod picture;
mod pinning;
mod processes;
mod tables;

use core::alloc::GlobalAlloc;
use core::cell::RefCell;
use core::fmt;
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::time::Instant;

pub use entrants::{Entrant, all};
pub use gateway::{HandedOver, HandedRow, compare_handed};
pub use phases::Phase;
pub use processes::compare_in_processes;
pub use tables::{Comparison, Row, Table};
use tripoint::{AllocationPoint, ArenaVm, ArenaVmOptions, Mfs, Prefault};

use self::neighbour::{Neighbour, beside, churn, elsewhere, on_heap_too};
use crate::book::{Books, Level, Order, Plan};
use crate::day::{Day, DayOptions};
use crate::frames::{Deframer, Form};
use crate::histogram::Histogram;
use crate::homes::pools_for;
use crate::itch::parse;
use crate::places::Places;
use crate::places::hand::{Hand, Index, Slots};
use crate::places::heap::{Heap, Heaps};
use crate::places::known::{Known, Planned, Planner, Planning};
use crate::places::point::{Pointed, Points};
use crate::places::stored::{OwnedPools, Pointer, Pools, Stored, options_for, unit_of};
use crate::random::Random;
use crate::steady::{resident, usage_of_this_thread};

/// What a comparison is asked for.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    pub day: DayOptions,
    /// What the order of the entrants is drawn from.
    pub draw: u64,
    pub phases: Vec<Phase>,
    pub entrants: Vec<Entrant>,
    /// Messages that an entrant has before it is the turn of the next.
    pub chunk: usize,
    /// Chunks of a steady phase.
    pub chunks: usize,
}

/// Books in a home.
trait Contender {
    /// Applies a chunk of messages; with a histogram, each of them is timed.
    fn replay(&mut self, chunk: &[u8], histogram: Option<&mut Histogram>) -> Result<Duration, String>;

    /// The sum of all books.
    fn checksum(&self) -> u64;

    /// What its home does while no message comes.
    fn be_quiet(&mut self);

    /// Takes the places that the next objects are to get; other homes than `known` choose by themselves.
    fn follow(&mut self, plan: &[Vec<Index>; 2]);

    /// Ends all orders, and says how long that took.
    fn end(self: Box<Self>) -> Duration;
}

struct In<'a, P: Places> {
    books: Books<P>,
    be_quiet: Box<dyn FnMut() + 'a>,
    follow: fn(&mut Books<P>, &[Vec<Index>; 2]),
}

impl<P: Places> Contender for In<'_, P> {
    #[inline(never)]
    fn replay(&mut self, chunk: &[u8], histogram: Option<&mut Histogram>) -> Result<Duration, String> {
        replay(&mut self.books, chunk, histogram)
    }

    fn checksum(&self) -> u64 {
        self.books.checksum()
    }

    fn be_quiet(&mut self) {
        (self.be_quiet)();
    }

    fn follow(&mut self, plan: &[Vec<Index>; 2]) {
        (self.follow)(&mut self.books, plan);
    }

    fn end(self: Box<Self>) -> Duration {
        self.books.end()
    }
}

fn replay<P: Places>(
    books: &mut Books<P>,
    chunk: &[u8],
    histogram: Option<&mut Histogram>,
) -> Result<Duration, String> {
    let start = Instant::now();
    let mut deframer = Deframer::new(Form::File);
    let apply = |books: &mut Books<P>, bytes| {
        let message = parse(bytes).map_err(|malformed| malformed.to_string())?;
        books.apply(&message).map_err(|refused| refused.to_string())
    };
    match histogram {
        None => {
            for framed in deframer.frames(chunk, 0).flatten() {
                apply(books, framed.bytes)?;
            }
        }
        Some(histogram) => {
            let mut clock = start;
            for framed in deframer.frames(chunk, 0).flatten() {
                apply(books, framed.bytes)?;
                let end = Instant::now();
                histogram.record(u64::try_from((end - clock).as_nanos()).unwrap_or(u64::MAX));
                clock = end;
            }
        }
    }
    Ok(start.elapsed())
}

/// What is known of an entrant meanwhile.
struct Account {
    entrant: Entrant,
    /// Bytes that the process got in its turns.
    bytes: i64,
    histogram: Histogram,
    /// Time of a message in each chunk without a clock.
    chunks: Vec<f64>,
    timed: Vec<f64>,
    faults: u64,
}

/// Books in a home, and what another thread does there.
type Pair<'a> = (Box<dyn Contender + 'a>, Neighbour<'a>);

struct Entry<'a> {
    account: Account,
    contender: Box<dyn Contender + 'a>,
    neighbour: Neighbour<'a>,
}

/// Replays the day in all homes.
///
/// # Errors
/// If there is too little memory, or books differ.
pub fn compare(options: &CompareOptions) -> Result<Comparison, String> {
    let processors = pinning::pin();
    let mut order = options.entrants.clone();
    order.sort_unstable();
    order.dedup();
    // Who comes first in a process may be slower.
    Random::new(options.draw ^ 7).shuffle(&mut order);
    let stage = Stage { options, processors, ends: RefCell::default() };
    let tables = with_entrants(&order, &stage, Vec::new())?;
    let mut ends = stage.ends.into_inner();
    ends.sort_by_key(|(entrant, _)| *entrant);
    Ok(Comparison { tables, ends, live: options.day.live, processor: stage.processors.map(|(own, _)| own) })
}

/// What all entrants share.
struct Stage<'s> {
    options: &'s CompareOptions,
    processors: Option<(usize, Vec<usize>)>,
    ends: RefCell<Vec<(Entrant, Duration)>>,
}

impl Stage<'_> {
    /// Adds to the time that the end of an entrant took.
    fn add_end(&self, entrant: Entrant, time: Duration) {
        let mut ends = self.ends.borrow_mut();
        match ends.iter_mut().find(|(other, _)| *other == entrant) {
            Some((_, sum)) => *sum += time,
            None => ends.push((entrant, time)),
        }
    }
}

/// Memory for all that may be live: those that live all day, and those that come and go.
fn plan_of(options: &CompareOptions) -> Plan {
    let orders = options.day.live + options.day.live / 4 + 100_000;
    Plan { orders, levels: orders / 2 }
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

fn enter<'a, P: Places + 'a>(books: Books<P>) -> Pair<'a>
where
    P::Orders: 'a,
    P::Levels: 'a,
    P::Name: 'a,
{
    (Box::new(In { books, be_quiet: Box::new(|| ()), follow: |_, _| () }), elsewhere())
}

/// Makes the home of the next entrant, which lives as long as the comparison, and goes on with the others.
fn with_entrants<'a>(
    rest: &[Entrant],
    stage: &Stage<'_>,
    mut entries: Vec<Entry<'a>>,
) -> Result<Vec<Table>, String> {
    let Some((&entrant, rest)) = rest.split_first() else { return play(stage, entries) };
    let plan = plan_of(stage.options);
    let before = resident_bytes();
    let mut go_on = |(contender, neighbour): Pair<'a>| {
        let account = Account {
            entrant,
            bytes: resident_bytes() - before,
            histogram: Histogram::new(),
            chunks: Vec::new(),
            timed: Vec::new(),
            faults: 0,
        };
        entries.push(Entry { account, contender, neighbour });
        with_entrants(rest, stage, core::mem::take(&mut entries))
    };
    let slots = |orders, levels| Books::<Hand>::new(orders, levels, plan);
    let (most, levels) = (plan.orders, plan.level_room());
    match entrant {
        Entrant::Hand => go_on(enter(slots(Slots::new(most), Slots::new(levels)))),
        Entrant::HandTouched => go_on(enter(slots(Slots::touched(most), Slots::touched(levels)))),
        Entrant::HandHuge => go_on(enter(slots(Slots::huge(most), Slots::huge(levels)))),
        Entrant::Known => {
            let orders = Known::new(plan.orders, Order::filler(Index::MIN));
            let books = Books::<Planned>::new(orders, Known::new(plan.level_room(), Level::filler()), plan);
            let follow =
                |books: &mut Books<Planned>, plan: &[Vec<Index>; 2]| books.follow(&plan[0], &plan[1]);
            go_on((Box::new(In { books, be_quiet: Box::new(|| ()), follow }), elsewhere()))
        }
        Entrant::System => go_on(on_heap(plan, || std::alloc::System)),
        #[cfg(feature = "slab")]
        Entrant::Slab => {
            use crate::places::keyed::{Keyed, Slabs};
            go_on(enter(Books::<Slabs>::new(Keyed::new(plan.orders), Keyed::new(plan.level_room()), plan)))
        }
        #[cfg(feature = "mimalloc")]
        Entrant::Mimalloc => go_on(on_heap(plan, || mimalloc::MiMalloc)),
        #[cfg(feature = "jemalloc")]
        Entrant::Jemalloc => go_on(on_heap(plan, || tikv_jemallocator::Jemalloc)),
        #[cfg(feature = "snmalloc")]
        Entrant::Snmalloc => go_on(on_heap(plan, || snmalloc_rs::SnMalloc)),
        Entrant::Pools
        | Entrant::PoolsPrefault
        | Entrant::PoolsHuge
        | Entrant::PoolsTrimmed
        | Entrant::Point
        | Entrant::Owned => {
            let arena = ArenaVm::create(arena_options(entrant, plan)).map_err(text)?;
            let tables = in_pools(entrant, rest, stage, entries, before, &arena);
            // An arena that was prefaulted keeps what pools give back.
            let start = Instant::now();
            drop(arena);
            stage.add_end(entrant, start.elapsed());
            tables
        }
    }
}

/// As [`with_entrants`], for the homes that are pools of this arena.
fn in_pools<'a>(
    entrant: Entrant,
    rest: &[Entrant],
    stage: &Stage<'_>,
    entries: Vec<Entry<'a>>,
    before: i64,
    arena: &'a ArenaVm,
) -> Result<Vec<Table>, String> {
    let plan = plan_of(stage.options);
    let account = |bytes| Account {
        entrant,
        bytes,
        histogram: Histogram::new(),
        chunks: Vec::new(),
        timed: Vec::new(),
        faults: 0,
    };
    if entrant == Entrant::Owned {
        let orders = Mfs::create_owned(
            arena,
            unit_of::<Order<Pointer>>().map_err(text)?,
            options_for::<Order<Pointer>>(plan.orders),
        );
        let levels = Mfs::create_owned(
            arena,
            unit_of::<Level<Pointer>>().map_err(text)?,
            options_for::<Level<Pointer>>(plan.level_room()),
        );
        let (orders, levels) = (orders.map_err(text)?, levels.map_err(text)?);
        let books = Books::<OwnedPools<'_>>::new(Stored::new(&orders), Stored::new(&levels), plan);
        // They live as long as what they borrow.
        let mut entries: Vec<Entry<'_>> = entries;
        let (contender, neighbour) = enter(books);
        entries.push(Entry { account: account(resident_bytes() - before), contender, neighbour });
        let tables = with_entrants(rest, stage, entries);
        let start = Instant::now();
        drop((orders, levels));
        stage.add_end(entrant, start.elapsed());
        return tables;
    }
    let [orders, levels] = pools_for(arena, plan)?;
    if entrant == Entrant::Point {
        let point = |pool| AllocationPoint::create(pool).map_err(text);
        let books =
            Books::<Points<'_>>::new(Pointed::new(point(&orders)?), Pointed::new(point(&levels)?), plan);
        // They live as long as what they borrow.
        let mut entries: Vec<Entry<'_>> = entries;
        let (contender, neighbour) = enter(books);
        entries.push(Entry { account: account(resident_bytes() - before), contender, neighbour });
        let tables = with_entrants(rest, stage, entries);
        let start = Instant::now();
        drop((orders, levels));
        stage.add_end(entrant, start.elapsed());
        return tables;
    }
    let caches = [orders.cache(), levels.cache()];
    let books = Books::<Pools<'_>>::new(Stored::new(&caches[0]), Stored::new(&caches[1]), plan);
    let be_quiet: Box<dyn FnMut()> = if entrant == Entrant::PoolsTrimmed {
        Box::new(|| {
            caches.iter().for_each(tripoint::MfsCache::flush);
            let _ = orders.trim() + levels.trim();
        })
    } else {
        Box::new(|| ())
    };
    let mut entries: Vec<Entry<'_>> = entries;
    let neighbour = Box::new(|is_over: &AtomicBool| {
        let cache = orders.cache();
        churn(is_over, || cache.boxed(Order::filler(Index::MIN)).ok());
    });
    let contender = Box::new(In { books, be_quiet, follow: |_, _| () });
    entries.push(Entry { account: account(resident_bytes() - before), contender, neighbour });
    let tables = with_entrants(rest, stage, entries);
    let start = Instant::now();
    // Orders that were left go with their pool: what a cache keeps need not be returned first.
    drop(caches);
    drop((orders, levels));
    stage.add_end(entrant, start.elapsed());
    tables
}

fn on_heap<'a, A: GlobalAlloc + 'a>(plan: Plan, allocator: fn() -> A) -> Pair<'a> {
    let books = Books::<Heaps<A>>::new(Heap::new(allocator()), Heap::new(allocator()), plan);
    let contender = In { books, be_quiet: Box::new(|| ()), follow: |_, _| () };
    (Box::new(contender), Box::new(on_heap_too(allocator)))
}

fn arena_options(entrant: Entrant, plan: Plan) -> ArenaVmOptions {
    let bytes =
        plan.orders * 64 + plan.level_room() * size_of::<Level<Pointer>>().next_power_of_two() + (8 << 20);
    let plain = ArenaVmOptions { inherit_on_fork: false, ..ArenaVmOptions::default() };
    match entrant {
        Entrant::PoolsPrefault => ArenaVmOptions { prefault: Prefault::Size(bytes), ..plain },
        Entrant::PoolsHuge => {
            ArenaVmOptions { prefault: Prefault::Size(bytes), huge_pages: true, grain: 2 << 20, ..plain }
        }
        _ => plain,
    }
}

/// Plays all phases.
fn play(stage: &Stage<'_>, mut entries: Vec<Entry<'_>>) -> Result<Vec<Table>, String> {
    let options = stage.options;
    // Unless it is over, a day has as many messages as are asked for.
    let mut day = Day::new(DayOptions { messages: u64::from(u32::MAX), ..options.day });
    let plan = plan_of(stage.options);
    let mut planner =
        Books::<Planning>::new(Planner::new(plan.orders), Planner::new(plan.level_room()), plan);
    let mut random = Random::new(options.draw ^ 11);
    let mut tables = Vec::new();
    let mut chunk = Vec::new();
    for &phase in &options.phases {
        let target = phase.target(options.day.live);
        if !phase.is_steady() {
            day.set_target(target);
        }
        for Entry { account, .. } in &mut entries {
            account.histogram.clear();
            account.chunks.clear();
            account.timed.clear();
            account.faults = 0;
        }
        let (mut messages, mut turn) = (0_u64, 0_usize);
        loop {
            let is_over = if phase.is_steady() { turn >= options.chunks.max(2) } else { day.is_settled() };
            if is_over {
                break;
            }
            chunk.clear();
            if phase.is_steady() {
                day.fill_messages(&mut chunk, options.chunk);
            } else {
                // So that each home has several turns.
                day.fill_settling(&mut chunk, (options.day.live / 4).clamp(1_000, options.chunk));
            }
            let count = Deframer::new(Form::File).frames(&chunk, 0).count() as u64;
            if count == 0 {
                break;
            }
            replay(&mut planner, &chunk, None)?;
            let places = planner.take_plan();
            // Phases that come once are timed throughout.
            let is_timed = !phase.is_steady() || turn % 2 == 1;
            random.shuffle(&mut entries);
            for Entry { account, contender, neighbour } in &mut entries {
                contender.follow(&places);
                let (faults, bytes) = (faults(), resident_bytes());
                let histogram = is_timed.then_some(&mut account.histogram);
                let processor = processor_time();
                let time = if phase == Phase::Noisy {
                    beside(stage.processors.as_ref(), neighbour, || contender.replay(&chunk, histogram))
                } else {
                    contender.replay(&chunk, histogram)
                };
                let time = time.map_err(|why| format!("{}: {why}", account.entrant))?;
                // Beside a neighbour an entrant may wait for it, which is no work of the processor.
                let worked = processor_time().zip(processor).map(|(now, before)| now - before);
                let time = worked.filter(|_| phase != Phase::Noisy).unwrap_or(time);
                account.faults += self::faults() - faults;
                account.bytes += resident_bytes() - bytes;
                let each = time.as_nanos() as f64 / count as f64;
                if is_timed { account.timed.push(each) } else { account.chunks.push(each) }
            }
            messages += count;
            turn += 1;
        }
        let sum = planner.checksum();
        for Entry { account, contender, .. } in &mut entries {
            if contender.checksum() != sum {
                return Err(format!(
                    "after {}: the books of {} are not those of the plan",
                    phase.name(),
                    account.entrant
                ));
            }
            if phase == Phase::Night {
                contender.be_quiet();
            }
        }
        if messages > 0 {
            tables.push(table(phase, messages, &planner, &entries));
        }
    }
    for Entry { account, contender, .. } in entries {
        stage.add_end(account.entrant, contender.end());
    }
    Ok(tables)
}

fn table(phase: Phase, messages: u64, planner: &Books<Planning>, entries: &[Entry<'_>]) -> Table {
    let times = |account: &Account| {
        if account.chunks.is_empty() { account.timed.clone() } else { account.chunks.clone() }
    };
    let by_hand = entries
        .iter()
        .map(|entry| &entry.account)
        .find(|account| account.entrant == Entrant::Hand)
        .map(times);
    let mut rows: Vec<_> = entries
        .iter()
        .map(|Entry { account, .. }| {
            let own = times(account);
            let ratios = by_hand.iter().flatten().zip(&own).map(|(hand, own)| own / hand);
            Row {
                entrant: account.entrant,
                nanoseconds: median(own.clone()),
                ratio: median(ratios.collect()),
                spread: None,
                latency: account.histogram.percentiles(),
                faults: account.faults,
                bytes: u64::try_from(account.bytes).unwrap_or(0),
            }
        })
        .collect();
    rows.sort_by_key(|row| row.entrant);
    Table { phase, messages, orders: planner.len(), levels: planner.levels_live(), rows }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        len if len.is_multiple_of(2) => f64::midpoint(values[len / 2 - 1], values[len / 2]),
        len => values[len / 2],
    }
}

/// How long this thread has had a processor: what it waits for others who want that, too, is not counted.
#[cfg(unix)]
fn processor_time() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok().filter(|_| status == 0)?;
    Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(unix))]
const fn processor_time() -> Option<Duration> {
    None
}

fn faults() -> u64 {
    usage_of_this_thread().map_or(0, |usage| usage.minor_faults + usage.major_faults)
}

fn resident_bytes() -> i64 {
    resident().and_then(|(now, _)| i64::try_from(now).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (design/exchange.md `.req.homes`)
    #[test]
    fn all_homes_have_the_same_books_in_all_phases() {
        let options = CompareOptions {
            draw: 1,
            day: DayOptions { seed: 5, messages: 0, live: 1_000, symbols: 20 },
            phases: Phase::ALL.to_vec(),
            entrants: all().to_vec(),
            chunk: 2_000,
            chunks: 4,
        };
        let comparison = compare(&options).unwrap();
        assert_eq!(comparison.tables.len(), Phase::ALL.len());
        for table in &comparison.tables {
            assert_eq!(table.rows.len(), all().len());
            let target = table.phase.target(1_000);
            assert!(
                table.orders >= target && table.orders < target + 1_000,
                "{}: {}",
                table.phase.name(),
                table.orders
            );
        }
        let json = comparison.json();
        assert_eq!(json.matches("\"phase\":").count(), Phase::ALL.len());
        assert!(comparison.to_string().contains("1.00x"));
    }
}
