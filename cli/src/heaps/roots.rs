//! The roots of a heap (design/inspection.md `.roots`).

use std::collections::HashSet;

use crate::heaps::faults::Faults;
use crate::heaps::heap::Heap;
use crate::heaps::layout::{RootsOutline, structure};
use crate::memory::{Memory, Thread};

/// No heap has more roots, no chunk of typed roots more slots, and no more words are looked at in all roots of a heap.
const MOST_ROOTS: usize = 1 << 24;
const MOST_WORDS: u64 = 1 << 25;
const MOST_SLOTS: u64 = 1 << 10;
const MOST_GENERATIONS: u64 = 64;

/// No stack is larger, in bytes.
const MOST_STACK: u64 = 1 << 30;

/// How many words of a root are read at a time.
const CHUNK: u64 = 1 << 9;

/// The bytes below the stack pointer that a function may use without moving it.
const RED_ZONE: u64 = 128;

/// The words of a root's place: which kind it is, and its fields.
const PLACE_WORDS: usize = 5;

/// What a root is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Typed,
    TypedPinned,
    Table,
    WeakTable,
    Ambiguous,
    Stack,
    Function,
    WeakFunction,
    Transform,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Typed => "typed root",
            Self::TypedPinned => "pinned typed root",
            Self::Table => "table",
            Self::WeakTable => "weak table",
            Self::Ambiguous => "ambiguous area",
            Self::Stack => "stack",
            Self::Function => "function",
            Self::WeakFunction => "weak function",
            Self::Transform => "transform",
        }
    }

    /// Whether its references are ambiguous: they lead to what is around an address.
    pub(super) fn is_ambiguous(self) -> bool {
        matches!(self, Self::Ambiguous | Self::Stack | Self::TypedPinned)
    }
}

/// A reference of a root.
#[derive(Clone, Copy, Debug)]
pub(super) struct RootReference {
    pub(super) kind: Kind,
    /// Where it is.
    pub(super) place: u64,
    pub(super) word: u64,
}

/// What was found when roots were looked at.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// The kind of each root, in the order in which they were met. Each slot of typed roots that is in use is one.
    pub(super) roots: Vec<Kind>,
    /// Roots whose references are not known.
    pub(super) unknown: usize,
    pub(super) faults: Faults,
}

/// A look at the roots of a heap.
struct Look<'l, V> {
    memory: &'l dyn Memory,
    heap: &'l Heap,
    visit: V,
    /// How many words may still be looked at.
    left: u64,
    looked: Looked,
}

/// Passes all references of roots that keep objects to `visit`.
pub(super) fn look(memory: &dyn Memory, heap: &Heap, visit: impl FnMut(RootReference)) -> Looked {
    let mut look = Look { memory, heap, visit, left: MOST_WORDS, looked: Looked::default() };
    look.all();
    look.looked
}

