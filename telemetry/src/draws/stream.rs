//! Streams of random numbers.

#![forbid(unsafe_code)]

use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoroshiro128PlusPlus};

/// A stream of random numbers, of 16 bytes.
///
/// Two streams never begin alike unless both seed and number are the same: the pair is mixed
/// reversibly into the state of the generator, xoroshiro128++. So a process takes one seed, and
/// numbers its streams. A forked child has to take another seed, or it repeats what its parent
/// draws ([design/sampling.md `.fork`](crate::design::sampling)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream(Xoroshiro128PlusPlus);

impl Stream {
    /// The stream `number` of those that belong to `seed`. The same pair returns the same stream, on
    /// every target.
    #[must_use]
    pub fn new(seed: u64, number: u64) -> Self {
        let mut state = [0; 16];
        let (first, second) = state.split_at_mut(8);
        first.copy_from_slice(&mixed(seed));
        second.copy_from_slice(&mixed(number));
        Self(Xoroshiro128PlusPlus::from_seed(state))
    }

    /// The next random number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// A number whose bits all depend on all bits of another, one to one.
fn mixed(number: u64) -> [u8; 8] {
    SplitMix64::from_seed(number.to_le_bytes()).next_u64().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn streams_are_distinct_and_can_be_had_again() {
        let start = |seed, number| {
            let mut stream = Stream::new(seed, number);
            [stream.next(), stream.next()]
        };
        let mut seen = HashSet::new();
        let most = if cfg!(miri) { 10 } else { 100 };
        for seed in 0..most {
            for number in 0..most {
                assert!(seen.insert(start(seed, number)), "{seed} {number}");
                assert_eq!(start(seed, number), start(seed, number));
            }
        }
    }

    /// Seeds and numbers are small in practice, and their streams must not resemble each other:
    /// of two streams, about half of all bits differ.
    #[test]
    fn neighbouring_streams_do_not_resemble_each_other() {
        let differing = |a: (u64, u64), b: (u64, u64)| -> u32 {
            let (mut a, mut b) = (Stream::new(a.0, a.1), Stream::new(b.0, b.1));
            (0..1000).map(|_| (a.next() ^ b.next()).count_ones()).sum()
        };
        // 32,000 are expected, with a standard deviation of 126.
        for number in 0..if cfg!(miri) { 1 } else { 20 } {
            for other in [(0, number + 1), (1, number), (number + 1, 0)] {
                let bits = differing((0, number), other);
                assert!((31_300..32_700).contains(&bits), "{number} and {other:?}: {bits}");
            }
        }
    }
}
