//! An allocation point with trips, flips and stops, against a naive account.

use core::alloc::Layout;
use core::mem::MaybeUninit;

use tripoint::ap::{AllocationPoint, Control, Stop};
use tripoint::core::{
    Addr, Arena, BufferKind, Check, CheckLevel, ClientArena, ClientArenaOptions, PoolClass,
};

use crate::account::Account;
use crate::choices::Choices;
use crate::nursery::Nursery;

const ARENA_SIZE: usize = 128 << 10;

/// Keeps what it is told, and sets its stops as the bytes say.
#[derive(Debug)]
struct Listener {
    /// Distances to coming stops, taken round and round.
    distances: Vec<usize>,
    draws: usize,
    requests: usize,
    stops: Vec<Stop>,
}

impl Control for Listener {
    fn next_stop(&mut self) -> usize {
        let distance = self.distances.get(self.draws % self.distances.len().max(1));
        self.draws += 1;
        distance.copied().unwrap_or(usize::MAX)
    }

    fn stopped(&mut self, stop: Stop) {
        self.stops.push(stop);
    }

    fn tripped(&mut self, requests: usize) {
        self.requests += requests;
    }
}

type Pool<'a, 'm> = Nursery<&'a ClientArena<'m>>;
type Point<'p, 'a, 'm> = AllocationPoint<'p, Pool<'a, 'm>, Listener>;

/// Reserves, commits, abandons, trips, flips and empties as the bytes say: a
/// commit fails exactly when a flip came after its reserve, no trip goes unheard, every
/// stop names an allocated object, and what was filled and not emptied is what was
/// allocated (design/ap.md `.req.exact`, `.req.trip`, `.req.count`).
///
/// # Panics
/// Where any of that does not hold.
pub fn ap_ops(data: &[u8]) {
    let mut choices = Choices::new(data);
    let Some(listener) = draw_listener(&mut choices) else { return };
    let mut memory = vec![MaybeUninit::uninit(); ARENA_SIZE];
    let options = ClientArenaOptions { grain: Some(1024), event_hook: None };
    let arena = ClientArena::create(&mut memory, options).unwrap();
    let pool = Nursery::create(&arena).unwrap();
    let mut point = AllocationPoint::create_with(&pool, BufferKind::Mutator, listener).unwrap();
    let mut run = Run { account: Account::default(), requests: 0 };
    while let Some(()) = run.step(&mut choices, &mut point) {
        point.check(CheckLevel::Deep).unwrap();
    }
    run.finish(&mut point);
    let counts = arena.counts();
    assert_eq!(counts.fill_mutator.get() - counts.empty_mutator.get(), run.account.size() as u64);
    run.account.assert_kept();
}

fn draw_listener(choices: &mut Choices<'_>) -> Option<Listener> {
    let count = choices.byte()? % 4;
    let distances = (0..count).map(|_| choices.below(4096)).collect::<Option<_>>()?;
    Some(Listener { distances, draws: 0, requests: 0, stops: Vec::new() })
}

struct Run {
    account: Account,
    /// Trips asked for; a flip is one too.
    requests: usize,
}

impl Run {
    fn step(&mut self, choices: &mut Choices<'_>, point: &mut Point<'_, '_, '_>) -> Option<()> {
        match choices.byte()? % 8 {
            0..=3 => self.allocate(choices, point)?,
            4 => {
                // Dropping the token abandons the reservation.
                let _ = point.reserve(choices.layout(512, 8)?);
            }
            5 => self.batch(choices, point)?,
            6 => self.interfere(choices.byte()?, point),
            _ => point.empty(),
        }
        Some(())
    }

    fn allocate(&mut self, choices: &mut Choices<'_>, point: &mut Point<'_, '_, '_>) -> Option<()> {
        let layout = choices.layout(2048, 8)?;
        let between = choices.byte()?;
        let (buffer, pool) = (point.buffer(), point.pool());
        let Ok(reservation) = point.reserve(layout) else { return Some(()) };
        let (object, size) = (reservation.as_ptr(), reservation.size());
        // SAFETY: the reservation's memory is writable and its holder's alone.
        unsafe { object.write_bytes(0, size) };
        let (trips, flips) = interference(between);
        (0..trips).for_each(|_| buffer.trip());
        (0..flips).for_each(|_| {
            // SAFETY: the pool's own pair.
            unsafe { buffer.flip(pool.barrier()) };
        });
        self.requests += trips + flips;
        // SAFETY: initialised above; objects here have no format.
        let stands = unsafe { reservation.commit() }.is_ok();
        assert_eq!(stands, flips == 0, "a commit fails exactly when a flip came after its reserve");
        if stands {
            // SAFETY: allocated just now; the pool frees nothing.
            unsafe { self.account.add(object, size, layout) };
        }
        Some(())
    }

    fn batch(&mut self, choices: &mut Choices<'_>, point: &mut Point<'_, '_, '_>) -> Option<()> {
        let capacity = choices.below(64)?;
        let pushed = choices.below(64)?;
        let Ok(mut batch) = point.batch::<u64>(capacity) else { return Some(()) };
        let fitting = (0..pushed).filter(|_| batch.push(0).is_ok()).count();
        assert_eq!(fitting, pushed.min(capacity));
        // SAFETY: objects here have no format.
        let objects = unsafe { batch.commit_raw() }.unwrap();
        if fitting > 0 {
            let layout = Layout::array::<u64>(fitting).unwrap();
            // SAFETY: allocated just now; the pool frees nothing.
            unsafe { self.account.add(objects.cast(), layout.size(), layout) };
        }
        Some(())
    }

    fn interfere(&mut self, choice: u8, point: &Point<'_, '_, '_>) {
        let (trips, flips) = interference(choice);
        (0..trips).for_each(|_| point.tripper().trip());
        for _ in 0..flips {
            // SAFETY: the pool's own pair.
            let seen = Addr::of(unsafe { point.buffer().flip(point.pool().barrier()) });
            let now = point.buffer().snapshot().unwrap();
            assert_eq!(seen, now.scan_limit, "a flip says what it saw");
            assert!(seen <= now.init, "and saw no more than there was");
        }
        self.requests += trips + flips;
    }

    /// Makes the owner hear of everything, and compares.
    fn finish(&mut self, point: &mut Point<'_, '_, '_>) {
        let _ = point.reserve(Layout::new::<u64>());
        point.empty();
        let account = &self.account;
        let listener = point.control();
        assert_eq!(listener.requests, self.requests, "no trip is lost, and none told twice");
        for stop in &listener.stops {
            assert!(stop.offset < stop.size, "{stop:?} waits inside its object");
        }
        let unknown = listener.stops.iter().find(|stop| !account.holds(stop.object.get(), stop.size));
        assert!(unknown.is_none(), "{unknown:?} is at an allocated object");
    }
}

/// How many trips and flips a byte stands for: mostly none.
const fn interference(choice: u8) -> (usize, usize) {
    match choice % 8 {
        0 => (1, 0),
        1 => (0, 1),
        2 => (2, 0),
        3 => (1, 2),
        _ => (0, 0),
    }
}
