//! Why a request failed, in MPS's terms, and what to do next
//! ([design/core.md](crate::design::overview) `.req.errors`).

use core::fmt;

use crate::primitive::lock_kind::Busy;
use crate::values::node_set::NodeSet;

/// The result of a request that may be refused.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// A resource of which the system allows a process only a limited amount.
// A whole word, so that the variant of an `Error` has a word too. With a byte beside it
// the results of inlined fast paths are put together bit by bit: four instructions for
// each object of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(usize)]
pub enum Resource {
    /// Address space, with or without memory behind it.
    AddressSpace,
    /// Memory that is locked: it stays in RAM and is never swapped out.
    LockedMemory,
    /// Huge pages of 2 MiB that the system set aside.
    HugePages2MiB,
    /// Huge pages of 1 GiB that the system set aside.
    HugePages1GiB,
}

impl Resource {
    const fn name(self) -> &'static str {
        match self {
            Self::AddressSpace => "address space",
            Self::LockedMemory => "locked memory",
            Self::HugePages2MiB => "huge pages of 2 MiB",
            Self::HugePages1GiB => "huge pages of 1 GiB",
        }
    }

    const fn advice(self) -> &'static str {
        match self {
            Self::AddressSpace => "raise the address space limit (ulimit -v), or reserve less",
            Self::LockedMemory => {
                "raise the locked memory limit (ulimit -l), or lock less; if mlockall locks future memory \
                 (MCL_FUTURE), call it after the arena is created"
            }
            Self::HugePages2MiB => {
                "as root, add the lacking pages to the number in \
                 /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages, or for one node in \
                 /sys/devices/system/node/node*/hugepages/hugepages-2048kB/nr_hugepages"
            }
            Self::HugePages1GiB => {
                "as root, add the lacking pages to the number in \
                 /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages, or for one node in \
                 /sys/devices/system/node/node*/hugepages/hugepages-1048576kB/nr_hugepages; set them aside when the \
                 machine starts (hugepagesz=1G hugepages=N), because later memory may be divided too much"
            }
        }
    }

    /// The size of a page, if the resource is counted in pages, in bytes.
    const fn page_size(self) -> Option<usize> {
        match self {
            Self::AddressSpace | Self::LockedMemory => None,
            Self::HugePages2MiB => Some(2 << 20),
            Self::HugePages1GiB => Some(1 << 30),
        }
    }
}

/// Why a request was refused. A refused request changed nothing.
///
/// The causes are those of MPS (manual, "result codes"), plus
/// [`Error::Frozen`], which the steady-state contract needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The platform refused memory.
    Memory,
    /// The arena has no addresses left for the request.
    Limit,
    /// The request would exceed the arena's commit limit.
    CommitLimit,
    /// The platform refused something other than memory: for example a barrier registration,
    /// huge pages, or a processor.
    Resource,
    /// The platform refused this amount of a limited resource.
    ResourceLimit {
        /// The resource that was refused.
        resource: Resource,
        /// The bytes that were asked for; if there were several tries, the fewest.
        size: usize,
        /// The bytes that the process may have in total; `usize::MAX` if no limit is
        /// known. Of huge pages, the bytes that are free.
        limit: usize,
    },
    /// Memory came from other nodes than those that were asked for, or not from them in turn, and was given back: some
    /// of them have none left.
    Misplaced {
        /// The nodes that were asked for.
        asked: NodeSet,
        /// The size of the pages, in bytes.
        page_size: usize,
    },
    /// The process may not use the memory of some of the nodes that were asked for.
    NoSuchNode {
        /// The nodes that were asked for.
        asked: NodeSet,
        /// The nodes whose memory the process may use.
        usable: NodeSet,
    },
    /// The request can never be granted as it is; the text says why.
    Parameter(&'static str),
    /// The format of an automatic pool was passed by value, and is too large to be kept beside the pool.
    FormatSize {
        /// The bytes of the format.
        size: usize,
        /// The bytes that a pool has room for.
        limit: usize,
    },
    /// The arena is frozen and the request needs memory that is not committed.
    Frozen,
    /// An object was freed twice or wrongly, or memory that was freed to the pool was written
    /// to: the pool refuses every request, because it is not known what else is wrong.
    Damaged,
    /// What the request needs is still being made, by another thread or by this one
    /// further down its stack.
    Unready,
    /// The pool belongs to one thread, which called it from inside another of its calls.
    Busy,
}

