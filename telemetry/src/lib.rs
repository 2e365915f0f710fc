//! Sampling of allocations: how many bytes a program allocates, and where, without looking at
//! every allocation.
//!
//! Every byte allocated is drawn with the same small probability, independently of all others,
//! and an object is sampled if one of its bytes is drawn. So samples cannot fall into step with
//! a program that allocates in a rhythm, as those of a sampler that takes every n-th byte can,
//! and an estimate made of them comes with limits that hold as often as they say.
//!
//! | to | use |
//! |---|---|
//! | sample at an allocation point | a [`PointSampler`] as its control |
//! | sample what a pool or a cache allocates without a point, and boxes | a [`SampledStore`] before it |
//! | sample what the whole program allocates | a `SampledAllocator` as its `#[global_allocator]` |
//! | report every object of a point, or of a store | a [`PointLogger`], a [`LoggedStore`] |
//! | switch samplers on and off, and say how rare samples are | [`Sampling`] |
//! | draw samples from any other stream of allocations | [`Trials`], each with a [`Stream`] of its own |
//! | estimate bytes and objects from samples | [`Estimate`], from each [`Sample`] |
//! | the same for each type, place or thread | [`Groups`] |
//! | the same of what is in use | [`LiveSamples`], which samplers [remember](SampledStore::remembering) objects in |
//! | say how far from the truth that may be | [`Estimate::limits`], with a [`Confidence`] and the [`Window`] of time |
//! | compute limits of your own | [`NegativeBinomial`] |
//!
//! The crate needs no `std` but for global allocators (the feature `std`), allocates nothing, and returns the same results on every target
//! ([design/sampling.md `.req.bare`](crate::design::sampling)).
//!
//! A switch holds from the next sample on. To have it hold at once, call
//! [`SampledStore::follow_switch`] on a store, `SampledAllocator::follow_switch` on a thread, and trip
//! a point.
//!
//! Design: [`design/sampling.md`](crate::design::sampling).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod design;
pub mod format;
#[cfg(all(feature = "reader", unix, not(tripoint_loom)))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "reader", unix))))]
pub mod reader;
mod ring;

// Under loom, whose atomics are not made at compile time, there are only rings.
#[cfg(not(tripoint_loom))]
mod draws;
#[cfg(not(tripoint_loom))]
mod estimators;
#[cfg(not(tripoint_loom))]
mod live;
#[cfg(not(tripoint_loom))]
mod logger;
#[cfg(not(tripoint_loom))]
mod numbering;
#[cfg(not(tripoint_loom))]
mod sample;
#[cfg(not(tripoint_loom))]
mod sampled_object;
#[cfg(not(tripoint_loom))]
mod sampler;

// Words of 64 bits are shared with other processes.
#[cfg(all(target_has_atomic = "64", not(tripoint_loom)))]
mod clock;
#[cfg(all(target_has_atomic = "64", not(tripoint_loom)))]
mod file;
#[cfg(all(target_has_atomic = "64", feature = "linux", target_os = "linux", not(tripoint_loom)))]
mod linux;
#[cfg(all(target_has_atomic = "64", feature = "linux", target_os = "linux", not(tripoint_loom)))]
mod native;
#[cfg(all(target_has_atomic = "64", not(tripoint_loom)))]
mod recorder;

#[cfg(not(tripoint_loom))]
pub use crate::{
    draws::stream::Stream,
    draws::trials::Trials,
    estimators::estimate::{Estimate, LimitsError},
    estimators::groups::Groups,
    estimators::interval::{Confidence, Interval, Window},
    estimators::negative_binomial::NegativeBinomial,
    live::live_samples::LiveSamples,
    live::remember::Remember,
    logger::logged_store::LoggedStore,
    logger::point_logger::PointLogger,
    numbering::thread_number,
    sample::{Mean, Sample},
    sampled_object::{ObjectKind, SampledObject},
    sampler::countdown::{Countdown, OneThread, Threads},
    sampler::point_sampler::PointSampler,
    sampler::sampled_store::SampledStore,
    sampler::sampling::Sampling,
};
#[cfg(all(feature = "std", not(tripoint_loom)))]
pub use crate::{sampler::global_sampler::GlobalSampler, sampler::sampled_allocator::SampledAllocator};
#[cfg(not(tripoint_loom))]
#[doc(inline)]
pub use tripoint_stack::{FRAMES, Site};

#[cfg(all(target_has_atomic = "64", feature = "linux", target_os = "linux", not(tripoint_loom)))]
pub use crate::linux::create::FileOptions;
#[cfg(all(target_has_atomic = "64", feature = "std", not(tripoint_loom)))]
pub use crate::recorder::attached::Attached;
#[cfg(all(target_has_atomic = "64", not(tripoint_loom)))]
pub use crate::{
    clock::Clock,
    file::plan::Room,
    file::switches::Switches,
    recorder::arena_hook::ArenaHook,
    recorder::report::{Refusal, Report, SystemCall, TelemetryError},
    recorder::telemetry::Telemetry,
};

/// What only models and tests need. It is out of the promise.
#[doc(hidden)]
pub mod internal {
    #[cfg(all(target_has_atomic = "64", feature = "mock", target_os = "linux", not(tripoint_loom)))]
    pub use crate::linux::refusing::Refusing;
    #[cfg(all(target_has_atomic = "64", feature = "linux", target_os = "linux", not(tripoint_loom)))]
    pub use crate::linux::{create::create_on, system::System};
    #[cfg(all(feature = "reader", unix, not(tripoint_loom)))]
    pub use crate::reader::words::Words;
    pub use crate::ring::copy::{Copied, RingWords, copy};
    #[cfg(target_has_atomic = "64")]
    pub use crate::ring::word_ring::WordRing;
}
