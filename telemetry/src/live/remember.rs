//! Whether a sampler remembers what it sampled.

#![forbid(unsafe_code)]

use core::fmt;

use tripoint_core::Addr;

use crate::live::live_samples::LiveSamples;
use crate::sampled_object::SampledObject;

/// Where sampled objects are remembered until they are freed: in a table (`&LiveSamples`), or not at all (`()`).
pub trait Remember: sealed::Remember {}

pub(crate) mod sealed {
    use super::{Addr, SampledObject, fmt};

    /// See [`Remember`](super::Remember).
    pub trait Remember: Copy + fmt::Debug {
        /// Remembers an object.
        fn remember(self, sampled: &SampledObject);

        /// Forgets an object whose memory is about to be returned.
        fn forget(self, object: Addr);

        /// Forgets an object while `reallocate` moves it, and for good unless that returns null.
        #[cfg(feature = "std")]
        fn forget_unless_refused(self, object: Addr, reallocate: impl FnOnce() -> *mut u8) -> *mut u8;
    }
}

impl Remember for () {}

impl sealed::Remember for () {
    #[inline(always)]
    fn remember(self, _sampled: &SampledObject) {}

    #[inline(always)]
    fn forget(self, _object: Addr) {}

    #[cfg(feature = "std")]
    #[inline(always)]
    fn forget_unless_refused(self, _object: Addr, reallocate: impl FnOnce() -> *mut u8) -> *mut u8 {
        reallocate()
    }
}

impl<const N: usize> Remember for &LiveSamples<N> {}

impl<const N: usize> sealed::Remember for &LiveSamples<N> {
    fn remember(self, sampled: &SampledObject) {
        LiveSamples::remember(self, sampled);
    }

    #[inline(always)]
    fn forget(self, object: Addr) {
        if self.may_hold(object) {
            LiveSamples::forget(self, object);
        }
    }

    #[cfg(feature = "std")]
    #[inline(always)]
    fn forget_unless_refused(self, object: Addr, reallocate: impl FnOnce() -> *mut u8) -> *mut u8 {
        if self.may_hold(object) {
            LiveSamples::forget_unless_refused(self, object, reallocate)
        } else {
            reallocate()
        }
    }
}
