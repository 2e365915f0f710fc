//! The program's hook for what the contract does (design/contract.md `.events`).

use core::fmt;

use tripoint_core::internal::Once;
use tripoint_core::{Error, Event, EventHook, Result};

use crate::words::atomics::const_fn;
use crate::words::record::Record;

/// A hook, or none yet. Looking for it is one load.
pub(crate) struct Observer {
    hook: Once<&'static dyn EventHook>,
}

impl Observer {
    const_fn! {
        pub(crate) fn new() -> Self {
            Self { hook: Once::new() }
        }
    }

    /// Sets the hook, which stays.
    ///
    /// # Errors
    /// [`Error::Parameter`] if there is one already.
    pub(crate) fn set(&self, hook: &'static dyn EventHook) -> Result<()> {
        let mut is_set = false;
        self.hook.get_or_try_init(|| {
            is_set = true;
            Ok(hook)
        })?;
        if is_set {
            Ok(())
        } else {
            Err(Error::Parameter("the contract has an event hook already: give it a pair of hooks"))
        }
    }

    /// Has the same hook as another one, if that has one.
    pub(crate) fn follow(&self, other: &Self) {
        if let Some(&hook) = other.hook.get() {
            // A slot that is used again has it already.
            let _ = self.set(hook);
        }
    }

    pub(crate) fn report(&self, event: Event) {
        if let Some(hook) = self.hook.get() {
            hook.event(event);
        }
    }

    /// Reports a record, with its site.
    pub(crate) fn report_record(&self, record: &Record) {
        if let Some(hook) = self.hook.get() {
            hook.event_at(record.event(), record.site.frames());
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("is_set", &self.hook.get().is_some()).finish_non_exhaustive()
    }
}
