//! How much is reserved if the platform refuses what the options ask for ([design/arena-vm.md
//! `.reserve`](crate::design::arena_vm)).

use core::ptr::NonNull;

use tripoint_core::Align;

use crate::platform::{Platform, PlatformError};

/// How exactly the most that is granted is looked for: to within this part of it.
const EXACTNESS: usize = 128;

/// The part of the most that is granted which is left to the rest of the process.
const REST: usize = 16;

/// What is asked of the platform: from `floor` to `wanted` bytes, both whole grains and not zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) wanted: usize,
    pub(super) floor: usize,
    pub(super) grain: Align,
    pub(super) align: Align,
}

impl Request {
    /// Reserves what is wanted. If the platform refuses, reserves all but a sixteenth of the most that it grants, but at
    /// least the floor. Returns the base and the size.
    ///
    /// # Errors
    /// The platform's refusal of the floor.
    pub(super) fn reserve(self, platform: &impl Platform) -> Result<(NonNull<u8>, usize), PlatformError> {
        self.try_size(platform, self.wanted).or_else(|_| {
            let most = self.most_granted(platform);
            let size = self.whole_grains(most - most / REST);
            self.try_size(platform, size).or_else(|_| self.try_size(platform, self.floor))
        })
    }

    fn try_size(self, platform: &impl Platform, size: usize) -> Result<(NonNull<u8>, usize), PlatformError> {
        platform.reserve(size, self.align.get()).map(|base| (base, size))
    }

    /// The most that the platform grants below what is wanted, nearly; the floor if it grants no more than that.
    fn most_granted(self, platform: &impl Platform) -> usize {
        let (mut granted, mut refused) = (self.wanted, self.wanted);
        while granted > self.floor {
            granted = self.whole_grains(granted / 2);
            if self.grants(platform, granted) {
                break;
            }
            refused = granted;
        }
        while refused - granted > (granted / EXACTNESS).max(self.grain.get()) {
            let middle = self.whole_grains(granted + (refused - granted) / 2);
            if self.grants(platform, middle) { granted = middle } else { refused = middle }
        }
        granted
    }

    fn grants(self, platform: &impl Platform, size: usize) -> bool {
        self.try_size(platform, size).is_ok_and(|(base, size)| {
            // If the release is refused, addresses are lost, but no memory.
            //
            // SAFETY: this was reserved just now with this size and alignment, and nothing has used it.
            let _ = unsafe { platform.release(base, size, self.align.get()) };
            true
        })
    }

    /// `size` in whole grains, rounded down, and at least the floor.
    fn whole_grains(self, size: usize) -> usize {
        self.grain.round_down(size).max(self.floor)
    }
}
