//! What the arena asks of an operating system: one trait.
//!
//! A page of a reservation is in one of three states:
//!
//! ```text
//!              commit                decommit
//!   reserved ----------> committed ------------> decommitted
//!                            ^                        |
//!                            +------------------------+
//!                                     commit
//! ```
//!
//! Reserved and decommitted pages are addresses without memory: an access to them
//! may end the process. A page that is committed for the first time reads as zero.
//! One that is committed again reads as zero, or as it did before ([design/arena-vm.md `.platform`](crate::design::arena_vm)).
//!
//! | file | |
//! |---|---|
//! | `native` | the platform that an arena uses by default |
//! | `linux` | Linux: one private mapping, opened page by page |
//! | `windows` | Windows: addresses that are reserved and committed apart |
//! | `linear`, `released`, `wasm` | WebAssembly: memory that only grows |
//! | `portable` | no operating system, but the global allocator |
//! | `borrowed` | a borrowed platform |
//! | `failing` | a platform that fails on demand, for tests |
//! | `errno`, `kernel_file` | why a call failed, and what the kernel says of itself |
//! | `control_groups` | how much memory the control groups allow |
//! | `mappings` | how many mappings Linux allows, and who has them |
//! | `room` | where reservations with room behind them lie |
//! | `huge_pages` | explicit huge pages |
//! | `file_mapping` | files as memory |
//! | `nodes` | memory nodes |
//! | `smaps` | mappings with the sizes of their pages |
//! | `touch` | populating by touching |
//! | `zeroing` | pages that are written, or left without memory |
//! | `watch`, `userfault` | the watch of writes, and how Linux keeps it |
//! | `futex`, `membarrier` | system calls |

use core::fmt;
use core::ptr::NonNull;

use tripoint_core::{AddrRange, NodeSet, Resource};

use crate::chosen_memory::{HugePages, PageSizes, Placement};

mod borrowed;
#[cfg(any(all(target_arch = "wasm32", not(target_os = "emscripten")), feature = "mock"))]
pub(crate) mod linear;
pub(crate) mod native;
pub(crate) mod portable;
#[cfg(any(all(target_arch = "wasm32", not(target_os = "emscripten")), feature = "mock"))]
pub(crate) mod released;
mod touch;
#[cfg(all(target_arch = "wasm32", not(target_os = "emscripten")))]
mod wasm;
mod watch;
#[cfg(windows)]
mod windows;
#[cfg(target_os = "linux")]
mod zeroing;

#[cfg(target_os = "linux")]
mod control_groups;
#[cfg(target_os = "linux")]
mod errno;
#[cfg(feature = "mock")]
pub(crate) mod failing;
#[cfg(target_os = "linux")]
mod file_mapping;
#[cfg(target_os = "linux")]
pub(crate) mod futex;
#[cfg(target_os = "linux")]
mod huge_pages;
#[cfg(target_os = "linux")]
mod kernel_file;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(target_os = "linux")]
mod mappings;
#[cfg(target_os = "linux")]
pub(crate) mod membarrier;
#[cfg(target_os = "linux")]
mod nodes;
#[cfg(target_os = "linux")]
mod room;
#[cfg(target_os = "linux")]
mod smaps;
#[cfg(target_os = "linux")]
mod userfault;

pub use watch::Watch;

/// A source of address space and of memory for it.
///
/// In every method `base` and `size` name pages of one reservation: `base` is a
/// multiple of [`Platform::page_size`], `size` is one too and is not zero, and
/// the whole range lies in a reservation of this platform that was not released, and in none of its gaps.
/// Further duties stand at each method. Any thread may call any method.
///
/// A call that fails has changed nothing, unless its documentation says otherwise.
///
/// # Safety
/// - [`Platform::page_size`] is a power of two and never changes.
/// - [`Platform::reserve`] returns addresses that nothing else uses until they are
///   released, with provenance for all of them.
/// - Committed pages are valid for reads and writes until they are decommitted or
///   released. Their contents change only if their owner, [`Platform::decommit`],
///   [`Platform::zero`] or [`Platform::discard`] changes them; after the latter two they are zero. Pages that are committed for the first time
///   read as zero; pages that are committed again read as zero, or as they did before.
/// - A mapping that [`Platform::map_file`] returns is valid for reads and writes of `size` bytes until it is unmapped, as
///   long as the file is not made shorter.
/// - If [`Platform::take_written`] succeeds, every page of what was done was passed on that a thread of the process has
///   written since the last call for that page, or ever if there was none, whatever happened to the watch meanwhile.
pub unsafe trait Platform: Send + Sync + fmt::Debug {
    /// The name of the platform, for people.
    fn name(&self) -> &'static str;

