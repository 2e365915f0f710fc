//! One step as a few bytes, relative to the step before it
//! ([design/cli-traces.md `.step`](crate::design::cli_traces)).

use super::operation::{Kind, Operation, Step};

/// What the low three bits of a step's first byte say. The high five bits are a small number, or [`LONG`] if
/// a varint follows with the number.
mod code {
    pub(super) const PLAIN: u8 = 0;
    pub(super) const ZEROED: u8 = 1;
    pub(super) const ALIGNED: u8 = 2;
    pub(super) const REALLOC: u8 = 3;
    pub(super) const FREE: u8 = 4;
    pub(super) const THREAD: u8 = 5;
    pub(super) const END_THREAD: u8 = 6;
    pub(super) const FORK: u8 = 7;
}

const LONG: u8 = 31;

/// The most bytes of a coded step: a thread and a realloc, with three varints.
pub(crate) const MAX_STEP: usize = 2 + 3 * 10 + 1;

/// What a coded step is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The thread of the step before, or none at the begin of a block.
    pub(crate) thread: Option<u32>,
    /// The number of the next object.
    pub(crate) next: u64,
}

impl Place {
    pub(crate) const fn at_begin_of_block(next: u64) -> Self {
        Self { thread: None, next }
    }
}

/// Appends a step. Its object, if it has one, has been allocated: its number is less than the next.
pub(crate) fn encode(bytes: &mut Vec<u8>, place: &mut Place, step: Step) {
    if place.thread != Some(step.thread) {
        put(bytes, code::THREAD, u64::from(step.thread));
        place.thread = Some(step.thread);
    }
    match step.operation {
        Operation::Alloc { kind, size } => {
            match kind {
                // Most sizes are multiples of eight: then the number is small.
                Kind::Plain => put(bytes, code::PLAIN, size.rotate_right(3)),
                Kind::Zeroed => put(bytes, code::ZEROED, size.rotate_right(3)),
                Kind::Aligned(log2) => {
                    put(bytes, code::ALIGNED, u64::from(log2));
                    put_varint(bytes, size);
                }
            }
            place.next += 1;
        }
        Operation::Realloc { object, size } => {
            put(bytes, code::REALLOC, place.next - 1 - object);
            put_varint(bytes, size);
        }
        Operation::Free { object } => put(bytes, code::FREE, place.next - 1 - object),
        Operation::EndThread => put(bytes, code::END_THREAD, 0),
        Operation::Fork { child } => put(bytes, code::FORK, u64::from(child)),
    }
}

/// Takes a step off the bytes, or says what is wrong with them.
pub(crate) fn decode(bytes: &mut &[u8], place: &mut Place) -> Result<Step, &'static str> {
    let (mut code, mut number) = take(bytes)?;
    if code == code::THREAD {
        place.thread = Some(u32::try_from(number).map_err(|_| "a thread's number is too large")?);
        (code, number) = take(bytes)?;
    }
    let thread = place.thread.ok_or("a block begins without a thread")?;
    let object = |number: u64| {
        place
            .next
            .checked_sub(1)
            .and_then(|last| last.checked_sub(number))
            .ok_or("an object was not allocated")
    };
    let operation = match code {
        code::PLAIN => Operation::Alloc { kind: Kind::Plain, size: number.rotate_left(3) },
        code::ZEROED => Operation::Alloc { kind: Kind::Zeroed, size: number.rotate_left(3) },
        code::ALIGNED => {
            let log2 = u8::try_from(number).ok().filter(|&log2| log2 <= Kind::MAX_ALIGN_LOG2);
            let kind = Kind::Aligned(log2.ok_or("an alignment is too large")?);
            Operation::Alloc { kind, size: take_varint(bytes)? }
        }
        code::REALLOC => Operation::Realloc { object: object(number)?, size: take_varint(bytes)? },
        code::FREE => Operation::Free { object: object(number)? },
        code::END_THREAD => Operation::EndThread,
        code::FORK => {
            Operation::Fork { child: u32::try_from(number).map_err(|_| "a child's number is too large")? }
        }
        _ => return Err("a thread follows a thread"),
    };
    if let Operation::Alloc { .. } = operation {
        place.next = place.next.checked_add(1).ok_or("too many objects")?;
    }
    Ok(Step { thread, operation })
}

fn put(bytes: &mut Vec<u8>, code: u8, number: u64) {
    match u8::try_from(number).ok().filter(|&number| number < LONG) {
        Some(small) => bytes.push(small << 3 | code),
        None => {
            bytes.push(LONG << 3 | code);
            put_varint(bytes, number);
        }
    }
}

fn take(bytes: &mut &[u8]) -> Result<(u8, u64), &'static str> {
    let (&first, rest) = bytes.split_first().ok_or("a step is cut off")?;
    *bytes = rest;
    let number = match first >> 3 {
        LONG => take_varint(bytes)?,
        small => u64::from(small),
    };
    Ok((first & 7, number))
}

/// Seven bits a byte, the lowest first; the highest bit says that another byte follows.
fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Result<u64, &'static str> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("a number is cut off")?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if (bits << shift) >> shift != bits {
            return Err("a number is too large");
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number is too long")
}
