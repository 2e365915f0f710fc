//! The objects that samplers report.

#![forbid(unsafe_code)]

use tripoint_core::{Addr, Event, PoolId};
use tripoint_stack::Site;

use crate::numbering::thread_number;
use crate::sample::Sample;

/// How an object was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// In the buffer of an allocation point, with others.
    Small,
    /// By an allocation point, but in memory that the point was filled with for this object alone.
    Large,
    /// By a pool or a cache, without an allocation point; boxes are among them.
    Direct,
    /// By the program's global allocator.
    Global,
}

impl ObjectKind {
    /// All kinds, in the order of their numbers.
    const ALL: [Self; 4] = [Self::Small, Self::Large, Self::Direct, Self::Global];

    /// Its name in events.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
            Self::Direct => "direct",
            Self::Global => "global",
        }
    }

    /// The kind with this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind with this number.
    pub(crate) fn from_word(word: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(word).ok()?).copied()
    }
}

/// A sampled object: its address, what is known about it, and the thread and call that allocated it.
///
/// Estimates [by group](crate::Groups) may use any of these as a key: the site, the type, the
/// thread, the pool, the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledObject {
    /// The address of the object. It may have been freed meanwhile.
    pub object: Addr,
    /// Size, byte drawn, and mean: what estimates are made of. At an allocation point the size is the
    /// one that the pool rounded to; in a store it is the one that was asked for
    /// ([design/sampling.md `.bytes`](crate::design::sampling)).
    pub sample: Sample,
    /// How it was allocated.
    pub kind: ObjectKind,
    /// The [number](crate::thread_number) of the thread that allocated it; zero if that is not known.
    pub thread: u32,
    /// The pool, if that is known. Each arena numbers its pools.
    pub pool: Option<PoolId>,
    /// The name of the pool's class, if that is known.
    pub class: Option<&'static str>,
    /// The name of the object's type, if the call that allocated it names one.
    pub type_name: Option<&'static str>,
    /// The call that allocated it, if [sites are walked](crate::Sampling::set_sites).
    pub site: Site,
}

impl SampledObject {
    /// An object that the calling thread has allocated, of which nothing else is known.
    #[must_use]
    pub fn new(kind: ObjectKind, object: Addr, sample: Sample) -> Self {
        Self {
            object,
            sample,
            kind,
            thread: thread_number(),
            pool: None,
            class: None,
            type_name: None,
            site: Site::UNKNOWN,
        }
    }

    /// The smallest power of two that is not less than the size: a key for groups of similar sizes.
    #[must_use]
    pub fn size_class(&self) -> u64 {
        self.sample.size_class()
    }

    /// The event that reports this object to a hook, by
    /// [`event_at`](tripoint_core::EventHook::event_at) with the frames of the site. It has all that
    /// is known of the object but the thread, which is the one that reports it.
    #[must_use]
    pub fn event(&self) -> Event {
        let sample = &self.sample;
        let bytes = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
        Event::Sample {
            kind: self.kind.name(),
            pool: self.pool,
            class: self.class,
            object: self.object,
            size: bytes(sample.size()),
            offset: bytes(sample.offset()),
            mean: sample.mean().bytes(),
            type_name: self.type_name,
        }
    }
}
