//! Estimates from samples how many bytes a program allocates, and where, and records what its memory
//! management does, for other processes to read.
//!
//! Every byte allocated is drawn with the same small probability, independently of all others,
//! and an object is sampled if one of its bytes is drawn. So samples cannot fall into step with
//! a program that allocates in a rhythm, as those of a sampler that takes every n-th byte can,
//! and estimates come with limits that hold as often as they say.
//!
//! | to | use |
//! |---|---|
//! | sample at an allocation point | a [`PointSampler`] as its control |
//! | sample what a pool or a cache allocates without a point, and boxes | a [`SampledStore`] in front of it |
//! | sample what the whole program allocates | a `SampledAllocator` as its `#[global_allocator]` |
//! | report every call on a point, a store or a pool | a [`PointLogger`], a [`LoggedStore`], a [`LoggedPool`] |
//! | keep a log of all calls, which can be replayed | a `PointLog`, and `LogReader` |
//! | switch samplers on and off, and set how rare samples are | [`Sampling`] |
//! | sample any other sequence of allocations | [`Trials`], each with a [`Stream`] of its own |
//! | estimate bytes and objects from samples | [`Estimate`], from each [`Sample`] |
//! | estimate them for each type, place or thread | [`Groups`] |
//! | estimate what is in use | [`LiveSamples`], in which samplers [remember](SampledStore::remembering) objects |
//! | find out how far an estimate may be from the truth | [`Estimate::limits`], with a [`Confidence`] and the [`Window`] of time |
//! | compute limits of your own | [`NegativeBinomial`] |
//! | record events and counters for other processes | `Telemetry`, and its format in [`format`] |
//! | read what another process recorded | the module `reader` |
//! | show events to bpftrace, gdb and other tracers | `Probes` |
//!
//! | feature | what it adds |
//! |---|---|
//! | (none) | sampling, estimates, and telemetry in memory that the program provides (on targets with 64-bit atomics). `no_std`, and nothing is allocated |
//! | `std` | numbers of threads, a ring of events for each thread, `SampledAllocator`, and call sites on Linux |
//! | `linux` | telemetry in files, the system's clock, and the system's numbers of threads |
//! | `reader` | the module `reader`, on Unix |
//! | `usdt` | `Probes`, on Linux, x86-64 and AArch64 |
//!
//! Sampling returns the same results on every target ([design/sampling.md `.req.bare`](crate::design::sampling)).
//!
//! A sampler follows a switch from the next sample on. To have it follow at once, call
//! [`SampledStore::follow_switch`] on a store and `SampledAllocator::follow_switch` on a thread, and trip
//! a point.
//!
//! Design: [`design/sampling.md`](crate::design::sampling), [`design/telemetry.md`](crate::design::telemetry).
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(docsrs, doc(auto_cfg(hide(tripoint_on_linux))))]
#![cfg_attr(tripoint_loom, allow(dead_code, reason = "models use a part"))]

#[cfg(any(test, feature = "std"))]
extern crate std;

// Otherwise what the feature asks for would be left out in silence.
#[cfg(all(feature = "linux", target_os = "linux", not(tripoint_on_linux)))]
compile_error!("build.rs has to run, or its condition `tripoint_on_linux` be set by the build system");

pub mod design;
pub mod format;
#[cfg(all(feature = "reader", unix, not(tripoint_loom)))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "reader", unix))))]
pub mod reader;
mod ring;

mod estimators;
mod live;
mod numbering;
mod sample;
mod sampled_object;

// Loom's atomics are not made at compile time, as those of a switch are.
#[cfg(not(tripoint_loom))]
mod draws;
#[cfg(not(tripoint_loom))]
mod logger;
#[cfg(not(tripoint_loom))]
mod sampler;

// Words of 64 bits are shared with other processes.
#[cfg(target_has_atomic = "64")]
mod clock;
#[cfg(target_has_atomic = "64")]
mod file;
#[cfg(all(target_has_atomic = "64", tripoint_on_linux, not(tripoint_loom)))]
mod linux;
#[cfg(all(target_has_atomic = "64", tripoint_on_linux, not(tripoint_loom)))]
mod native;
#[cfg(all(target_has_atomic = "64", not(tripoint_loom)))]
mod recorder;

#[cfg(not(tripoint_loom))]
pub use crate::{
    draws::stream::Stream,
    draws::trials::Trials,
    logger::logged_pool::LoggedPool,
    logger::logged_store::LoggedStore,
    logger::point_logger::PointLogger,
    sampler::countdown::{Countdown, OneThread, Threads},
    sampler::point_sampler::PointSampler,
    sampler::sampled_store::SampledStore,
    sampler::sampling::Sampling,
};
pub use crate::{
    estimators::estimate::{Estimate, LimitsError},
    estimators::groups::Groups,
    estimators::interval::{Confidence, Interval, Window},
    estimators::negative_binomial::NegativeBinomial,
    live::live_samples::LiveSamples,
    live::remember::Remember,
    numbering::thread_number,
    sample::{Mean, Sample},
    sampled_object::{ObjectKind, SampledObject},
};
#[cfg(all(feature = "std", not(tripoint_loom)))]
pub use crate::{sampler::global_sampler::GlobalSampler, sampler::sampled_allocator::SampledAllocator};

#[cfg(target_has_atomic = "64")]
pub use crate::clock::Clock;
#[cfg(all(target_has_atomic = "64", tripoint_on_linux, not(tripoint_loom)))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "linux", target_os = "linux"))))]
pub use crate::linux::create::FileOptions;
#[cfg(all(feature = "reader", unix, target_has_atomic = "64", not(tripoint_loom)))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "reader", unix))))]
pub use crate::logger::log_reader::{LogError, LogReader};
#[cfg(all(target_has_atomic = "64", feature = "std", not(tripoint_loom)))]
pub use crate::logger::point_log::PointLog;
#[cfg(all(target_has_atomic = "64", feature = "std", not(tripoint_loom)))]
pub use crate::recorder::attached::Attached;
#[cfg(all(
    feature = "usdt",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(tripoint_loom)
))]
#[cfg_attr(docsrs, doc(cfg(feature = "usdt")))]
pub use crate::recorder::probes::Probes;
#[cfg(all(target_has_atomic = "64", not(tripoint_loom)))]
pub use crate::{
    file::plan::Room,
    file::switches::{ProgramSwitches, Switches},
    recorder::arena_hook::ArenaHook,
    recorder::report::{Refusal, Report, SystemCall, TelemetryError},
    recorder::telemetry::Telemetry,
};

/// What only models and tests need. It is not part of the stable interface.
#[doc(hidden)]
pub mod internal {
    #[cfg(all(target_has_atomic = "64", feature = "mock", target_os = "linux", not(tripoint_loom)))]
    pub use crate::linux::refusing::Refusing;
    #[cfg(all(target_has_atomic = "64", tripoint_on_linux, not(tripoint_loom)))]
    pub use crate::linux::{create::create_on, system::System};
    #[cfg(all(feature = "reader", unix, not(tripoint_loom)))]
    pub use crate::reader::words::Words;
    pub use crate::ring::copy::{Copied, RingWords, copy};
    #[cfg(target_has_atomic = "64")]
    pub use crate::{
        file::table::{Entry, Table},
        ring::gate::Gate,
        ring::record_ring::{Record, RecordRing},
        ring::word_ring::WordRing,
    };
    pub use crate::{live::entry::LiveEntry, live::remember::sealed::Remember};
}

// Compiled and run by `cargo test`.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