    /// The size of a page, in bytes.
    fn page_size(&self) -> usize;

    /// What lets other threads of a processor run, for threads that wait for a lock. By default nothing does.
    fn yielding(&self) -> Option<fn()> {
        None
    }

    /// Reserves `size` bytes of addresses from a multiple of `align`, a power of
    /// two that is at least a page. `size` is a multiple of the page size.
    ///
    /// # Errors
    /// If the platform has no such range of addresses.
    fn reserve(&self, size: usize, align: usize) -> Result<NonNull<u8>, PlatformError>;

    /// Returns a whole reservation, whatever the states of its pages; if it has gaps, the part up to the first, or one
    /// between two of them.
    ///
    /// # Errors
    /// If the platform refuses. The addresses are then lost.
    ///
    /// # Safety
    /// - `base`, `size` and `align` are those of one [`Platform::reserve`], or of a part of a reservation that
    ///   [`Platform::extend`] placed behind a gap; `size` with what extended it.
    /// - Nothing uses these addresses any more.
    unsafe fn release(&self, base: NonNull<u8>, size: usize, align: usize) -> Result<(), PlatformError>;

    /// Commits pages. Pages that are committed already keep their contents.
    ///
    /// # Errors
    /// If the platform refuses memory. Some of the pages may be committed then.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation.
    unsafe fn commit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError>;

    /// Decommits pages, so that the platform may use their memory elsewhere. Pages that are
    /// not committed stay so. The platform may forget the advice for the range: repeat it
    /// when the pages are committed again.
    ///
    /// # Errors
    /// If the platform refuses. Committed pages are then still committed, but their contents
    /// may be lost.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation, which are not locked.
    /// - Nothing uses the pages any more.
    unsafe fn decommit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError>;

    /// Makes committed pages read as zero, in the way that is cheapest: those that have memory are written, and the others
    /// need none. The default writes all of them.
    ///
    /// # Errors
    /// If the platform refuses. Some of the pages may read as zero then.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation, which are committed.
    /// - Nothing else uses the pages meanwhile.
    unsafe fn zero(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        // SAFETY: committed pages are valid for writes, and nothing else uses these.
        unsafe { base.write_bytes(0, size) };
        Ok(())
    }

