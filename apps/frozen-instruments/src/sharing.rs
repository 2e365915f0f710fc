//! How much of a mapping a process shares: `/proc/self/smaps`.

use std::fs;

/// Sizes of a mapping, in KiB, as the kernel counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// The pages that are in memory.
    pub(crate) resident: usize,
    /// The same, with each page divided by the number of processes that map it.
    pub(crate) proportional: usize,
    /// The pages that other processes map, too.
    pub(crate) shared: usize,
    /// The pages that no other process maps.
    pub(crate) private: usize,
}

/// The sizes of the mapping at `base`; `None` if the system does not say.
pub(crate) fn of_mapping(base: usize) -> Option<Sharing> {
    let text = fs::read_to_string("/proc/self/smaps").ok()?;
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&format!("{base:x}-"))).skip(1);
    let mut sharing = Sharing::default();
    for line in lines.by_ref() {
        let Some((name, rest)) = line.split_once(':') else { break };
        // The next mapping begins with its addresses.
        if name.contains('-') || name.contains(' ') {
            break;
        }
        let size = rest.split_whitespace().next().and_then(|size| size.parse().ok());
        match (name, size) {
            ("Rss", Some(size)) => sharing.resident = size,
            ("Pss", Some(size)) => sharing.proportional = size,
            // Dirty pages were not yet written to a disk. Which process wrote them does not matter.
            ("Shared_Clean" | "Shared_Dirty", Some(size)) => sharing.shared += size,
            ("Private_Clean" | "Private_Dirty", Some(size)) => sharing.private += size,
            _ => {}
        }
    }
    (sharing != Sharing::default()).then_some(sharing)
}

impl Sharing {
    /// A line for the parent.
    pub(crate) fn line(self) -> String {
        format!("{} {} {} {}", self.resident, self.proportional, self.shared, self.private)
    }

    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let mut sizes = line.split_whitespace().map_while(|size| size.parse().ok());
        let mut next = || sizes.next();
        Some(Self { resident: next()?, proportional: next()?, shared: next()?, private: next()? })
    }
}