impl Error {
    /// What the caller can do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Memory => "free memory in the system, or lower what the process locks and commits",
            Self::Limit => {
                "free objects, or create a larger arena; if the arena got fewer addresses than it asked for, raise the \
                 limit of addresses (ulimit -v) first"
            }
            Self::CommitLimit => "free objects, or raise the arena's commit limit",
            Self::Resource => {
                "let the process use it (check its limits and its system call filters), or do not ask for it"
            }
            Self::ResourceLimit { resource, .. } => resource.advice(),
            Self::Misplaced { .. } => {
                "free memory on each of the nodes, or set more huge pages aside on each \
                 (/sys/devices/system/node/node*/hugepages/*/nr_hugepages)"
            }
            Self::NoSuchNode { .. } => {
                "ask for nodes that have memory (/sys/devices/system/node/has_memory) and that the process's control \
                 group may use (cpuset.mems)"
            }
            Self::Parameter(_) => "change the call, or the options that it depends on",
            Self::FormatSize { .. } => {
                "keep the format in a static, or leak it, and pass a reference to it, which is a format too"
            }
            Self::Frozen => {
                "before freezing, allocate the most that will be needed, allocation points and caches included, \
                 and free it (the high-water mark of a run without freezing says how much); or thaw the arena"
            }
            Self::Unready => {
                "ask again, or make it before several threads ask; the code that makes it must not ask for it"
            }
            Self::Busy => "call the pool after the visitor, hook or arena that it called has returned",
            Self::Damaged => {
                "find the code that frees memory twice or frees what it never got, or writes to memory that it \
                 freed, for example with a debug pool"
            }
        }
    }
}

impl Error {
    /// The name of the variant, for records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "Memory",
            Self::Limit => "Limit",
            Self::CommitLimit => "CommitLimit",
            Self::Resource => "Resource",
            Self::ResourceLimit { .. } => "ResourceLimit",
            Self::Misplaced { .. } => "Misplaced",
            Self::NoSuchNode { .. } => "NoSuchNode",
            Self::Parameter(_) => "Parameter",
            Self::FormatSize { .. } => "FormatSize",
            Self::Frozen => "Frozen",
            Self::Damaged => "Damaged",
            Self::Unready => "Unready",
            Self::Busy => "Busy",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = match *self {
            Self::Memory => "the platform refused memory",
            Self::Limit => "the arena's address range is used up",
            Self::CommitLimit => "the arena's commit limit is reached",
            Self::Resource => "the platform refused a resource",
            Self::Parameter(why) => why,
            Self::ResourceLimit { resource, size, limit } => {
                return self.explain_limit(f, resource, size, limit);
            }
            Self::Misplaced { asked, page_size } => {
                let advice = self.advice();
                return write!(
                    f,
                    "some of the nodes {asked} have no pages of {page_size} bytes left: {advice}"
                );
            }
            Self::NoSuchNode { asked, usable } => {
                let advice = self.advice();
                return write!(
                    f,
                    "memory of the nodes {asked} was asked for, and only {usable} can be used: {advice}"
                );
            }
            Self::FormatSize { size, limit } => {
                let advice = self.advice();
                return write!(f, "a format has {size} bytes, and a pool has room for {limit}: {advice}");
            }
            Self::Frozen => "the arena is frozen, and no run of its spare grains is long enough",
            Self::Damaged => "the pool found a wrong free, or free memory that was written over",
            Self::Unready => "what was asked for is still being made",
            Self::Busy => "the pool of one thread is in another call",
        };
        write!(f, "{cause}: {}", self.advice())
    }
}

