//! The root: registers and a stack. What is in them is kept, and what moves is found there again.

use core::cell::Cell;

use tripoint::gc::Scan;

use super::value::{Value, Word, is_reference};

/// The values that the interpreter has by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    /// What is evaluated.
    Expression,
    /// Where its names are looked up.
    Scope,
    /// What came out.
    Value,
    /// A list of the symbols that have values: these are kept.
    Globals,
    /// The keys of all symbols: these are not kept by it.
    Symbols,
}

const REGISTERS: usize = 5;

/// The registers, and above them the stack.
#[derive(Debug)]
pub(crate) struct Stack {
    words: Box<[Cell<Word>]>,
    depth: Cell<usize>,
    /// Whether the uppermost value is not passed on: a flaw to be found.
    forgets: bool,
}

impl Stack {
    /// A stack with room for that many values.
    pub(crate) fn new(size: usize, forgets: bool) -> Self {
        let words = vec![Cell::new(Value::NIL.word()); REGISTERS + size].into_boxed_slice();
        Self { words, depth: Cell::new(REGISTERS), forgets }
    }

    /// How many values it has room for.
    pub(super) fn size(&self) -> usize {
        self.words.len() - REGISTERS
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.get()
    }

    /// Forgets what lies at this depth and above.
    pub(super) fn cut(&self, depth: usize) {
        assert!((REGISTERS..=self.depth()).contains(&depth), "the stack ends below {depth}");
        self.depth.set(depth);
    }

    /// Puts a word on top, if there is room.
    pub(super) fn push(&self, word: Word) -> bool {
        let Some(place) = self.words.get(self.depth()) else { return false };
        place.set(word);
        self.depth.set(self.depth() + 1);
        true
    }

    pub(super) fn word(&self, place: usize) -> Word {
        assert!(place < self.depth(), "the stack ends below {place}");
        self.words[place].get()
    }

    pub(super) fn set_word(&self, place: usize, word: Word) {
        assert!(place < self.depth(), "the stack ends below {place}");
        self.words[place].set(word);
    }

    /// Passes all references to a scan: the function of the root.
    ///
    /// # Safety
    /// - `stack` leads to a stack that its thread does not use meanwhile.
    pub(super) unsafe fn scan(stack: *mut (), scan: &mut Scan<'_>) {
        // SAFETY: the caller promises a stack, which is only ever borrowed shared.
        let stack = unsafe { &*stack.cast::<Self>() };
        let depth = if stack.forgets { REGISTERS.max(stack.depth() - 1) } else { stack.depth() };
        for place in &stack.words[..depth] {
            let mut word = place.get();
            if is_reference(word) {
                scan.fix(&mut word);
                place.set(word);
            }
        }
    }
}
