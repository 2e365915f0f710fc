//! How a thread has every other one pass a barrier, so that the others need only keep the compiler from reordering.

#[cfg(target_os = "linux")]
pub(crate) use tripoint_arena_vm::Membarrier as HeavyBarrier;

#[cfg(not(target_os = "linux"))]
pub(crate) use none::HeavyBarrier;

#[cfg(not(target_os = "linux"))]
mod none {
    use tripoint_core::{BarrierPair, Error, Result};

    /// There is none on this system.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum HeavyBarrier {}

    impl HeavyBarrier {
        /// Refuses.
        ///
        /// # Errors
        /// [`Error::Resource`]
        pub(crate) const fn register() -> Result<Self> {
            Err(Error::Resource)
        }
    }

    // SAFETY: no value exists, so neither side runs.
    unsafe impl BarrierPair for HeavyBarrier {
        fn light(self) {
            match self {}
        }

        fn heavy(self) {
            match self {}
        }
    }
}
