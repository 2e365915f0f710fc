//! The registration of a cold thread.

use core::fmt;
use core::marker::PhantomData;

use crate::detectors::platform;
use crate::thread::slot::Slot;

/// The registration of a cold thread, which is counted until this is dropped. It is not `Send`.
///
/// Another thread does not end it:
/// ```compile_fail,E0277
/// use tripoint_contract::{Budget, Contract};
///
/// fn elsewhere(contract: &'static Contract, budget: Budget) {
///     let registration = contract.register_cold("logger", budget).unwrap();
///     std::thread::spawn(move || drop(registration));
/// }
/// ```
#[must_use = "a cold thread is counted until its registration is dropped"]
pub struct ColdRegistration {
    slot: &'static Slot,
    not_send: PhantomData<*mut ()>,
}

impl ColdRegistration {
    pub(crate) const fn new(slot: &'static Slot) -> Self {
        Self { slot, not_send: PhantomData }
    }

    /// The thread's slot: what is known of the thread.
    #[must_use]
    pub const fn slot(&self) -> &'static Slot {
        self.slot
    }
}

impl Drop for ColdRegistration {
    fn drop(&mut self) {
        platform::detach(self.slot);
        self.slot.leave(false);
    }
}

impl fmt::Debug for ColdRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColdRegistration").field("thread", &self.slot.name()).finish_non_exhaustive()
    }
}
