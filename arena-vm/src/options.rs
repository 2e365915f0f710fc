//! The options of a VM arena.

use core::fmt;

use tripoint_core::{Align, Error, EventHook, Result};

use crate::chosen_memory::{HugePages, Placement};

/// The default reservation: 2 TiB, because addresses cost nothing.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
const RESERVE: usize = 2 << 40;
/// The default reservation: 256 GiB, because addresses cost little.
#[cfg(all(windows, target_pointer_width = "64", not(miri)))]
const RESERVE: usize = 256 << 30;
/// The default reservation: 1 GiB, because addresses are few, or come from an allocator that takes memory for them
/// when they are touched.
#[cfg(all(
    any(unix, windows, target_arch = "wasm32"),
    not(any(all(any(target_os = "linux", windows), target_pointer_width = "64"), miri))
))]
const RESERVE: usize = 1 << 30;
/// The default reservation: 64 MiB, because all of it may be real memory at once.
#[cfg(any(miri, not(any(unix, windows, target_arch = "wasm32"))))]
const RESERVE: usize = 64 << 20;

/// The smallest reservation that is accepted by default: 64 MiB; none if it is real memory at once and grows.
const RESERVE_FLOOR: usize =
    if cfg!(all(target_arch = "wasm32", not(target_os = "emscripten"))) { 0 } else { 64 << 20 };

/// The default grain: the smallest amount of memory that the kernel is asked for.
const GRAIN: usize = 64 << 10;

/// The default share of committed memory that may be spare, in percent.
const SPARE_SHARE: u8 = 25;

/// The most of what is committed that a growth commits ahead of need, in percent.
const STEP_PERCENT: u8 = 25;

/// When committed pages get memory behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefault {
    /// When each page is first touched, by a page fault.
    #[default]
    None,
    /// When they are committed, so that touching a tract never faults.
    AtFill,
    /// As [`Prefault::AtFill`], this many bytes at a time: what is not used yet is spare, and is kept as with
    /// [`Prefault::Size`]. Where that much cannot be committed, only what is needed is.
    ///
    /// The larger the step, the fewer requests wait for the system, and the longer each. With 2 MiB, of objects of 32 bytes
    /// one in 65,000 waits; with [`Prefault::AtFill`] and extents of 64 KiB it is one in 2,000.
    Ahead(usize),
    /// For this many bytes of tracts when the arena is created; for more, as with
    /// [`Prefault::AtFill`].
    ///
    /// Memory that pools free stays spare, whatever [`ArenaVmOptions::spare_share`] says.
    /// It is decommitted only by `trim`, or if addresses or budget run out.
    Size(usize),
    /// As [`Prefault::Size`], for as much as [`ArenaVmOptions::commit_limit`] allows.
    /// The limit must be set.
    Everything,
}

