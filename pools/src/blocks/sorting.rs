//! Sorting a list of free blocks by address, in place.
//!
//! A long list is divided by the bits of its addresses, the highest first, until the parts are short; these are sorted by
//! merging. So a processor's cache has room for all that is merged, and a block is loaded from memory a few times, and not
//! once for each merge.

use core::{array, mem};

use super::chain::Chain;
use super::free_block::FreeBlock;
use super::list::List;

/// A list of at most this many units is sorted by merging.
const SHORT: usize = 256;

/// Into how many parts a longer one is divided, as a power of two.
const PART_BITS: u32 = 6;
const PARTS: usize = 1 << PART_BITS;

impl List {
    /// Sorts the first `count` units by address; these should be all units. It takes
    /// n log n steps at most, and no memory but the units'. It ends after as many, whatever the links say.
    pub(crate) fn sort(&mut self, count: usize) {
        if count <= SHORT {
            return self.sort_by_merges(count);
        }
        let (lowest, highest) = self.bounds(count);
        self.sort_between(count, lowest, usize::BITS - (highest - lowest).leading_zeros());
    }

    /// The least and the greatest address of the first `count` units.
    fn bounds(&self, count: usize) -> (usize, usize) {
        let (mut next, mut lowest, mut highest) = (self.first(), usize::MAX, 0);
        for _ in 0..count {
            let Some(unit) = next else { break };
            let place = unit.addr().get();
            (lowest, highest) = (lowest.min(place), highest.max(place));
            // SAFETY: units in the list are free and begin with their link.
            next = unsafe { FreeBlock::next(unit, self.watch()) };
        }
        (lowest.min(highest), highest)
    }

    /// Sorts the first `count` units, whose addresses are `lowest` or above, by less than two to the power of `bits`.
    fn sort_between(&mut self, count: usize, lowest: usize, bits: u32) {
        let Some(bits) = bits.checked_sub(PART_BITS).filter(|_| count > SHORT) else {
            return self.sort_by_merges(count);
        };
        let key = self.watch().key;
        let mut parts: [(Self, usize); PARTS] = array::from_fn(|_| (Self::of(key), 0));
        for _ in 0..count {
            let Some(unit) = self.pop() else { break };
            let index = unit.addr().get().wrapping_sub(lowest) >> bits;
            // Above the last only if another thread has written over a link meanwhile.
            if let Some((part, units)) = parts.get_mut(index.min(PARTS - 1)) {
                // SAFETY: just taken out of the list.
                unsafe { part.push(unit) };
                *units += 1;
            }
        }
        for (index, (mut part, units)) in parts.into_iter().enumerate().rev() {
            if units == 0 {
                continue;
            }
            part.sort_between(units, lowest.wrapping_add(index << bits), bits);
            // The units of the part come first, so this ends with the last of them.
            *self = part.merge(mem::replace(self, Self::of(key)), count);
        }
    }

    /// Sorts the first `count` units: sorted lists of 1, 2, 4 ... units are merged as a counter carries.
    fn sort_by_merges(&mut self, count: usize) {
        let key = self.watch().key;
        let mut sorted: [Self; usize::BITS as usize] = array::from_fn(|_| Self::of(key));
        for _ in 0..count {
            let Some(unit) = self.pop() else { break };
            let mut carry = Self::of(key);
            // SAFETY: just taken out of the list.
            unsafe { carry.push(unit) };
            for place in &mut sorted {
                if place.first().is_none() {
                    *place = carry;
                    break;
                }
                carry = mem::replace(place, Self::of(key)).merge(carry, count);
            }
        }
        for place in sorted {
            *self = mem::replace(self, Self::of(key)).merge(place, count);
        }
    }

