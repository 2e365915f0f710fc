//! Which memory an arena asks for: the size of its pages, and where they lie.

#![forbid(unsafe_code)]

use core::ffi::CStr;

use tripoint_core::{AddrRange, NodeSet, Resource};

/// The sizes of huge pages that a system can set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePageSize {
    /// 2 MiB.
    TwoMiB,
    /// 1 GiB.
    OneGiB,
}

impl HugePageSize {
    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::TwoMiB => 2 << 20,
            Self::OneGiB => 1 << 30,
        }
    }

    /// What is lacking if there are too few of these pages.
    #[must_use]
    pub const fn resource(self) -> Resource {
        match self {
            Self::TwoMiB => Resource::HugePages2MiB,
            Self::OneGiB => Resource::HugePages1GiB,
        }
    }
}

/// Explicit huge pages: those that the system set aside, and gives to nothing else.
///
/// ```
/// use tripoint_arena_vm::{HugePageSize, HugePages};
/// let pages = HugePages { size: HugePageSize::OneGiB, mount: Some(c"/dev/hugepages1G") };
/// # assert_eq!(pages.size.bytes(), 1 << 30);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// The size of a page.
    pub size: HugePageSize,
    /// The directory of a mounted `hugetlbfs` whose pages have this size, to count and limit the pages by that mount.
    /// The arena's file there has no name, and ends with the arena. `None`: from the kernel's pool.
    pub mount: Option<&'static CStr>,
}

/// On which memory nodes the pages of an arena lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the system puts them: by default, on the node of the thread that first touches a page.
    #[default]
    Any,
    /// Only on these nodes.
    Bind(NodeSet),
    /// On these nodes in turn, page by page.
    Interleave(NodeSet),
}

impl Placement {
    /// The nodes that are asked for; `None` if any will do.
    #[must_use]
    pub const fn nodes(self) -> Option<NodeSet> {
        match self {
            Self::Any => None,
            Self::Bind(nodes) | Self::Interleave(nodes) => Some(nodes),
        }
    }
}

/// A mapping of the system: pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSizes {
    /// The addresses of the mapping.
    pub range: AddrRange,
    /// The size of its pages, in bytes.
    pub page_size: usize,
    /// The bytes that the system has put on huge pages by itself, in the whole mapping.
    pub transparent: usize,
}
