//! Objects of the manual classes, until memory is exhausted and after that, and
//! objects in frames.

use core::alloc::Layout;

use tripoint::{AllocationPoint, Arena as _, Error, Exhausted, PoolBox};

use crate::memory::{self, Messages, Sample};
use crate::{Failure, ensure};

/// The bytes of a large message.
const LARGE: usize = 1000;

/// Counts of what was done.
#[derive(Debug)]
#[allow(dead_code, reason = "the fields are read by Debug")]
pub(crate) struct Objects {
    /// Samples allocated at a time.
    samples: u32,
    /// Messages that fitted before the arena was full.
    messages: usize,
    /// Rounds of allocation in frames.
    rounds: u32,
    /// Bytes allocated through allocation points in all, and not popped.
    pub(crate) allocated: u64,
}

pub(crate) fn run() -> Result<Objects, Failure> {
    let samples = allocate_samples()?;
    let (messages, message_size) = exhaust()?;
    let allocated = u64::from(samples) * size_of::<Sample>() as u64 + message_size;
    Ok(Objects { samples, messages, rounds: run_rounds()?, allocated })
}

/// Allocates samples, and reads them back, and frees them.
fn allocate_samples() -> Result<u32, Failure> {
    const COUNT: u32 = 40;
    let mut point = AllocationPoint::create(memory::samples()?)?;
    let mut samples = [const { None }; COUNT as usize];
    for (number, place) in (0..).zip(&mut samples) {
        *place = Some(point.boxed(Sample { number, values: [number; 7] })?);
    }
    for (number, sample) in (0..).zip(&samples) {
        let whole = sample.as_deref() == Some(&Sample { number, values: [number; 7] });
        ensure(whole, "samples keep what was written")?;
    }
    point.empty();
    let used = point.buffer().fill_size() - point.buffer().empty_size();
    ensure(used == u64::from(COUNT) * size_of::<Sample>() as u64, "the point counted its samples")?;
    Ok(COUNT)
}

/// Allocates messages until the arena is full; then one of them makes room for
/// another. Returns their number and their size in bytes.
fn exhaust() -> Result<(usize, u64), Failure> {
    type Message = PoolBox<'static, [u8; LARGE], Messages>;

    let pool = memory::messages()?;
    let mut point = AllocationPoint::create(pool)?;
    let mut messages: [Option<Message>; memory::SIZE / LARGE] = [const { None }; memory::SIZE / LARGE];
    let mut refusal = None;
    let mut count = 0;
    for place in &mut messages {
        match point.boxed([count as u8; LARGE]) {
            Ok(message) => *place = Some(message),
            Err(error) => {
                refusal = Some(error);
                break;
            }
        }
        count += 1;
    }
    ensure(refusal == Some(Error::Limit), "a full arena refuses with Error::Limit")?;
    let exhausted = Exhausted::of(pool, Layout::new::<[u8; LARGE]>(), Error::Limit);
    ensure(exhausted.largest_free < LARGE, "there was no room left")?;
    ensure(point.is_reset(), "a refusal leaves the allocation point reset")?;
    messages[0] = None;
    messages[0] = Some(point.boxed([0; LARGE])?);
    let kept =
        messages.iter().flatten().zip(0..).all(|(message, number)| message.iter().all(|&b| b == number));
    ensure(kept, "messages keep what was written")?;
    drop(messages);
    point.empty();
    let used = point.buffer().fill_size() - point.buffer().empty_size();
    let size = (count as u64 + 1) * LARGE.next_multiple_of(tripoint::author::GRANULE) as u64;
    ensure(used == size, "the point counted its messages")?;
    let total = tripoint::PoolClass::sizes(pool).total;
    ensure(total == 0, "an empty pool without spare gave everything back")?;
    let spare = memory::arena()?.sizes().spare;
    ensure(spare > LARGE * count, "and the arena has it again")?;
    Ok((count, size))
}

/// Allocates in nested frames, in each of them more than one fill holds, and
/// does it again.
fn run_rounds() -> Result<u32, Failure> {
    const ROUNDS: u32 = 20;
    const COUNT: usize = 100;
    let mut point = AllocationPoint::create(memory::rounds()?)?;
    for round in 0..ROUNDS {
        let kept = point.scope(|frame| -> Result<bool, Error> {
            let numbers = frame.slice(COUNT, |_| round)?;
            frame.scope(|inner| inner.slice(COUNT, |_| !round).map(drop))?;
            Ok(numbers.iter().all(|&number| number == round))
        })?;
        ensure(kept, "a frame outlives the frames within it")?;
        let used = point.buffer().fill_size() - point.buffer().empty_size();
        ensure(used == point.room() as u64, "after the last pop nothing is allocated")?;
    }
    Ok(ROUNDS)
}
