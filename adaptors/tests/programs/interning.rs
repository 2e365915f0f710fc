//! String interning: every word once, and a number for it.

use core::hash::BuildHasher;
use std::collections::HashMap;

use hashbrown::{DefaultHashBuilder, HashTable};
use tripoint_adaptors::PoolAllocator;
use tripoint_core::ManualPool;

use super::{Numbers, PoolVec};

const WORDS: usize = if cfg!(miri) { 32 } else { 3000 };

fn words() -> impl Iterator<Item = String> {
    let mut numbers = Numbers::new(3);
    (0..WORDS).map(move |_| {
        let length = 1 + numbers.below(3);
        (0..length).map(|_| char::from(b'a' + numbers.below(7) as u8)).collect()
    })
}

/// The words by number, and a table of the numbers by word.
struct Interner<'p, P: ManualPool> {
    words: PoolVec<'p, PoolVec<'p, u8, P>, P>,
    numbers: HashTable<usize, PoolAllocator<'p, P>>,
    hasher: DefaultHashBuilder,
    memory: PoolAllocator<'p, P>,
}

impl<'p, P: ManualPool> Interner<'p, P> {
    fn new(pool: &'p P) -> Self {
        let memory = PoolAllocator::new(pool);
        let (words, numbers) = (PoolVec::new_in(memory), HashTable::new_in(memory));
        Self { words, numbers, hasher: DefaultHashBuilder::default(), memory }
    }

    fn intern(&mut self, word: &str) -> usize {
        let Self { words, numbers, hasher, memory } = self;
        let hash_of = |word: &[u8]| hasher.hash_one(word);
        let hash = hash_of(word.as_bytes());
        if let Some(&number) = numbers.find(hash, |&number| words[number].as_slice() == word.as_bytes()) {
            return number;
        }
        let number = words.len();
        let mut kept = PoolVec::with_capacity_in(word.len(), *memory);
        kept.extend_from_slice(word.as_bytes());
        words.push(kept);
        numbers.insert_unique(hash, number, |&number| hash_of(&words[number]));
        number
    }

    fn word(&self, number: usize) -> &str {
        core::str::from_utf8(&self.words[number]).unwrap()
    }
}

pub(crate) fn run<P: ManualPool>(pool: &P) {
    let mut interner = Interner::new(pool);
    let numbers: Vec<usize> = words().map(|word| interner.intern(&word)).collect();

    let mut expected: HashMap<String, usize> = HashMap::new();
    for (word, number) in words().zip(numbers) {
        let next = expected.len();
        assert_eq!(*expected.entry(word.clone()).or_insert(next), number);
        assert_eq!(interner.word(number), word);
    }
    assert!(
        interner.words.len() == expected.len() && expected.len() < if cfg!(miri) { WORDS } else { WORDS / 2 }
    );
}
