//! The program's hook for what the contract does (design/contract.md `.events`).

use core::fmt;

use tripoint_core::internal::{Defer, Once};
use tripoint_core::{Error, Event, EventHook, Result};

use crate::words::atomics::const_fn;
use crate::words::record::Record;

const TAKEN: &str = "the contract has an event hook already: give it a pair of hooks";

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

    /// # Errors
    /// [`Error::Parameter`] if there is a hook already.
    pub(crate) fn must_be_free(&self) -> Result<()> {
        match self.hook.get() {
            None => Ok(()),
            Some(_) => Err(Error::Parameter(TAKEN)),
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
        if is_set { Ok(()) } else { Err(Error::Parameter(TAKEN)) }
    }

    /// Has the same hook as another one, if that has one.
    pub(crate) fn follow(&self, other: &Self) {
        if let Some(&hook) = other.hook.get() {
            // A slot that is used again has it already.
            let _ = self.set(hook);
        }
    }

    pub(crate) fn report(&self, event: Event) {
        self.call(|hook| hook.event(event));
    }

    /// Reports a record, with its site.
    pub(crate) fn report_record(&self, record: &Record) {
        self.call(|hook| hook.event_at(record.event(), record.site.frames()));
    }

    /// Calls the hook, if there is one. The process aborts if the hook unwinds: it is called inside allocators
    /// and signal handlers, out of which nothing may unwind, and in the middle of what the contract keeps of a
    /// thread.
    fn call(&self, call: impl FnOnce(&dyn EventHook)) {
        let Some(hook) = self.hook.get() else { return };
        // A panic while another one unwinds aborts, also without `std`.
        let unwinds = Defer::new(|| panic!("the contract's event hook unwinds, which it must not do"));
        call(*hook);
        core::mem::forget(unwinds);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("is_set", &self.hook.get().is_some()).finish_non_exhaustive()
    }
}
