//! What a platform keeps for a watch of writes.

use core::ptr;

use tripoint_core::internal::AtomicPtr;

/// The watch of one reservation, as its platform keeps it ([`Platform::open_watch`](super::Platform::open_watch)): a
/// word for this crate's platforms. A platform of another crate keeps what it needs itself.
#[derive(Debug)]
pub struct Watch(
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has a watch"))] AtomicPtr<()>,
);

impl Watch {
    /// A watch that was never opened: its word is null.
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The word of the platform, which alone changes it.
    #[cfg(target_os = "linux")]
    pub(super) const fn word(&self) -> &AtomicPtr<()> {
        &self.0
    }
}
