//! Homes of orders that a gateway's thread allocates, and the thread that keeps the books frees
//! (design/exchange.md `.compare.gateway`). Levels are the system's in all of them.

use core::alloc::GlobalAlloc;
use core::fmt;
use core::time::Duration;
use std::alloc::System;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use rtrb::{Consumer, Producer, RingBuffer};
use tripoint::{ArenaVm, ArenaVmOptions};

use super::{CompareOptions, median, pinning, plan_of, text};
use crate::book::{Books, Plan};
use crate::day::{Day, DayOptions};
use crate::frames::{Deframer, Form};
use crate::gateway::seats::{HeapSeat, HeapSeats, PoolSeats, by_hand};
use crate::gateway::{Handed, Received, SLIPS, Seats, Slip, VACANT, send};
use crate::handoff;
use crate::histogram::{Histogram, Percentiles};
use crate::homes::{PointedLevel, pools_for};
use crate::itch::parse;
use crate::places::heap::Heap;
use crate::random::Random;
use crate::report::Commas;

/// The gateway's end of a home.
trait Gate: Send {
    /// Hands over a chunk; with a histogram, each allocation is timed.
    fn forward(&mut self, chunk: &[u8], histogram: Option<&mut Histogram>);
}

/// The other end, with the books.
trait Desk {
    /// Applies that many messages.
    fn serve(&mut self, count: u64) -> Result<Duration, String>;

    fn checksum(&self) -> u64;
}

struct Sender<S: Seats, F> {
    seat: F,
    to_books: Producer<Slip<S::Seat>>,
}

impl<S: Seats, F: FnMut() -> Option<S::Seat> + Send> Gate for Sender<S, F> {
    #[inline(never)]
    fn forward(&mut self, chunk: &[u8], mut histogram: Option<&mut Histogram>) {
        for framed in Deframer::new(Form::File).frames(chunk, 0).flatten() {
            // Books give memory to no other message; an engine to what is left of a request, too.
            let adds = matches!(framed.bytes, [b'A' | b'F', ..]);
            let seat = match &mut histogram {
                _ if !adds => None,
                None => (self.seat)(),
                Some(histogram) => {
                    let start = Instant::now();
                    let seat = (self.seat)();
                    histogram.record(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
                    seat
                }
            };
            if !send(&mut self.to_books, Slip::new(framed.bytes, seat), core::hint::spin_loop) {
                return;
            }
        }
    }
}

type Levels = Heap<PointedLevel, System>;

struct Receiver<S: Seats> {
    books: Books<Received<S, Levels>>,
    slips: Consumer<Slip<S::Seat>>,
}

impl<S: Seats> Desk for Receiver<S> {
    #[inline(never)]
    fn serve(&mut self, count: u64) -> Result<Duration, String> {
        let start = Instant::now();
        for _ in 0..count {
            let mut slip = handoff::take(&mut self.slips).ok_or("the gateway's thread ended")?;
            let orders = self.books.orders_mut();
            orders.hand(slip.seat.take());
            let message = parse(slip.bytes()).map_err(text)?;
            self.books.apply(&message).map_err(text)?;
        }
        Ok(start.elapsed())
    }

    fn checksum(&self) -> u64 {
        self.books.checksum()
    }
}

type Pair<'a> = (Box<dyn Gate + 'a>, Box<dyn Desk + 'a>);

fn pair<'a, S: Seats + 'a>(
    plan: Plan,
    seats: S,
    seat: impl FnMut() -> Option<S::Seat> + Send + 'a,
) -> Pair<'a> {
    let (to_books, slips) = RingBuffer::new(SLIPS);
    let books = Books::new(Handed::new(seats), Heap::new(System), plan);
    (Box::new(Sender::<S, _> { seat, to_books }), Box::new(Receiver { books, slips }))
}

