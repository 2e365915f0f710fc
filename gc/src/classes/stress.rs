//! Fills and freed memory while a heap is under stress (design/gc.md `.stress.fill`, `.stress.poison`).

use tripoint_core::{Addr, Arena, Block, Error, Fill, Result, aver};

use crate::classes::pool::Pool;
use crate::classes::pool_generation::PoolGeneration;
use crate::classes::runs::Runs;
use crate::classes::state::State;
use crate::heaps::mutator_buffer::MutatorBuffer;
use crate::scans::format::Format;
use crate::segments::generation::Generation;
use crate::segments::segment::SegmentPtr;

/// What freed memory is filled with: as a pointer it leads nowhere, as a number it is odd, large and negative.
const POISON: u8 = 0xdd;

/// The number of places in a segment at which copies begin, one after the other. It is prime, so that it shares no
/// period with what a program does.
pub(crate) const SHIFTS: usize = 61;

impl<A: Arena, F: Format> Pool<A, F> {
    /// Returns memory for one object of `size` bytes, which the buffer holds from here on. It is the first that is free
    /// behind the last such memory, around all segments: what died is used again as late as possible.
    pub(crate) fn fill_exactly(&self, buffer: &MutatorBuffer, size: usize) -> Result<Fill> {
        let mut state = self.state.lock();
        let first = self.first_generation();
        let memory = match self.next_gap(&mut state, first, size) {
            Some(memory) => memory,
            None => self.grow_by_gap(&mut state, first, size).or_else(|error| {
                let older =
                    Generation::all().find_map(|generation| self.next_gap(&mut state, generation, size));
                older.ok_or(error)
            })?,
        };
        let segment = self.segment_of(memory.range().base());
        let of_generation = state.of(segment.get().generation());
        // All runs are gaps, and found as such.
        of_generation.runs = Runs::new();
        of_generation.free -= memory.size();
        state.filled_to = memory.range().limit();
        buffer.hold(memory.range());
        segment.get().set_used();
        Ok(Fill { block: memory, preallocated: 0, segment: Some(segment.segment()) })
    }

    /// Adds a segment, and returns the first memory in it.
    fn grow_by_gap(&self, state: &mut State, first: Generation, size: usize) -> Result<Block> {
        let payload = self.grow(state, size)?;
        state.of(first).free += payload.size();
        let memory = self.next_gap(state, first, size);
        aver!(memory.is_some(), "no {size} bytes in a new segment with {} bytes", payload.size());
        memory.ok_or(Error::Memory)
    }

    /// The first `size` free bytes of a generation at or above where the last fill ended, or, if there are none, at all.
    fn next_gap(&self, state: &mut State, generation: Generation, size: usize) -> Option<Block> {
        let from = state.filled_to;
        let mut first: Option<(bool, Addr, SegmentPtr)> = None;
        PoolGeneration::for_each(state.of(generation).segments, |segment| {
            if self.has_large(segment) {
                return;
            }
            self.for_each_gap(segment, |gap| {
                let (base, limit) = (gap.range().base(), gap.range().limit());
                let behind = base.max(from);
                let fits = |base: Addr| base < limit && limit.get() - base.get() >= size;
                let Some(base) = [behind, base].into_iter().find(|base| fits(*base)) else { return };
                if first.is_none_or(|(wraps, best, _)| (base < from, base) < (wraps, best)) {
                    first = Some((base < from, base, segment));
                }
            });
        });
        first.map(|(_, base, segment)| self.block(segment, base, Addr::new(base.get() + size)))
    }

    /// Fills the gaps of a segment with poison.
    pub(crate) fn poison_gaps(&self, segment: SegmentPtr) {
        self.for_each_gap(segment, |gap| {
            // SAFETY: a gap is in no object and no buffer, so nothing uses it. It is in the segment, and valid for
            // writes.
            unsafe { gap.base().write_bytes(POISON, gap.size()) };
        });
    }
}
