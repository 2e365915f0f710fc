//! Hardening: free memory that cannot be turned against its pool.
//!
//! With the cargo feature `hardening`, the links that pools keep in free blocks are encoded
//! with a secret and checked before they are followed, and objects are checked when they
//! are freed. If a program wrote to memory it had freed, or freed what is no object, the
//! pool finds this and refuses with [`Error::Damaged`](tripoint_core::Error::Damaged). It
//! does not hand out an address that an attacker chose, or memory that is in use
//! (design/hardening.md `.req.follow`, `.req.once`).

#![forbid(unsafe_code)]

mod code;

use tripoint_core::internal::{AtomicUsize, Ordering};
use tripoint_core::{Addr, AddrRange, PoolId};

use code::{decode, encode, mix};

static SEED: AtomicUsize = AtomicUsize::new(0);

/// Sets the seed of the secrets of pools created from now on.
///
/// This crate has no source of randomness of its own. Without a seed, the secrets follow
/// from where the arena lies. That is enough against accidents, which do not guess. Against
/// attackers, who do, it is as good as the platform's address randomisation
/// (design/hardening.md `.secret`).
pub fn set_hardening_seed(seed: usize) {
    SEED.store(seed, Ordering::Relaxed);
}

/// The secret of a pool, and the addresses its links may lead to.
#[derive(Clone, Copy)]
pub(crate) struct Secret {
    key: usize,
    range: AddrRange,
}

impl Secret {
    /// The secret of a pool in an arena of this range.
    pub(crate) fn new(range: AddrRange, pool: PoolId) -> Self {
        let place = mix(range.base().get() ^ SEED.load(Ordering::Relaxed));
        Self { key: mix(place ^ pool.get() as usize), range }
    }

    /// Encodes a word for its place.
    #[inline]
    pub(crate) const fn encode(self, slot: usize, word: usize) -> usize {
        encode(self.key, slot, word)
    }

    /// Undoes [`Secret::encode`].
    #[inline]
    pub(crate) const fn decode(self, slot: usize, stored: usize) -> usize {
        decode(self.key, slot, stored)
    }

    /// Whether an address lies in the arena.
    #[inline]
    pub(crate) const fn covers(self, addr: usize) -> bool {
        self.range.contains(Addr::new(addr))
    }

    /// Whether the arena has `size` bytes from an address on, or at all for zero.
    #[inline]
    pub(crate) fn has_room(self, size: usize, base: usize) -> bool {
        let limit = base.max(self.range.base().get()).checked_add(size);
        limit.is_some_and(|limit| limit <= self.range.limit().get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        let range = AddrRange::with_size(Addr::new(0x7000_0000), 1 << 20).unwrap();
        Secret::new(range, PoolId::new(7).unwrap())
    }

    #[test]
    fn decoding_undoes_encoding() {
        let secret = secret();
        for word in [0, 1, 0x7000_0010, usize::MAX, 1 << (usize::BITS - 1)] {
            let stored = secret.encode(0x7000_0040, word);
            assert_ne!(stored, word);
            assert_eq!(secret.decode(0x7000_0040, stored), word);
            assert_ne!(secret.decode(0x7000_0050, stored), word, "bound to its place");
        }
    }

    #[test]
    fn pools_and_seeds_have_secrets_of_their_own() {
        let range = AddrRange::with_size(Addr::new(0x7000_0000), 1 << 20).unwrap();
        let other = Secret::new(range, PoolId::new(8).unwrap());
        assert_ne!(secret().key, other.key);
        let before = secret().key;
        set_hardening_seed(42);
        let seeded = secret().key;
        set_hardening_seed(0);
        assert_ne!(before, seeded);
        assert_eq!(before, secret().key);
    }

    /// A link copied from another place leads nowhere, in an arena of 2 TiB (64 KiB,
    /// where words have 32 bits) from any distance up to 1 MiB (4 KiB).
    /// (design/hardening.md `.place`)
    #[test]
    fn a_word_copied_from_nearby_is_seen() {
        let (size, farthest) = if usize::BITS == 64 { (1_u64 << 41, 1 << 20) } else { (1 << 16, 1 << 12) };
        for base in [size, 3 * size + (size >> 1), 0x7_0000] {
            let range = AddrRange::with_size(Addr::new(base as usize), size as usize).unwrap();
            let secret = Secret::new(range, PoolId::new(7).unwrap());
            let from = range.base().get() + 0x4040;
            for distance in (size_of::<usize>()..farthest).step_by(size_of::<usize>()) {
                for link in [0, from, range.limit().get() - 0x10] {
                    let copied = secret.decode(from + distance, secret.encode(from, link));
                    assert!(copied != 0 && !secret.covers(copied), "{base:#x}: {link:#x} by {distance:#x}");
                }
            }
        }
    }

    /// Whatever one byte is overwritten with, the link leads nowhere.
    #[test]
    fn a_byte_written_over_is_seen() {
        let secret = secret();
        let (slot, link) = (0x7000_0040, 0x7000_8000);
        let stored = secret.encode(slot, link);
        let mut unseen = 0;
        for byte in 0..size_of::<usize>() {
            for change in 1..=255_usize {
                let damaged = secret.decode(slot, stored ^ change << (byte * 8));
                unseen += usize::from(secret.covers(damaged) && damaged.is_multiple_of(16));
            }
        }
        assert_eq!(unseen, 0);
    }
}
