//! Words that free blocks contain, and how far they are trusted.
//!
//! With the feature `hardening` every such word is stored encoded, by a secret of
//! the pool and the address it is stored at, and a decoded word has to make sense
//! before it is followed. Without the feature none of this happens: words are
//! stored as they are, and trusted (design/hardening.md `.link`, `.req.off`).

#[cfg(feature = "hardening")]
use core::cell::Cell;
use core::fmt;
#[cfg(not(feature = "hardening"))]
use core::marker::PhantomData;

use tripoint_core::{AddrRange, Arena, Error, PoolHeader, PoolId};

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

/// The key that encodes the words in the free memory of one pool.
#[derive(Clone, Copy)]
pub(crate) struct LinkKey {
    #[cfg(feature = "hardening")]
    secret: Secret,
}

impl LinkKey {
    /// Whether words are encoded and checked at all.
    pub(crate) const CHECKS: bool = cfg!(feature = "hardening");

    /// The key of a pool.
    pub(crate) fn of<A: Arena>(header: &PoolHeader<A>) -> Self {
        Self::new(header.arena().range(), header.id())
    }

    /// The key of a pool in an arena of this range.
    pub(crate) fn new(range: AddrRange, pool: PoolId) -> Self {
        #[cfg(not(feature = "hardening"))]
        let _ = (range, pool);
        Self {
            #[cfg(feature = "hardening")]
            secret: Secret::new(range, pool),
        }
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

    /// Whether `size` bytes from `base` could be free memory; a size of zero may
    /// begin anywhere. Without the feature all could.
    #[inline]
    pub(crate) fn is_size(self, size: usize, base: usize) -> bool {
        #[cfg(feature = "hardening")]
        return self.secret.has_room(size, base);
        #[cfg(not(feature = "hardening"))]
        {
            let _ = (size, base);
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

/// The rule that a check names after damage.
pub(crate) const UNDAMAGED: &str = "no free memory was written over, and nothing freed wrongly";

/// Whether damage was met in a pool. A pool that met any is disabled: every
/// further step could be led astray. Without the feature it never is.
#[derive(Debug, Default)]
pub(crate) struct Health {
    #[cfg(feature = "hardening")]
    damaged: Cell<bool>,
}

impl Health {
    /// No damage met.
    pub(crate) const fn new() -> Self {
        Self {
            #[cfg(feature = "hardening")]
            damaged: Cell::new(false),
        }
    }

    /// Refuses once damage was met.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline]
    pub(crate) fn ensure(&self) -> Result<(), Damaged> {
        #[cfg(feature = "hardening")]
        if self.damaged.get() {
            return Err(Damaged);
        }
        Ok(())
    }

    /// Remembers whether an operation met damage.
    #[inline]
    pub(crate) fn note<T>(&self, outcome: Result<T, Damaged>) -> Result<T, Damaged> {
        #[cfg(feature = "hardening")]
        if outcome.is_err() {
            self.damaged.set(true);
        }
        outcome
    }
}

/// What reads the words in free memory: a pool's key, and where damage is noted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch<'health> {
    pub(crate) key: LinkKey,
    #[cfg(feature = "hardening")]
    health: &'health Health,
    #[cfg(not(feature = "hardening"))]
    health: PhantomData<&'health Health>,
}

impl<'health> Watch<'health> {
    /// Reads with a key, and notes damage in `health`.
    #[inline]
    pub(crate) const fn new(key: LinkKey, health: &'health Health) -> Self {
        #[cfg(not(feature = "hardening"))]
        let health = {
            let _ = health;
            PhantomData
        };
        Self { key, health }
    }

    /// Whether what was read is sound; if not, notes it. Without the feature
    /// nothing is checked, and everything counts as sound.
    #[inline]
    pub(crate) fn accepts(self, is_sound: impl FnOnce(LinkKey) -> bool) -> bool {
        #[cfg(feature = "hardening")]
        {
            let sound = is_sound(self.key);
            if !sound {
                self.health.damaged.set(true);
            }
            sound
        }
        #[cfg(not(feature = "hardening"))]
        {
            let _ = (is_sound, self.health);
            true
        }
    }

    /// What was read; damage is noted, and none.
    #[inline(always)]
    pub(crate) fn noted<T>(self, read: Result<Option<T>, Damaged>) -> Option<T> {
        read.unwrap_or_else(|Damaged| {
            self.accepts(|_| false);
            None
        })
    }

    /// What was read, if it makes sense as well. Damage is noted.
    ///
    /// # Errors
    /// [`Damaged`]
    #[inline(always)]
    pub(crate) fn sound<T>(
        self,
        read: Result<T, Damaged>,
        makes_sense: impl FnOnce(&T) -> bool,
    ) -> Result<T, Damaged> {
        if self.accepts(|_| read.as_ref().is_ok_and(makes_sense)) { read } else { Err(Damaged) }
    }
}
