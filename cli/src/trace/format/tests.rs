//! Traces against plain lists of steps.

use proptest::prelude::*;

use super::frame::{MAX_PART, PartHead};
use super::reader::Reader;
use super::*;
use crate::error::TraceError;

/// Steps that a program could have made: `draws` decide, and whatever is not possible is left out.
fn steps_of(draws: &[(u8, u8, u64, u64)]) -> Vec<Step> {
    let (mut steps, mut live, mut next) = (Vec::new(), Vec::new(), 0);
    let (mut threads, mut ended) = (0, std::collections::BTreeSet::new());
    for &(what, thread, which, size) in draws {
        let thread = u32::from(thread) % (threads + 1).min(8);
        if ended.contains(&thread) {
            continue;
        }
        let size = size >> (which % 60).max(8);
        let pick = |live: &Vec<u64>| (which % live.len().max(1) as u64) as usize;
        let operation = match what % 16 {
            0..5 => Operation::Alloc { kind: Kind::Plain, size },
            5 => Operation::Alloc { kind: Kind::Zeroed, size },
            6 => Operation::Alloc { kind: Kind::Aligned((which % 48) as u8), size },
            7..9 if !live.is_empty() => Operation::Realloc { object: live[pick(&live)], size },
            9..14 if !live.is_empty() => Operation::Free { object: live.swap_remove(pick(&live)) },
            14 => Operation::Fork { child: which as u32 },
            15 if which % 7 == 0 => {
                ended.insert(thread);
                Operation::EndThread
            }
            _ => continue,
        };
        if let Operation::Alloc { .. } = operation {
            live.push(next);
            next += 1;
        }
        threads = threads.max(thread + 1);
        steps.push(Step { thread, operation });
    }
    steps
}

fn header() -> Header {
    Header {
        command: vec!["prog".to_owned(), "ä\n".to_owned()],
        pid: 7,
        forked_by: Some(6),
        pointer_size: 8,
        made: Some(1_795_000_000),
    }
}

/// A trace of these steps, with a block boundary after every `block` of them.
fn written(steps: &[Step], block: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&mut bytes, &header()).unwrap();
    for (index, &step) in steps.iter().enumerate() {
        if index % block == block - 1 {
            writer.write_block().unwrap();
        }
        writer.write(step).unwrap();
    }
    let summary = Summary { ended: "status 0".to_owned(), ..Summary::default() };
    writer.finish(summary).unwrap();
    bytes
}

/// All steps that can be read, and why there are no more, if the end was not reached.
fn read(bytes: &[u8]) -> Result<(Vec<Step>, Option<TraceError>), TraceError> {
    let mut reader = Reader::open(bytes)?;
    let mut steps = Vec::new();
    loop {
        match reader.read_block(&mut steps) {
            Ok(true) => {}
            Ok(false) => return Ok((steps, None)),
            Err(error) => return Ok((steps, Some(error))),
        }
    }
}

fn draws(most: usize) -> impl Strategy<Value = Vec<(u8, u8, u64, u64)>> {
    proptest::collection::vec(any::<(u8, u8, u64, u64)>(), 0..most)
}

proptest! {
    #[test]
    fn what_was_written_is_read(draws in draws(2_000), block in 1_usize..700) {
        let steps = steps_of(&draws);
        let bytes = written(&steps, block);
        let (history, cut) = History::read(&bytes[..]).unwrap();
        prop_assert!(cut.is_none(), "{:?}", cut);
        prop_assert_eq!(&history.steps, &steps);
        prop_assert_eq!(history.header, header());
        let summary = history.summary.unwrap();
        prop_assert_eq!(summary.steps, steps.len() as u64);
        prop_assert_eq!(summary.objects, history.totals.allocations);
        prop_assert_eq!(summary.ended, "status 0");
    }

    #[test]
    fn a_flipped_bit_is_an_error_and_what_was_read_before_is_good(
        draws in draws(300), block in 1_usize..50, place in any::<prop::sample::Index>(), bit in 0_u8..8,
    ) {
        let steps = steps_of(&draws);
        let mut bytes = written(&steps, block);
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok((read, error)) = read(&bytes) {
            prop_assert!(error.is_some(), "byte {at} was flipped, and no error was found");
            prop_assert!(steps.starts_with(&read));
        }
    }

    #[test]
    fn random_bytes_are_no_trace_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(read(&bytes).is_err());
        // The same behind a good begin.
        let mut longer = written(&[], 1);
        longer.truncate(longer.len() - PartHead::SIZE);
        longer.extend(bytes);
        let _ = read(&longer);
    }

    #[test]
    fn coded_bytes_of_any_kind_are_steps_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), next in any::<u64>()) {
        let mut place = super::coding::Place::at_begin_of_block(next);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let before = rest.len();
            if super::coding::decode(&mut rest, &mut place).is_err() {
                break;
            }
            prop_assert!(rest.len() < before);
        }
    }
}

