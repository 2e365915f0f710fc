//! What a steady-state contract keeps in words of a hook, so that readers of the hook's records find it.

/// How many words a contract keeps of each of its threads, and the names of what they count
/// ([`EventHook::words_for`](crate::EventHook::words_for)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContractWords<'n> {
    /// How many threads the contract has places for.
    pub threads: usize,
    /// The words before the numbers of each thread: who it is, and which detectors are live for it.
    pub thread_words: usize,
    /// The numbers of each class of events.
    pub numbers: usize,
    /// The names of the classes of events, in the order of their numbers.
    pub classes: &'n [&'n str],
    /// The names of the detectors, in the order of their bits.
    pub detectors: &'n [&'n str],
}

impl ContractWords<'_> {
    /// The words of one thread.
    #[must_use]
    pub const fn of_thread(&self) -> usize {
        self.thread_words + self.numbers * self.classes.len()
    }
}
