//! What could not be read: the first faults are named, and the others counted.

/// The most faults that are named.
const MOST: usize = 20;

/// Faults of a heap.
#[derive(Debug, Default)]
pub(super) struct Faults {
    named: Vec<String>,
    more: usize,
}

impl Faults {
    pub(super) fn add(&mut self, fault: impl Into<String>) {
        match self.named.len() {
            0..MOST => self.named.push(fault.into()),
            _ => self.more += 1,
        }
    }

    /// The faults, each with what it is about in front of it.
    pub(super) fn of(self, what: &str) -> impl Iterator<Item = String> {
        let more = (self.more > 0).then(|| format!("and {} faults more", self.more));
        self.named.into_iter().chain(more).map(move |fault| format!("{what}: {fault}"))
    }
}