/// Options for a VM arena. Sizes are in bytes.
///
/// ```
/// use tripoint_arena_vm::{ArenaVmOptions, Prefault};
/// let options = ArenaVmOptions { commit_limit: 1 << 30, prefault: Prefault::AtFill, ..Default::default() };
/// # assert_eq!(options.spare_share, 25);
/// ```
#[derive(Clone, Copy)]
pub struct ArenaVmOptions {
    /// The most address space to reserve, rounded up to grains; all of it at once if the platform grants that. If it
    /// refuses, the arena has up to what the platform grants, at least [`ArenaVmOptions::reserve_floor`], and reserves it as
    /// it is needed. Platforms that cannot do that reserve it at once, and leave a sixteenth to the rest of the process.
    ///
    /// By default 2 TiB on 64-bit Linux; 256 GiB on 64-bit Windows; 1 GiB on both with 32 bits, on other systems of the
    /// Unix kind and on WebAssembly; and 64 MiB elsewhere and under Miri. WebAssembly's memory is taken as it is needed, some at
    /// a time. On other systems this comes from the global allocator, which may take memory for all of it at once.
    pub reserve: usize,
    /// The smallest reservation that is accepted, and is made at once; by default 64 MiB, and none on WebAssembly.
    pub reserve_floor: usize,
    /// The unit of tracts: a power of two, at least a page; by default 64 KiB.
    pub grain: usize,
    /// The most memory that may be committed; by default `usize::MAX`, which is no limit.
    pub commit_limit: usize,
    /// How much of the committed memory may be spare before it is decommitted, in percent;
    /// by default 25. Up to 1 MiB, or four grains if that is more, may be spare whatever the
    /// share, except that with 0 nothing is kept. What was decommitted and had to be committed again is added
    /// to that, up to 32 MiB: so a pool that is made, filled and dropped in a loop calls the system only at first.
    /// A burst that happens once is decommitted.
    ///
    /// A growth commits this share of what is committed ahead of need, but at most a quarter of it and 16 MiB, so that a
    /// program that grows makes few calls of the system. What is ahead takes no memory until it is touched. Nothing is
    /// committed ahead if committed pages get memory at once ([`ArenaVmOptions::prefault`], [`ArenaVmOptions::lock`]), nor
    /// on WebAssembly.
    pub spare_share: u8,
    /// When committed pages get memory behind them; by default at the first touch.
    pub prefault: Prefault,
    /// Whether to ask for transparent huge pages behind tracts, which the system makes of any memory if it can; by
    /// default not. [`ArenaVmOptions::explicit_huge_pages`] is about those that it set aside.
    ///
    /// The kernel uses a huge page only if all 2 MiB of it are committed, so use a grain
    /// of 2 MiB or more, or [`Prefault::Everything`].
    pub huge_pages: bool,
    /// The explicit huge pages that all tracts are on; by default none.
    ///
    /// They are taken from the system's pool when grains are committed, and populated at once, so that touching
    /// a tract never faults. They are never swapped out, and so are not locked. If there are too few, the error is
    /// [`Error::ResourceLimit`] with the bytes that are needed and those that are free.
    ///
    /// The options have to say [`ArenaVmOptions::commit_limit`], a [`ArenaVmOptions::grain`] of one huge page or more, and
    /// that children get no copy ([`ArenaVmOptions::inherit_on_fork`]): a write to a copied page takes another
    /// huge page, and without one the process ends by `SIGBUS`. No more addresses are reserved than the commit limit
    /// needs.
    pub explicit_huge_pages: Option<HugePages>,
    /// On which memory nodes the arena lies, its table and descriptors included; by default on any.
    ///
    /// A page that gets its memory when it is committed (explicit huge pages, [`ArenaVmOptions::prefault`],
    /// [`ArenaVmOptions::lock`]) and does not lie there is refused. If the nodes have no memory left for small pages, the kernel
    /// may end a process. If they have too few explicit huge pages, the request is refused.
    pub placement: Placement,
    /// Whether to lock committed memory, the arena's own included, so that it is
    /// never swapped out; by default not. Linux may still move locked pages, which then fault once
    /// (`vm.compact_unevictable_allowed`).
    pub lock: bool,
    /// Whether child processes get a copy of the arena; by default they do.
    ///
    /// A fork with a copy makes every first write after it fault again, in the
    /// parent too. Without one the child must not use the arena in any way, nor
    /// drop it: it should `exec` or `_exit`.
    pub inherit_on_fork: bool,
    /// Whether each block that a pool gets is followed by a grain that is never committed, so
    /// that an access past the end of the block faults; by default not.
    ///
    /// This is for finding faults. Every tract is committed when it is allocated and
    /// decommitted when it is freed, because none can be kept spare. Guards also take
    /// addresses, and divide the kernel's mappings. They cannot be combined with
    /// [`Prefault::Size`] or [`Prefault::Everything`].
    pub guard: bool,
    /// Whether a collector may have the platform watch which memory is written ([`Arena::write_watch`]); by default it
    /// may.
    ///
    /// It costs nothing until a collector asks for it. From then on the first write to each page after a collection
    /// faults, also in memory that was prefaulted or locked, and huge pages that are written are divided. Set this to
    /// false if no write may fault: collectors then look at all older objects of pools whose formats do not note writes.
    ///
    /// [`Arena::write_watch`]: tripoint_core::Arena::write_watch
    pub watch_writes: bool,
    /// The hook that is notified of the arena's events; by default none.
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
            explicit_huge_pages: None,
            placement: Placement::Any,
            lock: false,
            inherit_on_fork: true,
            guard: false,
            watch_writes: true,
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
            .field("explicit_huge_pages", &self.explicit_huge_pages)
            .field("placement", &self.placement)
            .field("lock", &self.lock)
            .field("inherit_on_fork", &self.inherit_on_fork)
            .field("guard", &self.guard)
            .field("watch_writes", &self.watch_writes)
            .field("event_hook", &self.event_hook.is_some())
            .finish()
    }
}

