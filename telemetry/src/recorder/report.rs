//! How telemetry is kept, and what the system refused.

#![forbid(unsafe_code)]

use core::fmt;

use crate::format::{HeaderFlags, MAX_ENTRIES, MAX_RING_BYTES, MAX_RINGS};

/// Why telemetry could not be created.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TelemetryError {
    /// The memory for telemetry is too small.
    TooSmall {
        /// The bytes that are needed.
        needed: usize,
        /// The bytes that there are.
        bytes: usize,
    },
    /// The room that was asked for is more than the format allows (4,095 threads, 65,536 entries of a table, rings of
    /// [`MAX_RING_BYTES`](crate::format::MAX_RING_BYTES)), or takes more bytes than the address space has.
    TooLarge,
    /// The room that was asked for takes more bytes than the system has available, so the system might end processes to
    /// provide them. Nothing was allocated.
    NoMemory {
        /// The bytes that are needed.
        needed: usize,
        /// The bytes that the machine and the control groups of the process have available.
        available: u64,
    },
    /// The path cannot be used: it has a zero byte or no file name.
    Path,
    /// The system refused.
    System(Refusal),
}

impl fmt::Display for TelemetryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { needed, bytes } => {
                write!(
                    f,
                    "telemetry needs {needed} bytes of memory and has {bytes}: provide more, or ask for less room"
                )
            }
            Self::TooLarge => {
                write!(
                    f,
                    "telemetry has room for at most {} threads and {MAX_ENTRIES} entries of a table, with rings of fewer than {MAX_RING_BYTES} bytes \
                     (format::MAX_RING_BYTES), in memory that can be addressed: ask for less",
                    MAX_RINGS - 1
                )
            }
            Self::NoMemory { needed, available } => {
                write!(
                    f,
                    "telemetry needs {needed} bytes of memory, of which the system has {available} available: ask for less room, or free memory"
                )
            }
            Self::Path => {
                f.write_str("the path for telemetry has a zero byte or no file name: use another one")
            }
            Self::System(refusal) => refusal.fmt(f),
        }
    }
}

tripoint_core::debug_as_text!(TelemetryError: TooSmall, TooLarge, NoMemory, Path, System);

impl core::error::Error for TelemetryError {}

/// A call that the system refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What was asked for.
    pub call: SystemCall,
    /// The system's error code (`errno`).
    pub code: i32,
    /// The bytes that the call was about; zero if it was about none.
    pub bytes: usize,
}

/// What telemetry asks the system for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemCall {
    /// A file in memory without a path.
    CreateAnonymous,
    /// A file with a path.
    CreateFile,
    /// Memory for all of the file.
    Allocate,
    /// Addresses for it.
    Map,
    /// The file's name, once it is complete.
    Rename,
    /// Memory behind every page, so that none faults at its first event.
    Populate,
    /// A lock, so that no page is swapped out.
    Lock,
    /// A seal, so that no process changes the file's size, and only this one writes to it.
    Seal,
    /// The kind of file system that the file is on.
    FileSystem,
    /// A page that is zero in forked children.
    WipeOnFork,
    /// Random numbers.
    Random,
    /// The mode of a file in memory, so that only its owner may open it.
    Mode,
    /// How much memory is available.
    AvailableMemory,
    /// A lock, so that no other process gives files the same names meanwhile, or replaces them without knowing that
    /// they are in use.
    FileLock,
}

impl SystemCall {
    /// All calls.
    pub const ALL: [Self; 14] = [
        Self::CreateAnonymous,
        Self::CreateFile,
        Self::Allocate,
        Self::Map,
        Self::Populate,
        Self::Lock,
        Self::Seal,
        Self::FileSystem,
        Self::WipeOnFork,
        Self::Random,
        Self::Mode,
        Self::AvailableMemory,
        Self::FileLock,
        Self::Rename,
    ];