fn on_heap<'a, A: GlobalAlloc + Send + 'a>(plan: Plan, allocator: fn() -> A) -> Pair<'a> {
    pair(plan, HeapSeats(allocator()), move || HeapSeat::new(allocator()))
}

/// What a home came to.
#[derive(Clone, Debug)]
pub struct HandedRow {
    pub home: &'static str,
    /// Time of a message by the clock, in ns: the median over the chunks in which no allocation is timed.
    pub nanoseconds: f64,
    /// The median over these chunks of the time to that of the array by hand.
    pub ratio: f64,
    /// Of an allocation on the gateway's thread, with the clock's own time.
    pub allocation: Percentiles,
}

/// A comparison of homes whose orders cross threads.
#[derive(Clone, Debug)]
pub struct HandedOver {
    pub live: usize,
    pub is_pinned: bool,
    pub rows: Vec<HandedRow>,
    /// Of nothing: what the clock takes.
    pub clock: Percentiles,
}

/// Keeps the same books in all homes, which take turns.
///
/// # Errors
/// If there is too little memory, or books differ.
pub fn compare_handed(options: &CompareOptions) -> Result<HandedOver, String> {
    let processors = pinning::pin();
    let plan = plan_of(options);
    let arena = ArenaVm::create(ArenaVmOptions::default()).map_err(text)?;
    let [orders, _levels] = pools_for(&arena, Plan { orders: plan.orders + SLIPS, ..plan })?;
    let cache = orders.cache();
    let (mut gate, hand) = by_hand(plan.orders + SLIPS);
    let mut names = vec!["hand", "pools", "system"];
    let mut pairs = vec![
        pair(plan, hand, move || gate.seat()),
        pair(plan, PoolSeats::new(&orders), move || cache.pool_boxed(VACANT).ok()),
        on_heap(plan, || System),
    ];
    let mut add = |name, pair| {
        names.push(name);
        pairs.push(pair);
    };
    #[cfg(feature = "mimalloc")]
    add("mimalloc", on_heap(plan, || mimalloc::MiMalloc));
    #[cfg(feature = "jemalloc")]
    add("jemalloc", on_heap(plan, || tikv_jemallocator::Jemalloc));
    #[cfg(feature = "snmalloc")]
    add("snmalloc", on_heap(plan, || snmalloc_rs::SnMalloc));
    let _ = &mut add;
    let (gates, desks): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let (times, allocations) = take_turns(options, processors.as_ref(), gates, desks)?;
    let rows = names.iter().zip(&times).zip(&allocations).map(|((home, own), allocation)| HandedRow {
        home,
        nanoseconds: median(own.clone()),
        ratio: median(times[0].iter().zip(own).map(|(hand, own)| own / hand).collect()),
        allocation: allocation.percentiles(),
    });
    let rows = rows.collect();
    Ok(HandedOver { live: options.day.live, is_pinned: processors.is_some(), rows, clock: clock() })
}

/// Times of a message in each chunk without a clock, and of allocations in the others, for each home.
type Turns = (Vec<Vec<f64>>, Vec<Histogram>);