impl Error {
    fn explain_limit(
        self,
        f: &mut fmt::Formatter<'_>,
        resource: Resource,
        size: usize,
        limit: usize,
    ) -> fmt::Result {
        if let Some(page) = resource.page_size().filter(|_| limit < usize::MAX) {
            let (pages, free) = (size.div_ceil(page), limit / page);
            let (name, lacking) = (resource.name(), pages.saturating_sub(free));
            write!(f, "too few {name} ({pages} needed, {free} free, {lacking} lacking)")?;
            return write!(f, ": {}", self.advice());
        }
        write!(f, "the platform refused {size} bytes of {}", resource.name())?;
        if limit < usize::MAX {
            write!(f, ", of which the process may have {limit} bytes")?;
        }
        write!(f, ": {}", self.advice())
    }
}

/// The name of the variant and the text, because that is what is printed if `main` returns it, or `unwrap` meets it.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.name())
    }
}

impl core::error::Error for Error {}

impl From<Busy> for Error {
    #[cold]
    fn from(_: Busy) -> Self {
        Self::Busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::string::ToString;

    fn limited(resource: Resource, limit: usize) -> Error {
        Error::ResourceLimit { resource, size: 4096, limit }
    }

    #[test]
    fn a_refused_resource_is_named_with_its_amounts() {
        let space = limited(Resource::AddressSpace, 1 << 20).to_string();
        for part in ["4096 bytes of address space", "may have 1048576 bytes:", "ulimit -v"] {
            assert!(space.contains(part), "{part} in {space}");
        }
        let memory = limited(Resource::LockedMemory, usize::MAX).to_string();
        assert!(memory.contains("4096 bytes of locked memory:") && memory.contains("ulimit -l"), "{memory}");
        assert!(size_of::<Error>() <= 3 * size_of::<usize>(), "as large as with a text alone");
    }

    #[test]
    fn huge_pages_that_are_lacking_are_counted_and_nodes_are_named() {
        let pages = Error::ResourceLimit { resource: Resource::HugePages2MiB, size: 8 << 20, limit: 2 << 20 };
        let pages = pages.to_string();
        for part in ["too few huge pages of 2 MiB (4 needed, 1 free, 3 lacking)", "-2048kB/nr_hugepages"] {
            assert!(pages.contains(part), "{part} in {pages}");
        }
        let asked = NodeSet::from_mask(0b1010);
        let nodes = Error::NoSuchNode { asked, usable: NodeSet::from_mask(0b11) }.to_string();
        let elsewhere = Error::Misplaced { asked, page_size: 4096 }.to_string();
        assert!(
            elsewhere.starts_with("some of the nodes 1, 3 have no pages of 4096 bytes left: "),
            "{elsewhere}"
        );
        for part in ["nodes 1, 3 was asked", "only 0, 1 can", "has_memory", "cpuset.mems"] {
            assert!(nodes.contains(part), "{part} in {nodes}");
        }
    }

    #[test]
    fn every_error_says_what_to_do() {
        let all = [
            Error::Memory,
            Error::Limit,
            Error::CommitLimit,
            Error::Resource,
            limited(Resource::AddressSpace, 64 << 20),
            limited(Resource::LockedMemory, usize::MAX),
            limited(Resource::HugePages2MiB, 0),
            limited(Resource::HugePages1GiB, usize::MAX),
            Error::Misplaced { asked: NodeSet::from_mask(3), page_size: 4096 },
            Error::NoSuchNode { asked: NodeSet::from_mask(2), usable: NodeSet::from_mask(1) },
            Error::Parameter("the alignment is no power of two"),
            Error::FormatSize { size: 2048, limit: 500 },
            Error::Frozen,
            Error::Damaged,
            Error::Unready,
            Error::Busy,
        ];
        for error in all {
            let text = error.to_string();
            assert!(text.ends_with(error.advice()), "{text}");
            assert!(text.len() > error.advice().len() + 2, "{text}");
            assert!(!error.advice().is_empty(), "{error:?}");
            let (name, same) =
                format!("{error:?}").split_once(": ").map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
            assert!(same == text && name.chars().all(char::is_alphabetic), "what `main` prints: {error:?}");
            let same = all.into_iter().filter(|other| other.advice() == error.advice());
            assert_eq!(same.count(), 1, "{error:?} has advice of its own");
        }
        let damaged = Error::Damaged.to_string();
        for fault in ["wrong free", "freed", "never got", "writes", "debug pool"] {
            assert!(damaged.contains(fault), "{fault} in {damaged}");
        }
    }
}