    /// The advice for an error of a path, if its cause is certain.
    #[cfg(feature = "std")]
    fn advice_on_path(self, kind: std::io::ErrorKind) -> Option<&'static str> {
        use std::io::ErrorKind;
        if !matches!(self, Self::CreateFile | Self::Rename | Self::FileLock) {
            return None;
        }
        match kind {
            // The file was created in the same directory before.
            ErrorKind::PermissionDenied if self == Self::Rename => {
                Some("use another path: a file of another user may have this one")
            }
            ErrorKind::PermissionDenied if self == Self::FileLock => {
                Some("let this process read the directory and lock it")
            }
            ErrorKind::WouldBlock => {
                Some("see which process keeps the directory locked for so long (lslocks)")
            }
            ErrorKind::NotFound => Some("create its directory first"),
            ErrorKind::IsADirectory => {
                Some("use a path that is not a directory, nor is it one with .switches added")
            }
            ErrorKind::NotADirectory => {
                Some("use another path: what should be a directory in this one is a file")
            }
            ErrorKind::InvalidFilename => {
                Some("use a shorter name: names have an ending of up to 40 bytes while files are made")
            }
            _ => None,
        }
    }

    /// What the call is for, and what to do if the system refuses it.
    const fn explain(self) -> (&'static str, &'static str) {
        match self {
            Self::CreateAnonymous => (
                "create a file in memory",
                "raise the limit of open files (ulimit -n), or use a path, or Linux 3.17 or newer",
            ),
            Self::CreateFile => (
                "create the file",
                "use a directory that this process may write to, or raise the limit of open files (ulimit -n)",
            ),
            Self::Allocate => (
                "provide memory for the file",
                "free memory, or space of the file system, raise the limit of a file's size (ulimit -f), or ask for less room",
            ),
            Self::Map => (
                "map the file",
                "raise the limits of addresses (ulimit -v) and mappings (vm.max_map_count), or ask for less room",
            ),
            Self::Rename => ("give the file its name", "use a directory that this process may write to"),
            Self::Populate => ("put memory behind every page", "free memory, or ask for less room"),
            Self::Lock => (
                "lock the file",
                "raise the locked memory limit (ulimit -l), or accept faults if memory runs short",
            ),
            Self::Seal => ("seal the file", "trust the other processes of this user, which can change it"),
            Self::FileSystem => {
                ("name the kind of file system", "use /dev/shm, or accept faults after write-back")
            }
            Self::WipeOnFork => {
                ("clear a word in forked children", "use Linux 4.14 or newer, or do not fork")
            }
            Self::Random => (
                "return random numbers",
                "trust readers with the addresses of buffers, or do without the numbers of buffers",
            ),
            Self::Mode => (
                "restrict the file to its owner",
                "know that it is found by way of the process only, at whose descriptors no other user may look",
            ),
            Self::AvailableMemory => (
                "say how much memory is available",
                "ask for no more than there surely is, because the system may end processes to provide it",
            ),
            Self::FileLock => (
                "lock the directory and the file",
                "use a file system with locks, or do not start two processes with the same path at once",
            ),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (purpose, advice) = self.call.explain();
        write!(f, "the system refused to {purpose}")?;
        if self.bytes > 0 {
            write!(f, " of {} bytes", self.bytes)?;
        }
        #[cfg(feature = "std")]
        let (error, advice) = {
            let error = std::io::Error::from_raw_os_error(self.code);
            let advice = self.call.advice_on_path(error.kind()).unwrap_or(advice);
            (error, advice)
        };
        #[cfg(not(feature = "std"))]
        let error = format_args!("code {}", self.code);
        write!(f, ": {error}; {advice}")
    }
}

tripoint_core::debug_as_text!(Refusal);

impl core::error::Error for Refusal {}

/// How telemetry is kept, and what the system refused that it can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    flags: HeaderFlags,
    bytes: usize,
    refusals: [Option<Refusal>; MOST_REFUSALS],
    replaced: Option<u64>,
}

/// The calls that may be refused without telemetry failing: lock, seal, file system, wipe on fork, random, lock of
/// the file, available memory, mode.
const MOST_REFUSALS: usize = 8;

impl Report {
    pub(crate) const fn new(flags: HeaderFlags, bytes: usize) -> Self {
        Self { flags, bytes, refusals: [None; MOST_REFUSALS], replaced: None }
    }

    /// Notes whether a flag holds, or that the system refused what it says.
    #[cfg(tripoint_on_linux)]
    pub(crate) fn note(&mut self, flag: HeaderFlags, outcome: Result<bool, Refusal>) {
        match outcome {
            Ok(holds) => self.flags.set(flag, holds),
            Err(refusal) => {
                self.flags.remove(flag);
                if let Some(free) = self.refusals.iter_mut().find(|refusal| refusal.is_none()) {
                    *free = Some(refusal);
                }
            }
        }
    }

    /// Notes which process still has the file that had the path before.
    #[cfg(tripoint_on_linux)]
    pub(crate) fn note_replaced(&mut self, process: Option<u64>) {
        self.replaced = process;
    }

    /// How the file is kept.
    #[must_use]
    pub const fn flags(&self) -> HeaderFlags {
        self.flags
    }

    /// The bytes of memory that telemetry takes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of the process whose telemetry had the path before, if that process (or a child that it forked) still
    /// writes to it. Its readers keep its file, and new readers find this one. The number is the one that the process
    /// itself sees, which another container may count differently. Programs that run at the same time need paths of
    /// their own.
    #[must_use]
    pub const fn replaced(&self) -> Option<u64> {
        self.replaced
    }

    /// What the system refused.
    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.refusals.iter().flatten()
    }
}

/// One line, and one more for each refusal, and for what was replaced.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.flags.contains(HeaderFlags::ANONYMOUS) {
            "a file in memory"
        } else if self.flags.contains(HeaderFlags::PATH) {
            "a file with a path"
        } else {
            "memory of the program"
        };
        write!(f, "telemetry: {} bytes in {place}", self.bytes)?;
        for (flag, yes) in [
            (HeaderFlags::SEALED, ", sealed"),
            (HeaderFlags::PREFAULTED, ", prefaulted"),
            (HeaderFlags::LOCKED, ", locked"),
            (HeaderFlags::PARENT_ONLY, ", without forked children"),
            (HeaderFlags::SWITCHES, ", with switches for other processes"),
            (HeaderFlags::WITHOUT_ADDRESSES, ", without addresses"),
        ] {
            if self.flags.contains(flag) {
                f.write_str(yes)?;
            }
        }
        if self.flags.contains(HeaderFlags::PATH) && !self.flags.contains(HeaderFlags::IN_MEMORY) {
            f.write_str("; its file system writes pages back, after which they fault again: use /dev/shm")?;
        }
        if let Some(process) = self.replaced {
            write!(
                f,
                "\n  it replaces the telemetry of process {process}, which that process or a child of it still has open: \
                 give each process a path of its own"
            )?;
        }
        self.refusals().try_for_each(|refusal| write!(f, "\n  {refusal}"))
    }
}
