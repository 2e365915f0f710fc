//! How a VM arena is to be made.

use core::fmt;

use tripoint_core::{Error, EventHook, Result};

/// The reservation asked for by default: 2 TiB, which costs nothing.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
const RESERVE: usize = 2 << 40;
/// The reservation asked for by default: 1 GiB, since addresses are few or real.
#[cfg(not(any(all(target_os = "linux", target_pointer_width = "64"), miri)))]
const RESERVE: usize = 1 << 30;
/// The default reservation: 64 MiB, because Miri really allocates all of it.
#[cfg(miri)]
const RESERVE: usize = 64 << 20;

/// The smallest reservation that will do by default.
const RESERVE_FLOOR: usize = 64 << 20;

/// The grain by default: the unit in which the kernel is asked for memory.
const GRAIN: usize = 64 << 10;

/// The share of committed memory that may be spare by default, in percent.
const SPARE_SHARE: u8 = 25;

/// When memory is brought behind committed pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefault {
    /// When they are first touched, by a page fault each.
    #[default]
    None,
    /// When they are committed, so that touching a tract never faults.
    AtFill,
    /// This many bytes of tracts when the arena is made, more as by
    /// [`Prefault::AtFill`].
    ///
    /// What pools free stays spare whatever [`ArenaVmOptions::spare_share`] says;
    /// only `trim` and a lack of addresses or budget decommit it.
    Size(usize),
    /// As [`Prefault::Size`], for all that [`ArenaVmOptions::commit_limit`]
    /// allows. The limit must be given.
    Everything,
}

/// How a VM arena is to be made. Sizes are bytes.
///
/// ```
/// use tripoint_arena_vm::{ArenaVmOptions, Prefault};
/// let options = ArenaVmOptions { commit_limit: 1 << 30, prefault: Prefault::AtFill, ..Default::default() };
/// # assert_eq!(options.spare_share, 25);
/// ```
#[derive(Clone, Copy)]
pub struct ArenaVmOptions {
    /// Address space to reserve, rounded up to grains. If the platform refuses, half of it
    /// is tried, and so on down to [`ArenaVmOptions::reserve_floor`]. Of the first size that
    /// is then granted only half is taken, and the other half is left to the rest of the
    /// process.
    ///
    /// By default 2 TiB on 64-bit Linux, 1 GiB elsewhere, and 64 MiB under Miri.
    pub reserve: usize,
    /// The smallest reservation that will do; by default 64 MiB.
    pub reserve_floor: usize,
    /// The unit of tracts: a power of two, at least a page; by default 64 KiB.
    pub grain: usize,
    /// What may be committed at most; by default `usize::MAX`, no limit.
    pub commit_limit: usize,
    /// How much of the committed memory may be spare before it is decommitted, in percent;
    /// by default 25. Up to 1 MiB, or four grains if that is more, may be spare whatever the
    /// share, except that with 0 nothing is kept.
    pub spare_share: u8,
    /// When memory is brought behind committed pages; by default at first touch.
    pub prefault: Prefault,
    /// Whether to ask for huge pages behind tracts; by default not.
    ///
    /// The kernel gives a huge page only where all 2 MiB of it are committed, so
    /// use a grain of 2 MiB or more, or [`Prefault::Everything`].
    pub huge_pages: bool,
    /// Whether to lock committed memory, the arena's own included, so that it is
    /// never swapped out; by default not.
    pub lock: bool,
    /// Whether child processes get a copy of the arena; by default they do.
    ///
    /// A fork with a copy makes every first write after it fault again, in the
    /// parent too. Without one the child must not use the arena in any way, nor
    /// drop it: it should `exec` or `_exit`.
    pub inherit_on_fork: bool,
    /// Whether a grain that is never committed follows whatever a pool gets, so that
    /// who runs past the end of it is stopped; by default not.
    ///
    /// For finding faults: every tract comes from the platform and goes back to it
    /// when it is freed, since none can be kept spare, and guards take addresses and
    /// divide the kernel's mappings. Not with [`Prefault::Size`] or
    /// [`Prefault::Everything`].
    pub guard: bool,
    /// Who listens to the arena's events; by default nobody.
    pub event_hook: Option<&'static dyn EventHook>,
}

impl Default for ArenaVmOptions {
    fn default() -> Self {
        Self {
            reserve: RESERVE,
            reserve_floor: RESERVE_FLOOR,
            grain: GRAIN,
            commit_limit: usize::MAX,
            spare_share: SPARE_SHARE,
            prefault: Prefault::None,
            huge_pages: false,
            lock: false,
            inherit_on_fork: true,
            guard: false,
            event_hook: None,
        }
    }
}

impl fmt::Debug for ArenaVmOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArenaVmOptions")
            .field("reserve", &self.reserve)
            .field("reserve_floor", &self.reserve_floor)
            .field("grain", &self.grain)
            .field("commit_limit", &self.commit_limit)
            .field("spare_share", &self.spare_share)
            .field("prefault", &self.prefault)
            .field("huge_pages", &self.huge_pages)
            .field("lock", &self.lock)
            .field("inherit_on_fork", &self.inherit_on_fork)
            .field("guard", &self.guard)
            .field("event_hook", &self.event_hook.is_some())
            .finish()
    }
}

impl ArenaVmOptions {
    /// Checks what can be checked before anything is reserved.
    pub(crate) fn validate(&self, page_size: usize) -> Result<()> {
        let rules = [
            (self.grain.is_power_of_two(), "the grain must be a power of two"),
            (self.grain >= page_size, "the grain must be at least a page"),
            (self.reserve != 0, "the reservation must not be empty"),
            (
                self.reserve_floor <= self.reserve,
                "the reservation is below reserve_floor, which is 64 MiB unless set: lower reserve_floor too",
            ),
            (self.spare_share <= 100, "the spare share must be at most 100 percent"),
            (
                self.prefault != Prefault::Everything || self.commit_limit != usize::MAX,
                "prefaulting everything needs a commit limit",
            ),
            (!self.guard || !self.keeps_spare(), "with guards no memory can be prefaulted to be kept spare"),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(Error::Parameter(rule)),
            None => Ok(()),
        }
    }

    /// Whether memory is brought behind pages when they are committed.
    pub(crate) fn populates(&self) -> bool {
        self.prefault != Prefault::None
    }

    /// How much of the committed memory may be spare, in percent.
    pub(crate) fn spare_percent(&self) -> u8 {
        if self.guard { 0 } else { self.spare_share }
    }

    /// Whether spare memory is kept, however much it is.
    pub(crate) fn keeps_spare(&self) -> bool {
        matches!(self.prefault, Prefault::Size(_) | Prefault::Everything)
    }
}