#[test]
fn a_trace_cut_at_any_byte_is_read_up_to_the_last_whole_block() {
    let draws: Vec<_> = (0..400_u64)
        .map(|n| {
            let drawn = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((drawn >> 56) as u8, (drawn >> 48) as u8, drawn >> 8, drawn << 3)
        })
        .collect();
    let steps = steps_of(&draws);
    assert!(steps.len() > 200, "{}", steps.len());
    let bytes = written(&steps, 20);
    let mut most = 0;
    for length in 0..bytes.len() {
        match read(&bytes[..length]) {
            Ok((read, error)) => {
                assert!(matches!(error, Some(TraceError::Truncated { at }) if at <= length as u64));
                assert!(steps.starts_with(&read), "{length}");
                assert!(read.len() >= most);
                most = read.len();
            }
            Err(error) => {
                assert!(matches!(error, TraceError::Foreign | TraceError::Truncated { .. }), "{error}");
                assert_eq!(most, 0);
            }
        }
    }
    assert_eq!(most, steps.len());
}

#[test]
fn a_newer_version_is_named() {
    let mut bytes = written(&[], 1);
    bytes[8] = 9;
    let error = Reader::open(&bytes[..]).unwrap_err();
    assert!(matches!(error, TraceError::Version { found: 9, known: 1 }), "{error}");
}

#[test]
fn a_missing_block_is_an_error() {
    let step = Step { thread: 0, operation: Operation::Alloc { kind: Kind::Plain, size: 8 } };
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&mut bytes, &header()).unwrap();
    for _ in 0..3 {
        writer.write(step).unwrap();
        writer.write_block().unwrap();
    }
    drop(writer);
    // Three equal blocks, except for the number of their first object.
    let length = {
        let mut reader = Reader::open(&bytes[..]).unwrap();
        let mut steps = Vec::new();
        while reader.read_block(&mut steps).unwrap_or(false) {}
        assert_eq!(steps.len(), 3);
        let mut one = Vec::new();
        let mut writer = Writer::begin(&mut one, &header()).unwrap();
        writer.write(step).unwrap();
        writer.write_block().unwrap();
        drop(writer);
        (bytes.len() - one.len()) / 2
    };
    let second = bytes.len() - 2 * length;
    bytes.drain(second..second + length);
    let (steps, error) = read(&bytes).unwrap();
    assert_eq!(steps.len(), 1);
    assert!(matches!(error, Some(TraceError::Damaged { what: "a block is missing before it", .. })));
}

/// A head that claims the most that is possible takes no more memory than that.
#[test]
fn claims_of_size_are_bounded() {
    let mut bytes = [0xff; PartHead::SIZE];
    bytes[..4].copy_from_slice(&2_u32.to_le_bytes());
    assert!(PartHead::from_bytes(&bytes).is_err());
    bytes[4..8].copy_from_slice(&(MAX_PART as u32).to_le_bytes());
    bytes[8..12].copy_from_slice(&(MAX_PART as u32).to_le_bytes());
    bytes[12..16].copy_from_slice(&1_u32.to_le_bytes());
    assert!(PartHead::from_bytes(&bytes).is_ok());
    bytes[12..16].copy_from_slice(&(MAX_PART as u32 + 1).to_le_bytes());
    assert!(PartHead::from_bytes(&bytes).is_err(), "more steps than bytes");
}

#[test]
fn impossible_steps_end_a_history() {
    let step = |operation| Step { thread: 0, operation };
    let alloc = |size| step(Operation::Alloc { kind: Kind::Plain, size });
    let free = step(Operation::Free { object: 0 });
    for (steps, good) in [
        (vec![alloc(8), free, free], 2),
        (vec![alloc(8), free, step(Operation::Realloc { object: 0, size: 1 })], 2),
        (vec![step(Operation::EndThread), alloc(1)], 1),
        (vec![Step { thread: 1, operation: Operation::EndThread }], 0),
        (vec![alloc(u64::MAX)], 0),
        (vec![alloc(1), alloc(i64::MAX as u64)], 1),
        (vec![free], 0),
    ] {
        let (history, error) = History::of(header(), steps);
        assert_eq!(history.steps.len(), good);
        assert!(matches!(error, Some(TraceError::Impossible { step, .. }) if step == good as u64));
    }
}

#[test]
fn totals_are_those_of_the_steps() {
    let step = |thread, operation| Step { thread, operation };
    let alloc = |size| Operation::Alloc { kind: Kind::Plain, size };
    let steps = vec![
        step(0, alloc(100)),
        step(0, alloc(50)),
        step(1, Operation::Free { object: 0 }),
        step(1, Operation::Realloc { object: 1, size: 70 }),
        step(0, alloc(0)),
    ];
    let (history, error) = History::of(header(), steps);
    assert!(error.is_none());
    let totals = Totals {
        allocations: 3,
        reallocs: 1,
        frees: 1,
        threads: 2,
        switches: 2,
        peak_live: 150,
        peak_objects: 2,
        final_live: 70,
    };
    assert_eq!(history.totals, totals);
}

#[test]
fn a_writer_refuses_objects_that_were_not_allocated() {
    let mut bytes = Vec::new();
    let mut writer = Writer::begin(&mut bytes, &header()).unwrap();
    let step = Step { thread: 0, operation: Operation::Free { object: 0 } };
    assert_eq!(writer.write(step).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}
