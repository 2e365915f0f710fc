//! What every word of the pool is used for, as the debug pool handed it out.
//!
//! It is kept in the arena's descriptor memory, out of reach of code that writes past an object.

use tripoint_core::{Addr, AddrRange, Arena, PoolHeader, Result};

use crate::sparse_bits::{Bit, SparseBits};

/// The unit of the ledger, in bytes.
pub(super) const WORD: usize = size_of::<usize>();

/// What a word is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing: free, or not of the pool.
    Free,
    /// The first word of an object.
    Start,
    /// The rest of an object.
    Rest,
    /// A fill: objects of an allocation point, and what it has not allocated yet.
    Buffer,
}

/// Two bits for each word: in both an object starts, in the first it goes on, in
/// the second alone is a fill.
#[derive(Debug)]
pub(super) struct Ledger {
    objects: SparseBits<WORD>,
    starts: SparseBits<WORD>,
}

impl Ledger {
    /// Everything free.
    pub(super) fn new(range: AddrRange) -> Self {
        Self { objects: SparseBits::new(range), starts: SparseBits::new(range) }
    }

    /// Makes room for the marks of a range.
    ///
    /// # Errors
    /// Those of [`Arena::alloc_descriptor`].
    pub(super) fn cover<A: Arena>(&mut self, range: AddrRange, header: &PoolHeader<A>) -> Result<()> {
        self.objects.cover(range, header)?;
        self.starts.cover(range, header)
    }

    /// Notes an object.
    pub(super) fn note_object(&mut self, range: AddrRange) {
        self.note(range, Mark::Rest);
        self.starts.insert(range.base().get());
    }

    /// Notes that a range, which has to be covered, is a fill, or free.
    pub(super) fn note(&mut self, range: AddrRange, mark: Mark) {
        for word in words(range) {
            let (objects, starts) = (self.objects.find(word), self.starts.find(word));
            let set = |bit: Option<Bit>, on: bool| {
                bit.inspect(|bit| if on { bit.set() } else { bit.clear() });
            };
            set(objects, matches!(mark, Mark::Start | Mark::Rest));
            set(starts, matches!(mark, Mark::Start | Mark::Buffer));
        }
    }

    /// What the word at an address is used for.
    pub(super) fn mark(&self, addr: usize) -> Mark {
        let is_set = |bits: &SparseBits<WORD>| bits.find_shared(addr).is_some_and(Bit::is_set);
        match (is_set(&self.objects), is_set(&self.starts)) {
            (false, false) => Mark::Free,
            (true, true) => Mark::Start,
            (true, false) => Mark::Rest,
            (false, true) => Mark::Buffer,
        }
    }

    /// The number of bytes from `addr` on that have this mark, up to `most`.
    pub(super) fn size_of_run(&self, addr: usize, mark: Mark, most: usize) -> usize {
        (0..most).step_by(WORD).take_while(|offset| self.mark(addr + offset) == mark).count() * WORD
    }

    /// The bytes of the object that starts at `addr`.
    pub(super) fn object_size(&self, addr: usize) -> usize {
        WORD + self.size_of_run(addr + WORD, Mark::Rest, usize::MAX - addr - WORD)
    }

    /// Shows where every object starts.
    pub(super) fn walk_objects(&self, visit: &mut dyn FnMut(Addr)) {
        self.starts.walk(&mut |addr| {
            if self.mark(addr.get()) == Mark::Start {
                visit(addr);
            }
        });
    }

    /// Returns the memory to the arena.
    pub(super) fn destroy<A: Arena>(&mut self, header: &PoolHeader<A>) {
        self.objects.destroy(header);
        self.starts.destroy(header);
    }
}

fn words(range: AddrRange) -> impl Iterator<Item = usize> {
    (range.base().get()..range.limit().get()).step_by(WORD)
}