fn take_turns<'a>(
    options: &CompareOptions,
    processors: Option<&(usize, Vec<usize>)>,
    mut gates: Vec<Box<dyn Gate + 'a>>,
    mut desks: Vec<Box<dyn Desk + 'a>>,
) -> Result<Turns, String> {
    let (to_gateway, tasks) = mpsc::channel::<(usize, Arc<Vec<u8>>, bool)>();
    thread::scope(|scope| {
        // The other threads end when these are dropped.
        let to_gateway = to_gateway;
        let gateway = scope.spawn(move || {
            pinning::leave(processors);
            let mut histograms: Vec<_> = gates.iter().map(|_| Histogram::new()).collect();
            for (at, chunk, is_timed) in tasks {
                gates[at].forward(&chunk, is_timed.then_some(&mut histograms[at]));
            }
            histograms
        });
        let mut times = vec![Vec::new(); desks.len()];
        let mut played = || -> Result<(), String> {
            let mut day = Day::new(DayOptions { messages: u64::from(u32::MAX), ..options.day });
            let mut random = Random::new(options.draw ^ 11);
            let mut order: Vec<_> = (0..desks.len()).collect();
            let mut steady = 0;
            while steady < options.chunks.max(2) {
                let is_steady = day.is_settled();
                let mut chunk = Vec::new();
                day.fill_messages(&mut chunk, options.chunk);
                let count = Deframer::new(Form::File).frames(&chunk, 0).count() as u64;
                let (chunk, is_timed) = (Arc::new(chunk), is_steady && steady % 2 == 1);
                random.shuffle(&mut order);
                for &at in &order {
                    let task = (at, Arc::clone(&chunk), is_timed);
                    to_gateway.send(task).map_err(|_| "the gateway's thread ended")?;
                    let time = desks[at].serve(count)?;
                    if is_steady && !is_timed {
                        times[at].push(time.as_nanos() as f64 / count as f64);
                    }
                }
                steady += usize::from(is_steady);
            }
            let sums: Vec<_> = desks.iter().map(|desk| desk.checksum()).collect();
            let is_same = sums.iter().all(|sum| *sum == sums[0]);
            is_same.then_some(()).ok_or_else(|| "at the end the books of two homes differ".into())
        };
        let done = played();
        drop(to_gateway);
        // A gateway that waits for room goes on if the other end is gone.
        if done.is_err() {
            desks.clear();
        }
        let histograms = gateway.join().map_err(|_| "the gateway's thread panicked")?;
        done.map(|()| (times, histograms))
    })
}

fn clock() -> Percentiles {
    let mut histogram = Histogram::new();
    for _ in 0..1_000_000 {
        let start = Instant::now();
        histogram.record(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    histogram.percentiles()
}

impl fmt::Display for HandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "a gateway's thread allocates orders, another applies them and frees them: {} orders live, all books the same; {}",
            Commas(self.live as u64),
            if self.is_pinned { "each thread on processors of its own" } else { "not pinned" }
        )?;
        f.write_str(
            "ns: time of a message by the clock, the median over a home's turns; vs hand: the median of the ratios of its turns.\n\
             Percentiles: of an allocation on the gateway's thread, with the time of the clock, which is in the last line.\n",
        )?;
        writeln!(
            f,
            "  {:<15} {:>6} {:>8} {:>6} {:>6} {:>8} {:>8}",
            "orders live in", "ns", "vs hand", "p50", "p99", "p99.9", "p99.99"
        )?;
        for HandedRow { home, nanoseconds, ratio, allocation: Percentiles { p50, p99, p999, p9999, .. } } in
            &self.rows
        {
            writeln!(
                f,
                "  {home:<15} {nanoseconds:>6.1} {ratio:>7.2}x {p50:>6} {:>6} {:>8} {:>8}",
                Commas(*p99).to_string(),
                Commas(*p999).to_string(),
                Commas(*p9999).to_string()
            )?;
        }
        let Percentiles { p50, p99, p999, p9999, .. } = self.clock;
        writeln!(f, "  {:<15} {:>15} {p50:>6} {p99:>6} {p999:>8} {p9999:>8}", "(the clock)", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_apart_if_a_pause_was_long() {
        let long = Percentiles {
            p50: 1_234_567,
            p99: 12_345_678,
            p999: u64::MAX,
            p9999: u64::MAX,
            ..Percentiles::default()
        };
        let row = HandedRow { home: "system", nanoseconds: 1e9, ratio: 1e6, allocation: long };
        let said = HandedOver { live: 1, is_pinned: false, rows: vec![row], clock: long }.to_string();
        let columns =
            |name: &str| said.lines().find(|line| line.contains(name)).unwrap().split_whitespace().count();
        assert_eq!((columns("system"), columns("(the clock)")), (7, 6), "{said}");
    }
}
