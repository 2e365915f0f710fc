//! Where the memory of an arena lies, and of which size its pages are.

#![forbid(unsafe_code)]

use core::fmt;

use tripoint_core::{NodeSet, line};

/// Where the memory of an arena lies at one moment, by node and size of page, as the system says
/// ([`ArenaVm::page_report`](crate::ArenaVm::page_report)). Only pages that have memory count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageReport {
    small: PagesOfSize,
    huge: PagesOfSize,
    transparent: usize,
}

/// The pages of one size, in bytes for each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PagesOfSize {
    page_size: usize,
    on_node: [usize; NodeSet::MAX],
}

impl PageReport {
    /// A report without pages, which will be of these two sizes.
    pub(crate) fn new(small: usize, huge: usize) -> Self {
        let none = |page_size| PagesOfSize { page_size, on_node: [0; NodeSet::MAX] };
        Self { small: none(small), huge: none(huge), transparent: 0 }
    }

    /// Adds one page. All larger pages count as explicit huge ones.
    pub(crate) fn add(&mut self, page_size: usize, node: usize) {
        let pages = if page_size == self.small.page_size { &mut self.small } else { &mut self.huge };
        if let Some(bytes) = pages.on_node.get_mut(node) {
            *bytes += page_size;
        }
    }

    pub(crate) fn add_transparent(&mut self, size: usize) {
        self.transparent += size;
    }

    /// The bytes on pages of one size on one node.
    #[must_use]
    pub fn bytes(&self, node: usize, page_size: usize) -> usize {
        let of_size = [&self.small, &self.huge].into_iter().filter(|pages| pages.page_size == page_size);
        of_size.filter_map(|pages| pages.on_node.get(node)).sum()
    }

    /// The nodes on which there is memory, each with its size of pages and the bytes on them: the largest pages first.
    pub fn rows(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        [self.huge, self.small].into_iter().flat_map(|pages| {
            let row = move |(node, bytes): (usize, usize)| (node, pages.page_size, bytes);
            pages.on_node.into_iter().enumerate().filter(|&(_, bytes)| bytes > 0).map(row)
        })
    }

    /// The bytes that have memory.
    #[must_use]
    pub fn total(&self) -> usize {
        self.rows().map(|(_, _, bytes)| bytes).sum()
    }

    /// The bytes that the system has put on huge pages by itself. The other methods count them as small pages.
    #[must_use]
    pub const fn transparent(&self) -> usize {
        self.transparent
    }

    /// Writes the rows for people, at a depth of indentation.
    pub(crate) fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        for (node, page_size, bytes) in self.rows() {
            line(out, depth, "on node", format_args!("{node}: {bytes} bytes, pages of {page_size}"))?;
        }
        match self.transparent {
            0 => Ok(()),
            bytes => line(out, depth, "of them on transparent huge pages", format_args!("{bytes} bytes")),
        }
    }
}

impl fmt::Display for PageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn pages_are_counted_by_node_and_size() {
        const HUGE: usize = 2 << 20;
        let mut report = PageReport::new(4096, HUGE);
        assert_eq!((report.total(), report.to_string().as_str()), (0, ""));
        for (page_size, node) in [(HUGE, 1), (4096, 0), (HUGE, 1), (4096, 1), (4096, NodeSet::MAX)] {
            report.add(page_size, node);
        }
        report.add_transparent(4096);
        assert_eq!(
            report.rows().collect::<Vec<_>>(),
            [(1, HUGE, 2 * HUGE), (0, 4096, 4096), (1, 4096, 4096)]
        );
        assert_eq!((report.bytes(1, HUGE), report.bytes(0, HUGE), report.bytes(1, 1)), (2 * HUGE, 0, 0));
        assert_eq!((report.total(), report.transparent()), (2 * HUGE + 2 * 4096, 4096));
        let text = report.to_string();
        for part in ["on node: 1: 4194304 bytes, pages of 2097152\n", "on transparent huge pages: 4096 bytes"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
