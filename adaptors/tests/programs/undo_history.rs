//! An editor's undo history: versions of a text that share what they have in common.

use tripoint_adaptors::PoolAllocator;
use tripoint_core::{ManualPool, PoolRc};

use super::{Numbers, PoolVec};

const EDITS: u64 = if cfg!(miri) { 30 } else { 1500 };

#[derive(Clone, Copy)]
enum Edit {
    Push(u8),
    Pop,
    Undo,
    Redo,
}

fn edits() -> impl Iterator<Item = Edit> {
    let mut numbers = Numbers::new(9);
    (0..EDITS).map(move |_| match numbers.below(10) {
        0..5 => Edit::Push(b'a' + numbers.below(26) as u8),
        5 | 6 => Edit::Pop,
        7 | 8 => Edit::Undo,
        _ => Edit::Redo,
    })
}

/// A text as a list of lines from its end: a changed version shares the rest.
type Text<'p, P> = Option<PoolRc<'p, Line<'p, P>, P>>;

struct Line<'p, P: ManualPool> {
    letter: u8,
    before: Text<'p, P>,
}

impl<P: ManualPool> Drop for Line<'_, P> {
    /// Drops the lines before this one in a loop, not by recursion.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(Ok(mut line)) = before.map(PoolRc::try_unwrap) {
            before = line.before.take();
        }
    }
}

fn contents<P: ManualPool>(text: &Text<'_, P>) -> Vec<u8> {
    let mut letters: Vec<u8> =
        core::iter::successors(text.as_ref(), |line| line.before.as_ref()).map(|line| line.letter).collect();
    letters.reverse();
    letters
}

pub(crate) fn run<P: ManualPool>(pool: &P) {
    let memory = PoolAllocator::new(pool);
    let (mut undo, mut redo) = (PoolVec::new_in(memory), PoolVec::new_in(memory));
    let mut text: Text<'_, P> = None;
    let (mut expected_undo, mut expected_redo, mut expected) = (Vec::new(), Vec::new(), Vec::new());

    for edit in edits() {
        match edit {
            Edit::Push(letter) => {
                redo.clear();
                undo.push(text.clone());
                text = Some(PoolRc::new_in(Line { letter, before: text }, pool).unwrap());
                expected_redo.clear();
                expected_undo.push(expected.clone());
                expected.push(letter);
            }
            Edit::Pop => {
                redo.clear();
                undo.push(text.clone());
                text = text.and_then(|line| line.before.clone());
                expected_redo.clear();
                expected_undo.push(expected.clone());
                expected.pop();
            }
            Edit::Undo => {
                if let (Some(version), Some(same)) = (undo.pop(), expected_undo.pop()) {
                    redo.push(core::mem::replace(&mut text, version));
                    expected_redo.push(core::mem::replace(&mut expected, same));
                }
            }
            Edit::Redo => {
                if let (Some(version), Some(same)) = (redo.pop(), expected_redo.pop()) {
                    undo.push(core::mem::replace(&mut text, version));
                    expected_undo.push(core::mem::replace(&mut expected, same));
                }
            }
        }
        assert_eq!(contents(&text), expected);
        assert_eq!((undo.len(), redo.len()), (expected_undo.len(), expected_redo.len()));
    }
    assert!(expected.len() as u64 > EDITS / 30);
}
