//! Signatures: words that distinguish a live structure from a dead or foreign one.
//!
//! A signature is set last when a structure is made and cleared first when it is
//! finished (MPS design.mps.sig), so that the first check of a stale pointer finds it.

use crate::primitive::{AtomicU32, Ordering};
use crate::values::check::{CheckError, ensure};

/// A signature word.
#[derive(Debug)]
pub struct Signature(AtomicU32);

impl Signature {
    /// Creates a signature that is already set.
    #[cfg(not(tripoint_loom))]
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    /// Creates a signature that is already set.
    #[cfg(tripoint_loom)]
    #[must_use]
    pub fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    /// Sets the signature: the structure is whole from here on.
    pub fn set(&self, value: u32) {
        self.0.store(value, Ordering::Release);
    }

    /// Clears the signature: the structure is finished.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Checks that the signature is `value`.
    ///
    /// # Errors
    /// If it is not: the structure is finished, damaged or foreign.
    pub fn check(&self, structure: &'static str, value: u32) -> Result<(), CheckError> {
        ensure(structure, self.0.load(Ordering::Acquire) == value, "the signature is set")
    }
}

#[cfg(all(test, not(tripoint_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_signature_tells_live_from_finished_and_foreign() {
        let found = |signature: &Signature| signature.check("Arena", 7).map_err(|error| error.structure);
        let signature = Signature::new(7);
        assert_eq!(found(&signature), Ok(()));
        signature.clear();
        assert_eq!(found(&signature), Err("Arena"), "finished");
        signature.set(8);
        assert_eq!(found(&signature), Err("Arena"), "foreign");
        signature.set(7);
        assert_eq!(found(&signature), Ok(()));
    }
}