    /// Returns the memory of committed pages to the system. They stay committed, with all advice, read as zero, and get
    /// memory when they are touched. The default refuses.
    ///
    /// # Errors
    /// If the platform refuses, or cannot do this at all. Some of the pages may read as zero then.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation, which are committed.
    /// - Nothing else uses the pages meanwhile, and their contents are not needed.
    unsafe fn discard(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(PlatformError { call: "discard", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Puts memory behind pages, so that touching them causes no page fault. Contents do not
    /// change.
    ///
    /// # Errors
    /// If the platform has no memory.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation, which are committed.
    /// - Nothing else uses the pages meanwhile.
    unsafe fn populate(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError>;

    /// As [`Platform::populate`], for pages that other threads may be using meanwhile. The default refuses: touching the
    /// pages would race with these threads.
    ///
    /// # Errors
    /// If the platform has no memory, or cannot do this at all, and if a page is not
    /// committed.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation. Other threads may commit and decommit them
    ///   meanwhile: this makes no access to the memory itself.
    unsafe fn populate_in_use(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(PlatformError { call: "populate_in_use", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Asks for huge pages behind the range from here on. This is only advice. The default refuses.
    ///
    /// # Errors
    /// If the platform has none.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation.
    unsafe fn advise_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(PlatformError { call: "advise_huge_pages", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Puts huge pages behind the range at once, also while threads use it. The default
    /// refuses.
    ///
    /// # Errors
    /// If the platform has none, or cannot do this at all. Part of the range may be
    /// on huge pages then.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation. Other threads may commit and decommit them
    ///   meanwhile: this makes no access to the memory itself.
    unsafe fn collapse(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(PlatformError { call: "collapse", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Puts a range that was never committed on explicit huge pages for good: [`Platform::fill_huge_pages`] takes them,
    /// [`Platform::empty_huge_pages`] gives them back. None is taken so far. The default refuses.
    ///
    /// # Errors
    /// If the platform has no pages of this size, or the mount has others or is none.
    ///
    /// # Safety
    /// - `base` and `size` name huge pages of one reservation. Nothing uses them.
    unsafe fn map_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        pages: HugePages,
    ) -> Result<(), PlatformError> {
        let _ = pages;
        Err(PlatformError { call: "map_huge_pages", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Commits and populates huge pages. Those that are committed already keep their contents. The default refuses.
    ///
    /// # Errors
    /// If there are too few free pages, with the bytes of those that are free on the nodes of the placement; or if
    /// something else limits them. All of the range is then empty.
    ///
    /// # Safety
    /// - `base` and `size` name huge pages of one [`Platform::map_huge_pages`] with this size. Nothing uses them.
    unsafe fn fill_huge_pages(
        &self,
        base: NonNull<u8>,
        size: usize,
        pages: HugePages,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        let _ = (pages, placement);
        Err(PlatformError { call: "fill_huge_pages", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Decommits huge pages: gives them back to the system. The default refuses.
    ///
    /// # Errors
    /// If the platform refuses.
    ///
    /// # Safety
    /// - `base` and `size` name huge pages of one [`Platform::map_huge_pages`]. Nothing uses them.
    unsafe fn empty_huge_pages(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(PlatformError { call: "empty_huge_pages", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// The nodes whose memory the process may use. The default refuses.
    ///
    /// # Errors
    /// If the platform does not know.
    fn memory_nodes(&self) -> Result<NodeSet, PlatformError> {
        Err(PlatformError { call: "memory_nodes", code: 0, addr: 0, size: 0, limit: None })
    }

    /// Sets on which nodes pages will lie that get memory from here on. The default refuses, unless any will do.
    ///
    /// # Errors
    /// If the platform refuses, or cannot do this at all.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation.
    unsafe fn place(
        &self,
        base: NonNull<u8>,
        size: usize,
        placement: Placement,
    ) -> Result<(), PlatformError> {
        if placement == Placement::Any {
            return Ok(());
        }
        Err(PlatformError { call: "place", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Passes, for each page of a range in order, its address and the node that it lies on; `None` if it has no
    /// memory. The default refuses.
    ///
    /// # Errors
    /// If the platform does not know. Some of the pages may have been passed then.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation; `page_size` is the size of each of them. Other threads may
    ///   commit and decommit them meanwhile: this makes no access to the memory itself.
    unsafe fn locate(
        &self,
        base: NonNull<u8>,
        size: usize,
        page_size: usize,
        visit: &mut dyn FnMut(usize, Option<usize>),
    ) -> Result<(), PlatformError> {
        let _ = (page_size, visit);
        Err(PlatformError { call: "locate", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Passes those mappings of the system that may contain memory and have a part in a range, in order of addresses.
    /// The default refuses.
    ///
    /// # Errors
    /// If the platform does not know.
    fn page_sizes(&self, range: AddrRange, visit: &mut dyn FnMut(PageSizes)) -> Result<(), PlatformError> {
        let _ = visit;
        let (addr, size) = (range.base().get(), range.size());
        Err(PlatformError { call: "page_sizes", code: 0, addr, size, limit: None })
    }

    /// Maps the first `size` bytes of an open file, shared: no reservation, but memory that can be read and written
    /// until [`Platform::unmap_file`]. Each page of a regular file gets its memory. The default refuses.
    ///
    /// # Errors
    /// If the file is shorter, is not open for reading and writing, or lacks room, and for a size of zero.
    fn map_file(&self, file: i32, size: usize) -> Result<NonNull<u8>, PlatformError> {
        let _ = file;
        Err(PlatformError { call: "map_file", code: 0, addr: 0, size, limit: None })
    }

    /// Ends a mapping of a file. The default refuses.
    ///
    /// # Errors
    /// If the platform refuses. The addresses are then lost.
    ///
    /// # Safety
    /// - `base` and `size` are those of one [`Platform::map_file`].
    /// - Nothing uses the mapping any more.
    unsafe fn unmap_file(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(PlatformError { call: "unmap_file", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Populates committed pages, and keeps them in memory until they are unlocked. The default refuses.
    ///
    /// # Errors
    /// If the platform refuses. Some of the pages may be locked then.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation, which are committed.
    unsafe fn lock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(PlatformError { call: "lock", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Undoes [`Platform::lock`]. The pages need not be locked. The default refuses.
    ///
    /// # Errors
    /// If the platform refuses. Some of the pages may be unlocked then.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation.
    unsafe fn unlock(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(PlatformError { call: "unlock", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Keeps the range out of child processes: there it is not mapped at all. The default refuses.
    ///
    /// # Errors
    /// If the platform refuses, or cannot do this at all.
    ///
    /// # Safety
    /// - `base` and `size` name pages of one reservation.
    unsafe fn no_inherit(&self, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        Err(PlatformError { call: "no_inherit", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Makes ready to watch writes to a reservation, and does nothing if that is done. Nothing is watched so far. Each
    /// reservation has a watch of its own. A child process has to open its copy of a watch again. The default
    /// refuses.
    ///
    /// # Errors
    /// If the platform cannot watch writes, or another thread is opening the watch.
    fn open_watch(&self, watch: &Watch) -> Result<(), PlatformError> {
        let _ = watch;
        Err(PlatformError { call: "open_watch", code: 0, addr: 0, size: 0, limit: None })
    }

    /// Whether the watch is open in this process.
    fn is_watch_open(&self, watch: &Watch) -> bool {
        let _ = watch;
        false
    }

    /// Watches writes to pages from here on, also if they are decommitted and committed. They count as written until
    /// [`Platform::take_written`]. The default refuses.
    ///
    /// # Errors
    /// If the watch is not open in this process, or the platform refuses. Some of the pages may be watched then.
    ///
    /// # Safety
    /// - `base` and `size` name pages of the reservation whose watch this is.
    unsafe fn watch(&self, watch: &Watch, base: NonNull<u8>, size: usize) -> Result<(), PlatformError> {
        let _ = watch;
        Err(PlatformError { call: "watch", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Passes those pages to `visit` that were written since the last call for them, in order of addresses, and
    /// watches all from here on. May do a part: returns for how many bytes from `base` it was done, at least a page. The
    /// default refuses.
    ///
    /// # Errors
    /// If the watch is not open in this process, or a page is not watched. Some of the pages may have been passed
    /// then, and some not; the next call returns what is written from here on.
    ///
    /// # Safety
    /// - `base` and `size` name pages of the reservation whose watch this is.
    unsafe fn take_written(
        &self,
        watch: &Watch,
        base: NonNull<u8>,
        size: usize,
        visit: &mut dyn FnMut(AddrRange),
    ) -> Result<usize, PlatformError> {
        let _ = (watch, visit);
        Err(PlatformError { call: "take_written", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Closes a watch, open or not. The default does nothing.
    ///
    /// # Safety
    /// - No thread uses the watch any more.
    unsafe fn close_watch(&self, watch: &Watch) {
        let _ = watch;
    }

    /// Counts that a reservation is divided into `now` ranges, committed or not. It counted
    /// `before` the last time: zero at first. Before its release it counts zero again.
    ///
    /// Returns into how many ranges it may be divided at this moment, so that enough are left
    /// for the other reservations and the rest of the process; `usize::MAX` if the platform
    /// has no such limit.
    fn account_mappings(&self, before: usize, now: usize) -> usize {
        let _ = (before, now);
        usize::MAX
    }

    /// Reserves `size` bytes of addresses from a multiple of `align`, with free addresses behind them for
    /// [`Platform::extend`] up to `room` bytes in all. Others may take those before. `size` and `room` are multiples of the
    /// page size. The default refuses.
    ///
    /// # Errors
    /// If the platform has no range of `room` bytes of addresses now, or cannot do this at all.
    fn reserve_with_room(
        &self,
        size: usize,
        room: usize,
        align: usize,
    ) -> Result<NonNull<u8>, PlatformError> {
        let _ = (room, align);
        Err(PlatformError { call: "reserve_with_room", code: 0, addr: 0, size, limit: None })
    }

    /// Reserves `more` bytes that follow a reservation, one or more whole pages. If something is there, the platform may
    /// reserve as many farther on, at a multiple of `align` from the base and within `room` bytes of it; what lies between
    /// is a gap, which is not the reservation's. Returns where they begin, in bytes from the base. They are part of the
    /// reservation from here on, with its provenance. The default refuses. The arena holds a lock meanwhile: this may
    /// neither call the arena nor allocate from its pools.
    ///
    /// # Errors
    /// If the platform refuses, if the addresses are taken, or if it cannot do this at all.
    ///
    /// # Safety
    /// - `base` is that of a reservation that was made by [`Platform::reserve_with_room`] with this `room`, and `size`
    ///   is where what is reserved of it ends. No other thread extends it at the same time.
    /// - `align` is a power of two, at least a page, and at most the alignment of the reservation. `size` is a multiple of
    ///   it, and `size + more` at most `room`.
    unsafe fn extend(
        &self,
        base: NonNull<u8>,
        size: usize,
        more: usize,
        room: usize,
        align: usize,
    ) -> Result<usize, PlatformError> {
        let _ = (more, room, align);
        Err(PlatformError { call: "extend", code: 0, addr: base.addr().get(), size, limit: None })
    }

    /// Whether addresses are memory as soon as they are reserved. An arena then reserves few at first, and more as it needs
    /// them, by [`Platform::extend`]. By default they are not.
    fn reserves_memory(&self) -> bool {
        false
    }

    /// The most memory, in bytes, that the system allows the process and those that it shares a limit with, as
    /// containers do; `None` if there is no limit or the platform does not know. May read files. By default it does not
    /// know.
    fn memory_limit(&self) -> Option<usize> {
        None
    }
}

/// A call that a platform refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PlatformError {
    /// The name of the call.
    pub call: &'static str,
    /// The platform's error code (`errno`); zero if it has none.
    pub code: i32,
    /// The address that the call was about; zero if there was none yet.
    pub addr: usize,
    /// The number of bytes that the call was about.
    pub size: usize,
    /// The resource that was lacking, and the bytes of it that the process may have
    /// (`usize::MAX`: no limit); `None` if the platform does not know.
    pub limit: Option<(Resource, usize)>,
}

impl PlatformError {
    /// What the person who runs the program can do about it.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self.call {
            "reserve" | "reserve_with_room" | "extend" => {
                "raise the address space limit (ulimit -v), or reserve less"
            }
            "commit" => "free memory, or raise the data limit (ulimit -d) and the overcommit limit",
            "decommit" => "raise vm.max_map_count, and after mlockall(MCL_FUTURE) also ulimit -l",
            "guard" => "raise vm.max_map_count, or do without guards",
            "zero" | "discard" => {
                "let system call filters pass mincore and madvise; until then zeros are written, and large objects keep \
                 their memory until they have moved"
            }
            "lock" if cfg!(windows) => {
                "raise the minimum working set (SetProcessWorkingSetSize), or do not lock"
            }
            "lock" => "raise the locked memory limit (ulimit -l), or do not lock",
            "populate" => "free memory, or raise the memory limit of the control group",
            "populate_in_use" => "use Linux 5.14 or newer, or populate at fill",
            "advise_huge_pages" => "enable transparent huge pages (madvise or always)",
            "collapse" => "use Linux 6.1 or newer and free memory, or do without huge pages",
            "map_huge_pages" => {
                "use a page size that is in /sys/kernel/mm/hugepages, and a directory of a mounted hugetlbfs of that size \
                 to which the process may write"
            }
            "fill_huge_pages" => {
                "set more huge pages aside (nr_hugepages in /sys/kernel/mm/hugepages, or of the node), raise the limits \
                 of the mount and of the control group (hugetlb), and use Linux 5.14 or newer"
            }
            "empty_huge_pages" => "use Linux 5.18 or newer, or keep spare memory",
            "misplaced" => "free memory on the nodes that were asked for, or set huge pages aside there",
            "memory_nodes" | "place" | "locate" => {
                "use a kernel with NUMA, let system call filters pass get_mempolicy, mbind and move_pages (in a container: \
                 CAP_SYS_NICE), or do not choose nodes"
            }
            "page_sizes" => "mount /proc",
            "map_file" => {
                "open the file for reading and writing, make it as long as the mapping (ftruncate), in whole pages, and \
                 see that its file system has room, of huge pages as well"
            }
            "no_inherit" => "let children inherit the arena, or do not fork",
            "open_watch" if self.lacks_descriptors() => {
                "raise the limit of open files (ulimit -n), or have mutators use write barriers"
            }
            "open_watch" | "watch" | "take_written" => {
                "use Linux 6.7 or newer on x86-64 or AArch64, mount /proc and let system call filters pass userfaultfd, \
                 or have mutators use write barriers"
            }
            _ => "report this: the arena asked for something the platform does not allow",
        }
    }
}

impl PlatformError {
    /// Whether the process or the system has as many open files as it may have.
    const fn lacks_descriptors(self) -> bool {
        cfg!(target_os = "linux") && matches!(self.code, 23 | 24)
    }
}

impl fmt::Display for PlatformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, code, addr, size, .. } = self;
        match *call {
            // The system refused nothing: it has put a page elsewhere.
            "misplaced" => write!(f, "the page of {size} bytes at {addr:#x} lies on another node")?,
            _ => write!(f, "{call} of {size} bytes at {addr:#x} failed with code {code}")?,
        }
        write!(f, ": {}", self.advice())
    }
}

tripoint_core::debug_as_text!(PlatformError);

impl core::error::Error for PlatformError {}
