//! Words that free blocks keep in themselves, and how much they are trusted.
//!
//! With the feature `hardening` every such word is stored encoded, by a secret of
//! the pool and the address it is stored at, and what comes out of the decoding
//! has to make sense before it is followed. Without it all of this is nothing:
//! words are stored as they are and believed (design/hardening.md `.link`,
//! `.req.off`).

use core::fmt;

use tripoint_core::{Arena, Error, PoolHeader};

#[cfg(feature = "hardening")]
use crate::hardening::Secret;

/// A word in free memory is not one that the pool wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

impl From<Damaged> for Error {
    fn from(_: Damaged) -> Self {
        Self::Damaged
    }
}

/// What the words in the free memory of one pool are encoded with.
#[derive(Clone, Copy)]
pub(crate) struct LinkKey {
    #[cfg(feature = "hardening")]
    secret: Secret,
}

impl LinkKey {
    /// Whether words are encoded and checked at all.
    pub(crate) const CHECKS: bool = cfg!(feature = "hardening");

    /// The key of a pool.
    #[cfg(feature = "hardening")]
    pub(crate) fn of<A: Arena>(header: &PoolHeader<A>) -> Self {
        Self { secret: Secret::new(header.arena().range(), header.id()) }
    }

    /// The key of a pool.
    #[cfg(not(feature = "hardening"))]
    pub(crate) const fn of<A: Arena>(_header: &PoolHeader<A>) -> Self {
        Self {}
    }

    /// The form in which `word` is stored at the address `slot`. It keeps its
    /// provenance.
    #[inline]
    pub(crate) fn encode<T>(self, slot: usize, word: *mut T) -> *mut T {
        #[cfg(feature = "hardening")]
        let word = word.map_addr(|addr| self.secret.encode(slot, addr));
        let _ = slot;
        word
    }

    /// The word that was [encoded](LinkKey::encode) for `slot`, whatever is there.
    #[inline]
    pub(crate) fn decode<T>(self, slot: usize, stored: *mut T) -> *mut T {
        #[cfg(feature = "hardening")]
        let stored = stored.map_addr(|addr| self.secret.decode(slot, addr));
        let _ = slot;
        stored
    }

    /// Whether an address could be that of a free block, or is zero. Without the
    /// feature every address could.
    #[inline]
    pub(crate) fn is_link(self, addr: usize, align: usize) -> bool {
        #[cfg(feature = "hardening")]
        return addr == 0 || self.secret.covers(addr) && addr.is_multiple_of(align);
        #[cfg(not(feature = "hardening"))]
        {
            let _ = (addr, align);
            true
        }
    }
}

/// Does not show the secret.
impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKey(..)")
    }
}

/// Whether damage was met in a pool. One that met any serves no more: every
/// further step could be led astray. Without the feature it never is.
#[derive(Debug, Default)]
pub(crate) struct Health {
    #[cfg(feature = "hardening")]
    damaged: bool,
}

impl Health {
    /// No damage met.
    pub(crate) const fn new() -> Self {
        Self {
            #[cfg(feature = "hardening")]
            damaged: false,
        }
    }

    /// Refuses once damage was met.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline]
    pub(crate) fn ensure(&self) -> Result<(), Damaged> {
        #[cfg(feature = "hardening")]
        if self.damaged {
            return Err(Damaged);
        }
        Ok(())
    }

    /// Remembers whether an operation met damage.
    #[inline]
    pub(crate) fn note<T>(&mut self, outcome: Result<T, Damaged>) -> Result<T, Damaged> {
        #[cfg(feature = "hardening")]
        if outcome.is_err() {
            self.damaged = true;
        }
        outcome
    }
}
