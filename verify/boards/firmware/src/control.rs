//! The timer interrupt against an allocation under way.
//!
//! The timer is set to interrupt after one instruction, after two, and so on, so
//! that it hits reserve, commit, and what is between, at every instruction. After each commit
//! the outcome is compared with what the handler saw (design/bare-metal.md
//! `.exact`).

use core::alloc::Layout;

use tripoint::points::{BufferMode, Control};
use tripoint::{Addr, AllocationPoint};

use crate::memory::{self, Sample};
use crate::nursery::Nursery;
use crate::{Board, Failure, ensure, timer};

/// The longest delay of the timer, in its steps.
const DELAYS: u32 = 3000;

/// The objects of the nursery.
const LAYOUT: Layout = Layout::new::<Sample>();

/// Counts the trips that its allocation point observed.
#[derive(Debug, Default)]
struct Heard(usize);

impl Control for Heard {
    fn tripped(&mut self, requests: usize) {
        self.0 += requests;
    }
}

/// Counts of interrupts, by where they came and what became of the object.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    /// Between two objects.
    ready: u32,
    /// In reserve, in time for it to go on from the flip.
    reserve_stands: u32,
    /// In reserve, too late for it; the commit failed.
    reserve_fails: u32,
    /// From reserve to the end of commit; the flip saw the object.
    busy_stands: u32,
    /// From reserve to the end of commit; the commit failed.
    busy_fails: u32,
    /// Bytes allocated through allocation points.
    pub(crate) allocated: u64,
}

pub(crate) fn run(board: &mut impl Board) -> Result<Hits, Failure> {
    let mut samples = AllocationPoint::create_with(memory::samples()?, Default::default(), Heard::default())?;
    let mut nursery = AllocationPoint::create_with(memory::nursery()?, Default::default(), Heard::default())?;
    timer::TRIPPED.get_or_try_init(|| Ok(samples.tripper()))?;
    timer::FLIPPED.get_or_try_init(|| Ok(nursery.buffer()))?;

    let mut hits = Hits::default();
    trip_while_busy(board, &mut samples, &mut hits)?;
    for delay in 1..=DELAYS {
        flip_after(board, delay, &mut nursery, &mut hits)?;
    }
    let _ = writeln!(board, "timer: {hits:?}");
    let Hits { reserve_stands, reserve_fails, busy_stands, busy_fails, .. } = hits;
    ensure(reserve_stands > 0 && reserve_fails > 0, "interrupts hit reserve on both sides of its test")?;
    ensure(busy_stands > 0 && busy_fails > 0, "interrupts hit commit on both sides of its store")?;

    let last = samples.boxed(Sample { number: 0, values: [0; 7] })?;
    hits.allocated += size_of_val(&*last) as u64;
    let interrupts = timer::interrupts();
    ensure(samples.control().0 == interrupts, "every trip is heard of, once")?;
    let _abandoned = nursery.reserve(LAYOUT)?;
    ensure(nursery.control().0 == interrupts, "every flip's trip is heard of, once")?;
    samples.empty();
    nursery.empty();
    Ok(hits)
}

/// A trip between reserve and commit of a manual pool: the object stands, and the
/// next reserve observes the trip.
fn trip_while_busy(
    board: &mut impl Board,
    point: &mut AllocationPoint<'static, memory::Samples, Heard>,
    hits: &mut Hits,
) -> Result<(), Failure> {
    let before = timer::interrupts();
    let reservation = point.reserve(LAYOUT)?;
    board.arm_timer(1);
    while timer::interrupts() == before {
        core::hint::spin_loop();
    }
    let size = reservation.size();
    // SAFETY: no code reads the object.
    let object = unsafe { reservation.commit() };
    let object = object.map_err(|_| Failure::Unmet("commits of manual pools stand"))?;
    hits.allocated += size as u64;
    ensure(point.control().0 == 0, "a commit of a manual pool does not look")?;
    let trapped = point.buffer().snapshot().is_some_and(|now| now.mode.contains(BufferMode::TRAPPED));
    ensure(trapped, "the trip waits in limit")?;
    let _abandoned = point.reserve(LAYOUT)?;
    ensure(point.control().0 == 1, "the next reserve observes the trip")?;
    // SAFETY: committed in this pool with this layout, and not used any more.
    unsafe { tripoint::Store::free(point.pool(), object, LAYOUT) };
    Ok(())
}

/// Allocates until the timer, set to interrupt after `delay` steps, has hit.
fn flip_after(
    board: &mut impl Board,
    delay: u32,
    point: &mut AllocationPoint<'static, Nursery, Heard>,
    hits: &mut Hits,
) -> Result<(), Failure> {
    let start = timer::interrupts();
    board.arm_timer(delay);
    while timer::interrupts() == start {
        allocate_one(point, hits)?;
    }
    Ok(())
}

/// Allocates one object of the nursery, checks its fate, and frees it.
fn allocate_one(
    point: &mut AllocationPoint<'static, Nursery, Heard>,
    hits: &mut Hits,
) -> Result<(), Failure> {
    let (pool, buffer) = (point.pool(), point.buffer());
    let before = timer::interrupts();
    let reservation = point.reserve(LAYOUT)?;
    let reserved = timer::interrupts();
    let (object, size) = (reservation.as_ptr(), reservation.size());
    // SAFETY: the reservation has room for a sample, and belongs to this point.
    unsafe { object.cast::<Sample>().write(Sample { number: 1, values: [2; 7] }) };
    // SAFETY: the object was just written.
    let stands = unsafe { reservation.commit() }.is_ok();
    let committed = timer::interrupts();

    let was_seen = timer::seen() >= Addr::new(object.addr().get() + size);
    let now = buffer.snapshot().ok_or(Failure::Unmet("between objects a buffer is not in transition"))?;
    let expected = if committed != reserved {
        was_seen
    } else {
        // It was flipped in reserve, after the test of `limit`; otherwise it was
        // not flipped at all, or reserve went on from the flip.
        reserved == before || !now.mode.contains(BufferMode::FLIPPED)
    };
    ensure(stands == expected, "a commit fails exactly where the flip did not see the object")?;
    *match (committed != reserved, reserved != before, stands) {
        (true, _, true) => &mut hits.busy_stands,
        (true, _, false) => &mut hits.busy_fails,
        (_, true, true) => &mut hits.reserve_stands,
        (_, true, false) => &mut hits.reserve_fails,
        _ => &mut hits.ready,
    } += 1;
    if stands {
        hits.allocated += size as u64;
        // SAFETY: committed in this pool with this layout, and not used any
        // more.
        unsafe { pool.free(object, LAYOUT) };
    }
    Ok(())
}
