//! Tries laws with numbers from a fixed generator.

use crate::law::Law;

/// How many times each law is tried.
const TRIES: usize = 20_000;

/// Numbers that sums go wrong at more often than at others: small ones, powers of two and what is beside them, from both
/// ends.
struct Numbers(u64);

impl Numbers {
    fn random(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self) -> u64 {
        let (how, number) = (self.random(), self.random());
        let small = number % 80;
        match how % 8 {
            0 | 1 => small,
            2 => (1_u64 << (number % 64)).wrapping_add(how >> 8 & 3).wrapping_sub(2),
            3 => u64::MAX - small,
            4 => (usize::MAX as u64).wrapping_sub(number % (4 << 20)),
            5 => number >> (how >> 8 & 63) & !15,
            6 => number >> (how >> 8 & 63),
            _ => number,
        }
    }
}

/// How often a law failed, held and was not asked.
pub fn outcomes(law: &Law) -> [usize; 3] {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut counts = [0; 3];
    for _ in 0..TRIES {
        counts[usize::from((law.run)(&mut || numbers.next()))] += 1;
    }
    counts
}
