//! How much is reserved if the platform refuses what the options ask for ([design/arena-vm.md
//! `.reserve`](crate::design::arena_vm)).

use core::ptr::NonNull;

use tripoint_core::Align;

use crate::platform::{Platform, PlatformError};

/// How exactly the most that is granted is looked for: to within this part of it.
const EXACTNESS: usize = 128;

/// The part of the most that is granted which is reserved at first, and then whenever more is needed.
pub(super) const STEP: usize = 16;

/// The part of the most that is granted which is left to the rest of the process, if a reservation cannot grow.
const REST: usize = 16;

/// What is asked of the platform: from `floor` to `wanted` bytes, both whole grains and not zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) wanted: usize,
    pub(super) floor: usize,
    pub(super) grain: Align,
    pub(super) align: Align,
    /// Whether the reservation may grow, if the platform can do that.
    pub(super) may_grow: bool,
}

/// What the platform granted: of `size` bytes of addresses the first `reserved`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) base: NonNull<u8>,
    pub(super) size: usize,
    pub(super) reserved: usize,
}

impl Request {
    /// Reserves what is wanted; if that is memory at once, the floor with room to grow. If the platform refuses, reserves a part of the most that it grants, or the floor, with
    /// room to grow behind it. If there can be no room, reserves all but a sixteenth of it.
    ///
    /// # Errors
    /// The platform's refusal of the floor.
    pub(super) fn reserve(self, platform: &impl Platform) -> Result<Granted, PlatformError> {
        if platform.reserves_memory() && self.may_grow && self.floor < self.wanted {
            return self.with_room(platform, self.floor, self.wanted);
        }
        self.try_size(platform, self.wanted).or_else(|_| {
            let most = self.most_granted(platform);
            if self.may_grow
                && let Ok(granted) = self.with_room(platform, self.whole_grains(most / STEP), most)
            {
                return Ok(granted);
            }
            let share = self.whole_grains(most - most / REST);
            self.try_size(platform, share).or_else(|_| self.try_size(platform, self.floor))
        })
    }

    fn try_size(self, platform: &impl Platform, size: usize) -> Result<Granted, PlatformError> {
        platform.reserve(size, self.align.get()).map(|base| Granted { base, size, reserved: size })
    }

    /// Reserves the first of `size` bytes, with room for the others.
    fn with_room(
        self,
        platform: &impl Platform,
        reserved: usize,
        size: usize,
    ) -> Result<Granted, PlatformError> {
        if reserved == size {
            return self.try_size(platform, size);
        }
        platform.reserve_with_room(reserved, size, self.align.get()).map(|base| Granted {
            base,
            size,
            reserved,
        })
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
        self.try_size(platform, size).is_ok_and(|all| {
            // If the release is refused, addresses are lost, but no memory.
            //
            // SAFETY: this was reserved just now with this size and alignment, and nothing has used it.
            let _ = unsafe { platform.release(all.base, size, self.align.get()) };
            true
        })
    }

    /// `size` in whole grains, rounded down, and at least the floor.
    fn whole_grains(self, size: usize) -> usize {
        self.grain.round_down(size).max(self.floor)
    }
}
