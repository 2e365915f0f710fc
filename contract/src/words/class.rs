//! What can go wrong: eight classes of events, some of them divided further.

use core::fmt;

use bitflags::bitflags;

/// A kind of event that a hot thread must not cause in steady state
/// ([design/contract.md `.classes`](crate::design::contract)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum ViolationClass {
    /// (a) The global allocator allocated memory.
    Alloc,
    /// (a) The global allocator moved or resized memory.
    Realloc,
    /// (a) The global allocator freed memory.
    Dealloc,
    /// (b) A buffer was filled with a new block from its pool.
    Fill,
    /// (c) An arena grew, or refused to because it is frozen.
    Growth,
    /// (d) A memory system call.
    MemoryCall,
    /// (e) A page fault served without a device.
    MinorFault,
    /// (e) A page fault served from a device.
    MajorFault,
    /// (f) C code called `malloc` or a function like it.
    ForeignMalloc,
    /// (g) The thread collected a heap.
    Collection,
    /// (g) The thread waited because a heap was stopped.
    Pause,
    /// (h) The thread asked the kernel to let it wait. Seen only by
    /// [`DetectorSet::WAITS`](crate::DetectorSet::WAITS), which is no default.
    Wait,
    /// There were more amnesties than the budget allows. This raises an alarm as a violation does.
    AmnestyOverrun,
}

impl ViolationClass {
    /// All of them, in the order of their indices.
    pub const ALL: [Self; 13] = [
        Self::Alloc,
        Self::Realloc,
        Self::Dealloc,
        Self::Fill,
        Self::Growth,
        Self::MemoryCall,
        Self::MinorFault,
        Self::MajorFault,
        Self::ForeignMalloc,
        Self::Collection,
        Self::Pause,
        Self::Wait,
        Self::AmnestyOverrun,
    ];

    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The names of all of them, in the order of their indices.
    pub const NAMES: [&'static str; Self::COUNT] = {
        let mut names = [""; Self::COUNT];
        let mut index = 0;
        while index < names.len() {
            names[index] = Self::ALL[index].name();
            index += 1;
        }
        names
    };

    /// The place in [`ViolationClass::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The class with this index.
    #[must_use]
    pub fn from_index(index: usize) -> Option<Self> {
        Self::ALL.get(index).copied()
    }

    /// The class with this name, as in reports.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Whether its events are system calls, each with its number.
    pub(crate) const fn is_of_calls(self) -> bool {
        matches!(self, Self::MemoryCall | Self::Wait)
    }

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::Realloc => "realloc",
            Self::Dealloc => "dealloc",
            Self::Fill => "fill",
            Self::Growth => "growth",
            Self::MemoryCall => "memory_call",
            Self::MinorFault => "minor_fault",
            Self::MajorFault => "major_fault",
            Self::ForeignMalloc => "foreign_malloc",
            Self::Collection => "collection",
            Self::Pause => "pause",
            Self::Wait => "wait",
            Self::AmnestyOverrun => "amnesty_overrun",
        }
    }
}

impl fmt::Display for ViolationClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

bitflags! {
    /// A set of [`ViolationClass`]es: bit `i` is the class with index `i`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ViolationSet: usize {
        /// [`ViolationClass::Alloc`]
        const ALLOC = 1 << 0;
        /// [`ViolationClass::Realloc`]
        const REALLOC = 1 << 1;
        /// [`ViolationClass::Dealloc`]
        const DEALLOC = 1 << 2;
        /// [`ViolationClass::Fill`]
        const FILL = 1 << 3;
        /// [`ViolationClass::Growth`]
        const GROWTH = 1 << 4;
        /// [`ViolationClass::MemoryCall`]
        const MEMORY_CALL = 1 << 5;
        /// [`ViolationClass::MinorFault`]
        const MINOR_FAULT = 1 << 6;
        /// [`ViolationClass::MajorFault`]
        const MAJOR_FAULT = 1 << 7;
        /// [`ViolationClass::ForeignMalloc`]
        const FOREIGN_MALLOC = 1 << 8;
        /// [`ViolationClass::Collection`]
        const COLLECTION = 1 << 9;
        /// [`ViolationClass::Pause`]
        const PAUSE = 1 << 10;
        /// [`ViolationClass::Wait`]
        const WAIT = 1 << 11;
        /// [`ViolationClass::AmnestyOverrun`]
        const AMNESTY_OVERRUN = 1 << 12;
    }
}

impl ViolationSet {
    /// The classes that hot threads are held to by default: all but [`ViolationClass::Fill`].
    /// A fill from memory that the pool has is a normal use of the pool; if the pool has none,
    /// there is also [`ViolationClass::Growth`]. Add [`ViolationSet::FILL`] for code that must stay
    /// on the fast path ([design/contract.md `.classes.fill`](crate::design::contract)).
    pub const STEADY: Self = Self::all().difference(Self::FILL);

    /// The set of one class.
    #[must_use]
    pub const fn of(class: ViolationClass) -> Self {
        Self::from_bits_truncate(1 << class.index())
    }

    /// The classes in the set.
    pub fn classes(self) -> impl Iterator<Item = ViolationClass> {
        ViolationClass::ALL.into_iter().filter(move |&class| self.contains(Self::of(class)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_indices_agree() {
        for (index, class) in ViolationClass::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), index);
            assert_eq!(ViolationClass::from_index(index), Some(class));
            assert_eq!(ViolationClass::NAMES[index], class.name());
            assert_eq!(ViolationSet::of(class).classes().collect::<std::vec::Vec<_>>(), [class]);
        }
        assert_eq!(ViolationClass::from_index(ViolationClass::COUNT), None);
        assert_eq!(ViolationSet::all().classes().count(), ViolationClass::COUNT);
        assert!(ViolationSet::of(ViolationClass::MajorFault) == ViolationSet::MAJOR_FAULT);
    }
}