impl<V: FnMut(RootReference)> Look<'_, V> {
    fn all(&mut self) {
        let listing = &self.heap.listing;
        let mut seen = HashSet::new();
        let mut next = self.memory.word_at(self.heap.outline.roots, 0);
        while let Some(root) = next.filter(|root| *root != 0) {
            if seen.len() >= MOST_ROOTS || !seen.insert(root) {
                break;
            }
            let place = root.checked_add(listing.root_place);
            let Some(words) = place.and_then(|place| self.memory.words(place, PLACE_WORDS)) else {
                next = None;
                break;
            };
            if self.root(&words).is_none() {
                self.looked.faults.add(format!(
                    "the references of the root at {root:#x} are not all there, or roots have more than {MOST_WORDS} words"
                ));
            }
            next = self.memory.word_at(root, listing.root_next);
        }
        if next.is_none() {
            self.looked.faults.add("not all roots are there".to_owned());
        }
    }

    /// A root by the words of its place; `None` if its references are not there.
    fn root(&mut self, words: &[u64]) -> Option<()> {
        let &[kind, first, second, third, fourth] = words else { return None };
        let kinds = [
            Kind::Table,
            Kind::WeakTable,
            Kind::Ambiguous,
            Kind::Stack,
            Kind::Function,
            Kind::WeakFunction,
            Kind::WeakFunction,
            Kind::Transform,
        ];
        let kind = *kinds.get(usize::try_from(kind).ok()?)?;
        // Typed roots are counted by their slots.
        if (kind, third == 0) != (Kind::Function, false) {
            self.looked.roots.push(kind);
        }
        match kind {
            Kind::Table => {
                self.words(kind, first, second, |word| (word & third == fourth).then_some(word & !third))
            }
            Kind::Ambiguous => self.words(kind, first, second, Some),
            Kind::Stack => self.stack(first),
            Kind::Function if third != 0 => self.typed(third),
            Kind::Function | Kind::Transform => {
                self.looked.unknown += 1;
                Some(())
            }
            _ => Some(()),
        }
    }

    /// References in a row.
    fn words(
        &mut self,
        kind: Kind,
        base: u64,
        count: u64,
        reference: impl Fn(u64) -> Option<u64>,
    ) -> Option<()> {
        let size = self.memory.word() as u64;
        let mut at = 0;
        while at < count {
            let here = CHUNK.min(count - at);
            self.spend(here)?;
            let first = base.checked_add(at.checked_mul(size)?)?;
            // At the end of what is there, words are read one by one.
            let words = self.memory.words(first, here as usize).or_else(|| self.memory.words(first, 1))?;
            for (place, word) in (first..).step_by(size as usize).zip(&words) {
                if let Some(word) = reference(*word).filter(|word| *word != 0) {
                    (self.visit)(RootReference { kind, place, word });
                }
            }
            at += words.len() as u64;
        }
        Some(())
    }

    /// Takes this many words of those that may be looked at; `None` if there are fewer.
    fn spend(&mut self, words: u64) -> Option<()> {
        self.left = self.left.checked_sub(words)?;
        Some(())
    }

    /// The stack of a thread. That of one that runs, and its registers, are those that it had when it was stopped.
    fn stack(&mut self, stack: u64) -> Option<()> {
        let listing = &self.heap.listing;
        let (cold, hot) =
            (self.memory.word_at(stack, listing.cold_end)?, self.memory.word_at(stack, listing.hot_end)?);
        if cold == 0 {
            return Some(());
        }
        if hot != 0 {
            return self.stack_from(hot, cold);
        }
        // It runs: it is the thread whose stack pointer is next below the cold end.
        let depth =
            |thread: &Thread| cold.checked_sub(thread.stack_pointer).filter(|depth| *depth <= MOST_STACK);
        let threads = self.memory.threads();
        let of_stack = threads.iter().filter_map(|thread| Some((depth(thread)?, thread)));
        let Some((_, thread)) = of_stack.min_by_key(|(depth, _)| *depth) else {
            self.looked.unknown += 1;
            return Some(());
        };
        for word in thread.registers.iter().copied().filter(|word| *word != 0) {
            (self.visit)(RootReference { kind: Kind::Stack, place: thread.stack_pointer, word });
        }
        self.stack_from(thread.stack_pointer.saturating_sub(RED_ZONE) & !7, cold)
    }

    fn stack_from(&mut self, hot: u64, cold: u64) -> Option<()> {
        let count = cold.checked_sub(hot)? / self.memory.word() as u64;
        self.words(Kind::Stack, hot, count, Some)
    }

    /// The slots of typed roots.
    fn typed(&mut self, outline: u64) -> Option<()> {
        let outline = structure!(RootsOutline, self.memory, outline)?;
        if outline.slot_count > MOST_SLOTS || outline.generations > MOST_GENERATIONS {
            return None;
        }
        let mut seen = HashSet::new();
        for (kind, lists) in [(Kind::Typed, outline.strong), (Kind::TypedPinned, outline.pinned)] {
            for list in 0..outline.generations {
                let mut chunk = self.memory.word_at(lists, list * self.memory.word() as u64)?;
                while chunk != 0 && seen.len() < MOST_ROOTS && seen.insert(chunk) {
                    self.spend(outline.slot_count)?;
                    for slot in 0..outline.slot_count {
                        let offset = outline.slot_size.checked_mul(slot)?.checked_add(outline.slots)?;
                        let place = chunk.checked_add(offset)?.checked_add(outline.object)?;
                        let word = self.memory.word_at(place, 0)?;
                        if word != 0 {
                            self.looked.roots.push(kind);
                            (self.visit)(RootReference { kind, place, word });
                        }
                    }
                    chunk = self.memory.word_at(chunk, outline.next)?;
                }
            }
        }
        Some(())
    }
}
