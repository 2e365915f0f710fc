//! WebAssembly: linear memory, which grows by `memory.grow`.

use core::arch::wasm32::{memory_grow, memory_size};
use core::ptr::{NonNull, with_exposed_provenance_mut};

use tripoint_core::{Align, Lock};

use super::linear::{Linear, LinearMemory};
use super::released::Released;

/// The linear memory that a module's own data lie in, too.
const MEMORY: u32 = 0;

/// What arenas of the module have released.
static RELEASED: Lock<Released> = Lock::new(Released::new());

/// The linear memory of this module.
#[derive(Clone, Copy, Debug, Default)]
pub struct WasmMemory;

impl Linear<WasmMemory> {
    /// Creates the platform; it has no state.
    #[must_use]
    pub const fn new() -> Self {
        Self::on(WasmMemory)
    }
}

// SAFETY: `memory.grow` adds zeroed memory at the end, for good, and returns where that was to one caller alone. It is no
// memory of Rust's abstract machine (no static, stack or allocation), which counts as exposed: so one provenance is for
// all of it.
unsafe impl LinearMemory for WasmMemory {
    const UNIT: Align = Align::new(64 << 10).unwrap();

    fn end(&self) -> Option<usize> {
        memory_size::<MEMORY>().checked_mul(Self::UNIT.get())
    }

    fn grow(&self, size: usize) -> Option<NonNull<u8>> {
        // If it is refused, that is the greatest number, and no number of pages.
        let end = memory_grow::<MEMORY>(size / Self::UNIT.get());
        NonNull::new(with_exposed_provenance_mut(end.checked_mul(Self::UNIT.get())?))
    }

    fn released(&self) -> &Lock<Released> {
        &RELEASED
    }
}