impl ArenaVmOptions {
    /// Checks what can be checked before anything is reserved, and returns the grain.
    pub(crate) fn validate(&self, page: Align) -> Result<Align> {
        let grain = Align::new(self.grain).ok_or(Error::Parameter("the grain must be a power of two"))?;
        let rules = [
            (grain >= page, "the grain must be at least a page"),
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
        match rules.into_iter().chain(self.memory_rules()).find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(Error::Parameter(rule)),
            None => Ok(grain),
        }
    }

    /// What has to hold of explicit huge pages and of nodes.
    fn memory_rules(&self) -> [(bool, &'static str); 6] {
        let (pages, small) = (self.explicit_huge_pages, self.explicit_huge_pages.is_none());
        [
            (
                pages.is_none_or(|pages| self.grain >= pages.size.bytes()),
                "with explicit huge pages the grain must be at least one of them",
            ),
            (
                small || self.commit_limit != usize::MAX,
                "explicit huge pages need a commit limit: how much of the system's pool the arena may take",
            ),
            (
                small || !self.inherit_on_fork,
                "explicit huge pages cannot be copied for child processes: set inherit_on_fork to false",
            ),
            (small || !self.huge_pages, "huge pages are explicit or transparent, not both"),
            (small || !self.guard, "guards cannot be combined with explicit huge pages"),
            (
                self.placement.nodes().is_none_or(|nodes| !nodes.is_empty()),
                "memory must be placed on at least one node",
            ),
        ]
    }

    /// The options with no more addresses than the commit limit needs, if there is one because of explicit huge pages.
    pub(crate) fn bounded(self) -> Self {
        if self.explicit_huge_pages.is_none() {
            return self;
        }
        // The grains; for each its entry in the table, and a 64th for descriptors; and what lacks to whole grains.
        let tables = (self.commit_limit / 32).max(1 << 20);
        let most = self.commit_limit.saturating_add(tables).saturating_add(self.grain.saturating_mul(2));
        let reserve = self.reserve.min(most);
        Self { reserve, reserve_floor: self.reserve_floor.min(reserve), ..self }
    }

    /// Whether something was chosen about where the memory comes from.
    pub(crate) fn has_chosen_memory(&self) -> bool {
        self.explicit_huge_pages.is_some() || self.placement != Placement::Any
    }

    /// Whether pages get memory behind them when they are committed.
    pub(crate) fn populates(&self) -> bool {
        self.prefault != Prefault::None
    }

    /// Whether grains are locked. Explicit huge pages need not be.
    pub(crate) fn locks_grains(&self) -> bool {
        self.lock && self.explicit_huge_pages.is_none()
    }

    /// Whether grains have memory behind them once they are committed.
    pub(crate) fn grains_are_populated(&self) -> bool {
        self.populates() || self.lock || self.explicit_huge_pages.is_some()
    }

    /// The share of the committed memory that may be spare, in percent.
    pub(crate) fn spare_percent(&self) -> u8 {
        if self.guard { 0 } else { self.spare_share }
    }

    /// How much of what is committed a growth may commit ahead of need, in percent. It is spare, so it is no more than
    /// may be spare.
    pub(crate) fn step_percent(&self) -> u8 {
        self.spare_percent().min(STEP_PERCENT)
    }

    /// What decides when pages are committed, and which, as the event of the creation has it: in the lowest byte the spare
    /// share; in the second the place among [`Prefault`]'s variants; in the third a bit each for grains that have memory
    /// once they are committed, for guards and for huge pages.
    pub(crate) fn commit_policy(&self) -> usize {
        let prefault = match self.prefault {
            Prefault::None => 0,
            Prefault::AtFill => 1,
            Prefault::Ahead(_) => 2,
            Prefault::Size(_) => 3,
            Prefault::Everything => 4,
        };
        let bits = [self.grains_are_populated(), self.guard, self.huge_pages].map(usize::from);
        usize::from(self.spare_share) | prefault << 8 | bits[0] << 16 | bits[1] << 17 | bits[2] << 18
    }

    /// The bytes that [`ArenaVmOptions::prefault`] names.
    pub(crate) const fn prefault_size(&self) -> usize {
        match self.prefault {
            Prefault::Ahead(size) | Prefault::Size(size) => size,
            Prefault::None | Prefault::AtFill | Prefault::Everything => 0,
        }
    }

    /// Whether spare memory is kept, however much there is.
    pub(crate) fn keeps_spare(&self) -> bool {
        matches!(self.prefault, Prefault::Ahead(_) | Prefault::Size(_) | Prefault::Everything)
    }
}
