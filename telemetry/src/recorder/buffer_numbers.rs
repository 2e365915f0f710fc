//! The numbers by which events and counters name buffers
//! ([design/telemetry.md `.number`](crate::design::telemetry)).

#![forbid(unsafe_code)]

use tripoint_core::Addr;

/// Computes the numbers of buffers from their addresses, one to one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferNumbers {
    keys: [u64; 2],
    is_secret: bool,
}

impl BufferNumbers {
    /// Numbers for which `keys` are a secret, or numbers from which any reader can compute the addresses.
    pub(crate) const fn new(keys: Option<[u64; 2]>) -> Self {
        match keys {
            Some(keys) => Self { keys, is_secret: true },
            None => Self { keys: [0; 2], is_secret: false },
        }
    }

    /// Whether the numbers do not show the addresses.
    #[inline]
    pub(crate) const fn are_secret(&self) -> bool {
        self.is_secret
    }

    /// The number of a buffer: the construction of Even and Mansour (1997), a fixed permutation between two keys. The
    /// permutation is made of the steps of MurmurHash3's finalizer.
    #[inline]
    pub(crate) const fn of(&self, buffer: Addr) -> u64 {
        let [before, after] = self.keys;
        permuted(buffer.get() as u64 ^ before) ^ after
    }
}

#[inline]
const fn permuted(word: u64) -> u64 {
    let mixed = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tripoint_oracle::cases;

    use super::*;

    /// The number that a factor takes to one, modulo 2^64, by Newton's iteration.
    fn inverse(factor: u64) -> u64 {
        (0..6)
            .fold(factor, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(inverse))))
    }

    fn address(numbers: &BufferNumbers, number: u64) -> u64 {
        let mixed = number ^ numbers.keys[1];
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(inverse(0xc4ce_b9fe_1a85_ec53));
        (mixed ^ mixed >> 32).wrapping_mul(inverse(0xff51_afd7_ed55_8ccd)) ^ numbers.keys[0]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(256), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_address_has_one_number_and_each_number_one_address(buffer: usize, keys: [u64; 2]) {
            let numbers = BufferNumbers::new(Some(keys));
            prop_assert_eq!(address(&numbers, numbers.of(Addr::new(buffer))), buffer as u64);
        }

        /// For any first key there is a second with which the known address has its number, and the other
        /// buffer then has another address. So every address is still possible.
        #[test]
        fn one_known_address_does_not_give_another_away(known: usize, other: usize, keys: [u64; 2], first: u64) {
            prop_assume!(known != other && first != keys[0]);
            let numbers = BufferNumbers::new(Some(keys));
            let [of_known, of_other] = [known, other].map(|buffer| numbers.of(Addr::new(buffer)));
            let second = permuted(known as u64 ^ first) ^ of_known;
            let guess = BufferNumbers::new(Some([first, second]));
            prop_assert_eq!(guess.of(Addr::new(known)), of_known);
            prop_assert!(address(&guess, of_other) != other as u64);
        }

        /// The control: without a second key, it does.
        #[test]
        fn with_one_key_it_would(known: usize, other: usize, key: u64) {
            let numbers = BufferNumbers::new(Some([key, 0]));
            let [of_known, of_other] = [known, other].map(|buffer| numbers.of(Addr::new(buffer)));
            let found = address(&BufferNumbers::new(Some([0, 0])), of_known) ^ known as u64;
            prop_assert_eq!(address(&BufferNumbers::new(Some([found, 0])), of_other), other as u64);
        }
    }
}
