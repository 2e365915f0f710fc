//! Options of a client arena.

use core::fmt;

use crate::arena::descriptor_memory::DescriptorMemory;
use crate::events::event::EventHook;
use crate::values::align::Align;
use crate::values::error::{Error, Result};

/// The smallest grain that a client arena can have, in bytes: a descriptor's alignment.
const GRAIN_MIN: usize = DescriptorMemory::ALIGN.get();

/// Options for a [`ClientArena`](crate::ClientArena).
#[derive(Clone, Copy, Default)]
pub struct ClientArenaOptions<'m> {
    /// The size of a grain in bytes: a power of two, at least 64.
    ///
    /// The default is a 64th of the memory, rounded up to a power of two, and at least 256
    /// bytes and at most 64 KiB.
    pub grain: Option<usize>,
    /// The hook that observes the arena's events.
    pub event_hook: Option<&'m dyn EventHook>,
}

impl fmt::Debug for ClientArenaOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientArenaOptions")
            .field("grain", &self.grain)
            .field("event_hook", &self.event_hook.is_some())
            .finish()
    }
}

impl ClientArenaOptions<'_> {
    /// The grain for memory of `size` bytes.
    pub(super) fn grain_for(&self, size: usize) -> Result<Align> {
        let default = || (size / 64).next_power_of_two().clamp(256, 64 << 10);
        Align::new(self.grain.unwrap_or_else(default))
            .filter(|grain| grain.get() >= GRAIN_MIN)
            .ok_or(Error::Parameter("the grain is not a power of two of at least 64 bytes"))
    }
}