    /// Two sorted lists in one, with the damage met in either. They have at most `most` units; if more follow, they lead in a
    /// circle (design/hardening.md `.req.ends`).
    fn merge(mut self, mut other: Self, most: usize) -> Self {
        let mut merged: Option<Chain> = None;
        while let (Some(one), Some(two)) = (self.first(), other.first()) {
            if !self.watch().accepts(|_| merged.as_ref().map_or(0, Chain::count) < most) {
                break;
            }
            let lower = if one < two { &mut self } else { &mut other };
            if let Some(unit) = lower.pop() {
                match &mut merged {
                    // SAFETY: just taken out of its list.
                    Some(chain) => unsafe { chain.append(unit) },
                    // SAFETY: just taken out of its list.
                    None => merged = Some(unsafe { Chain::of(unit, self.watch().key) }),
                }
            }
        }
        let (mut rest, done) = if self.first().is_some() { (self, other) } else { (other, self) };
        rest.note(done.ensure_sound());
        if let Some(chain) = merged {
            rest.push_chain(chain);
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use core::ptr::NonNull;
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;
    use tripoint_core::{Addr, AddrRange, PoolId};
    use tripoint_oracle::{Random, cases};

    use super::*;
    use crate::link::LinkKey;

    /// A unit, in words.
    const UNIT: usize = 4;

    /// Sorts units of these indices, and returns their addresses in the order of the list, and those of a sort by the standard
    /// library.
    fn sorted(indices: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let mut words = vec![0_usize; UNIT * (indices.iter().max().unwrap() + 1)];
        let base = NonNull::from(words.as_mut_slice()).cast::<u8>();
        let range = AddrRange::with_size(Addr::of(base.as_ptr()), size_of_val(&*words)).unwrap();
        let mut list = List::of(LinkKey::new(range, PoolId::new(7).unwrap()));
        for index in indices {
            // SAFETY: units of the vector, each in the list once, which nothing else uses.
            unsafe { list.push(base.cast::<[usize; UNIT]>().add(*index).cast()) };
        }
        list.sort(indices.len());
        let found = core::iter::from_fn(|| list.pop()).map(|unit| unit.addr().get()).collect();
        assert!(list.ensure_sound().is_ok());
        let mut expected: Vec<usize> =
            indices.iter().map(|index| base.addr().get() + index * size_of::<[usize; UNIT]>()).collect();
        expected.sort_unstable();
        (found, expected)
    }

    fn shuffled(mut indices: Vec<usize>, seed: u64) -> Vec<usize> {
        let mut random = Random::new(seed);
        for last in (1..indices.len()).rev() {
            indices.swap(random.below(last + 1), last);
        }
        indices
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(60), failure_persistence: None, ..ProptestConfig::default() })]

        /// Lists shorter and longer than what is merged, of units that lie densely, far apart, and in two heaps.
        #[test]
        fn lists_are_sorted_as_by_the_standard_library(
            count in 1..3 * SHORT,
            stride in 1..20_usize,
            gap in 0..20_000_usize,
            seed: u64,
        ) {
            let indices = (0..count).map(|index| index * stride + if index > count / 2 { gap } else { 0 });
            let (found, expected) = sorted(&shuffled(indices.collect(), seed));
            prop_assert_eq!(found, expected);
        }
    }

    /// Long enough to be divided again.
    #[test]
    fn a_long_list_is_sorted() {
        let count = if cfg!(miri) { 2 * SHORT } else { 40_000 };
        let (found, expected) = sorted(&shuffled((0..count).collect(), 7));
        assert_eq!(found, expected);
    }

    /// Wherever a long list was written over, sorting it ends, and shows the damage.
    #[cfg(feature = "hardening")]
    #[test]
    fn a_long_list_that_was_written_over_is_known_after_it_is_sorted() {
        const COUNT: usize = SHORT + 44;
        let places = [COUNT / 2, 0, 1, COUNT - 2, COUNT - 1];
        for place in places.into_iter().take(if cfg!(miri) { 1 } else { 5 }) {
            let mut words = vec![0_usize; UNIT * COUNT];
            let base = NonNull::from(words.as_mut_slice()).cast::<[usize; UNIT]>();
            let range = AddrRange::with_size(Addr::of(base.as_ptr()), size_of_val(&*words)).unwrap();
            let mut list = List::of(LinkKey::new(range, PoolId::new(7).unwrap()));
            for index in shuffled((0..COUNT).collect(), 3) {
                // SAFETY: units of the vector, each in the list once, which nothing else uses.
                unsafe { list.push(base.add(index).cast()) };
            }
            // SAFETY: a unit of the vector, which the list does not use meanwhile.
            unsafe { base.add(place).cast::<usize>().write(0x5A) };
            list.sort(COUNT);
            assert_eq!(list.ensure_sound(), Err(crate::link::Damaged), "{place}");
            assert!(core::iter::from_fn(|| list.pop()).count() <= COUNT);
        }
    }

    /// Two lists with a unit in common, of which one is not in order: what is appended becomes part of what is to be merged.
    /// Without a bound this never ends.
    #[cfg(feature = "hardening")]
    #[test]
    fn lists_that_lead_in_a_cycle_are_not_merged_forever() {
        let mut words = [[0_usize; 4]; 4];
        let base = NonNull::from(&mut words).cast::<u8>();
        let range = AddrRange::with_size(Addr::of(base.as_ptr()), size_of_val(&words)).unwrap();
        let key = LinkKey::new(range, PoolId::new(7).unwrap());
        // SAFETY: a unit of the array, which is four words.
        let [x, y, w, z] =
            [0, 1, 2, 3].map(|number| unsafe { base.cast::<[usize; 4]>().add(number) }.cast::<u8>());
        // SAFETY: units of the array, which nothing else uses. That one is in two lists is what is tried.
        let (one, other) = unsafe {
            let z = FreeBlock::link(z, None, key);
            let y = FreeBlock::link(y, Some(z), key);
            let x = FreeBlock::link(x, Some(y), key);
            let w = FreeBlock::link(w, Some(x), key);
            (List::from_link(Some(w), key), List::from_link(Some(x), key))
        };
        let merged = one.merge(other, 5);
        assert_eq!(merged.ensure_sound(), Err(crate::link::Damaged));
    }
}
