//! All contenders, by name.

use std::alloc::System;
use std::io;

use clap::ValueEnum;
use tripoint::{Arena as _, ArenaVm, ArenaVmOptions, CacheClasses, Mvff, MvffOptions, Tlsf, TlsfOptions};

use super::general::{General, Same};
use super::pools::{Cached, Fixed, Shared};
use super::worker::Threads;

/// An allocator that a trace can be replayed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contender {
    /// A pool of any size, first fit
    Mvff,
    /// A pool of any size, in bounded time
    Tlsf,
    /// The same with a cache for each thread, and a depot
    #[value(name = "cache+mvff")]
    CacheMvff,
    /// The same with a cache for each thread, and a depot
    #[value(name = "cache+tlsf")]
    CacheTlsf,
    /// The same on transparent huge pages, where the system has them
    #[value(name = "cache+tlsf+huge")]
    CacheTlsfHuge,
    /// A pool of one size for each size class up to 1 KiB, with caches
    Mfs,
    /// The C library's malloc
    System,
    #[cfg(feature = "peers")]
    Mimalloc,
    #[cfg(feature = "peers")]
    Jemalloc,
    #[cfg(feature = "peers")]
    Snmalloc,
    /// None: what the replay itself costs
    #[value(hide = true)]
    None,
}

/// The general allocators that are built in: what others take.
pub(crate) const PEERS: &[Contender] = &[
    Contender::System,
    #[cfg(feature = "peers")]
    Contender::Mimalloc,
    #[cfg(feature = "peers")]
    Contender::Jemalloc,
    #[cfg(feature = "peers")]
    Contender::Snmalloc,
];

/// The largest block that a cache keeps; how many of each class at most, and how many bytes.
const CACHED: (usize, usize, usize) = (16 << 10, 128, 64 << 10);
/// The size of a huge page.
const HUGE: usize = 2 << 20;
/// The most bytes that a depot keeps.
const DEPOT: usize = 4 << 20;

impl Contender {
    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Calls `visit` with it, and with a function that returns what its arena has committed up to now, if it has
    /// one.
    pub(super) fn with<T>(
        self,
        visit: impl FnOnce(&dyn Threads, &dyn Fn() -> Option<u64>) -> io::Result<T>,
    ) -> io::Result<T> {
        let none = || None;
        let general: &dyn Threads = match self {
            Self::Mvff | Self::Tlsf | Self::CacheMvff | Self::CacheTlsf | Self::CacheTlsfHuge | Self::Mfs => {
                return self.with_pool(visit);
            }
            Self::System => &General(System),
            #[cfg(feature = "peers")]
            Self::Mimalloc => &General(mimalloc::MiMalloc),
            #[cfg(feature = "peers")]
            Self::Jemalloc => &General(tikv_jemallocator::Jemalloc),
            #[cfg(feature = "peers")]
            Self::Snmalloc => &General(snmalloc_rs::SnMalloc),
            Self::None => &Same,
        };
        visit(general, &none)
    }

    fn with_pool<T>(
        self,
        visit: impl FnOnce(&dyn Threads, &dyn Fn() -> Option<u64>) -> io::Result<T>,
    ) -> io::Result<T> {
        let options = match self {
            Self::CacheTlsfHuge => {
                ArenaVmOptions { huge_pages: true, grain: HUGE, ..ArenaVmOptions::default() }
            }
            _ => ArenaVmOptions::default(),
        };
        let arena = ArenaVm::create(options).map_err(io::Error::other)?;
        let growth = || Some(arena.counts().growth.get());
        let (largest, count, size) = CACHED;
        let classes = CacheClasses::geometric_within(largest, count, size).map_err(io::Error::other)?;
        let mvff = || Mvff::create(&arena, MvffOptions::default()).map_err(io::Error::other);
        let tlsf = || Tlsf::create(&arena, TlsfOptions::default()).map_err(io::Error::other);
        match self {
            Self::Mvff => visit(&Shared(mvff()?), &growth),
            Self::Tlsf => visit(&Shared(tlsf()?), &growth),
            Self::CacheMvff => visit(&Cached::with_depot(&mvff()?, classes, DEPOT), &growth),
            Self::CacheTlsf | Self::CacheTlsfHuge => {
                visit(&Cached::with_depot(&tlsf()?, classes, DEPOT), &growth)
            }
            _ => visit(&Fixed::create(&arena).map_err(io::Error::other)?, &growth),
        }
    }
}
