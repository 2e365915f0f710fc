//! A session table: entries come, change and go.

use std::collections::HashMap;

use tripoint_adaptors::PoolAllocator;
use tripoint_core::ManualPool;

use super::{Numbers, PoolMap, PoolVec};

const ROUNDS: u64 = if cfg!(miri) { 24 } else { 3000 };

/// What happens to a session: one more byte of data, or its end.
fn traffic() -> impl Iterator<Item = (u64, Option<u8>)> {
    let mut numbers = Numbers::new(1);
    (0..ROUNDS).map(move |round| {
        let ends = numbers.below(4) == 0;
        (numbers.below(200), (!ends).then_some(round as u8))
    })
}

pub(crate) fn run<P: ManualPool>(pool: &P) {
    let memory = PoolAllocator::new(pool);
    let mut sessions: PoolMap<'_, u64, PoolVec<'_, u8, P>, P> = PoolMap::new_in(memory);
    let mut finished = PoolVec::new_in(memory);
    for (session, event) in traffic() {
        match event {
            Some(byte) => {
                sessions.entry(session).or_insert_with(|| PoolVec::new_in(memory)).push(byte);
            }
            None => finished.extend(sessions.remove(&session)),
        }
        if finished.len() % 64 == 63 {
            sessions.shrink_to_fit();
        }
    }

    let (expected, expected_finished) = with_std();
    assert_eq!(sessions.len(), expected.len());
    for (session, bytes) in &expected {
        assert_eq!(sessions[session].as_slice(), bytes.as_slice());
    }
    assert!(finished.iter().map(|bytes| bytes.as_slice()).eq(expected_finished.iter().map(Vec::as_slice)));
}

fn with_std() -> (HashMap<u64, Vec<u8>>, Vec<Vec<u8>>) {
    let mut sessions: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut finished = Vec::new();
    for (session, event) in traffic() {
        match event {
            Some(byte) => sessions.entry(session).or_default().push(byte),
            None => finished.extend(sessions.remove(&session)),
        }
    }
    (sessions, finished)
}
