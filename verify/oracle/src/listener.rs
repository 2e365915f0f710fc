//! A control that draws stops and remembers its notices, and the naive way to find stops.

use tripoint_core::{Addr, Control, Stop};

use crate::choices::Choices;

/// A deterministic source of distances between stops, in bytes.
#[derive(Clone, Debug)]
pub enum Draws {
    /// No stops.
    Never,
    /// Always this distance.
    Every(usize),
    /// Any distance below `below`.
    Below {
        /// The bound of the distances, in bytes; not zero.
        below: usize,
        /// The state that the distances are computed from.
        seed: u64,
    },
}

impl Draws {
    /// The next distance, in bytes.
    pub fn draw(&mut self) -> usize {
        match self {
            Self::Never => usize::MAX,
            Self::Every(distance) => *distance,
            Self::Below { below, seed } => {
                // Knuth's MMIX generator: any distribution of distances will
                // do.
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (*seed >> 33) as usize % *below
            }
        }
    }

    /// From no stops, through one in every object, to some in a few buffers: at
    /// most `below` bytes apart, which is not zero and at most 65536.
    pub fn draw_from(choices: &mut Choices<'_>, below: usize) -> Option<Self> {
        Some(match choices.byte()? % 6 {
            0 => Self::Never,
            1 => Self::Every(choices.below(100)?),
            _ => {
                let below = 1 + choices.below(below)?;
                Self::Below { below, seed: u64::from(choices.byte()?) }
            }
        })
    }
}

/// A stop that was reported: the object or the batch, its size, and the byte of the stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The address of the object.
    pub object: Addr,
    /// The bytes that were committed.
    pub size: usize,
    /// The byte that the stop was at.
    pub offset: usize,
}

impl From<Stop> for Stopped {
    fn from(stop: Stop) -> Self {
        let Stop { object, size, offset, .. } = stop;
        Self { object, size, offset }
    }
}

/// What a control was notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A stop was reached.
    Stopped(Stopped),
    /// That many trips were observed.
    Tripped(usize),
}

/// A control that draws stops and remembers its notices, in order.
#[derive(Debug)]
pub struct Listener {
    draws: Draws,
    /// What it was notified of.
    pub notices: Vec<Notice>,
}

impl Listener {
    /// A listener that has no notices yet.
    #[must_use]
    pub const fn new(draws: Draws) -> Self {
        Self { draws, notices: Vec::new() }
    }

    /// The stops it was notified of, in order.
    #[must_use]
    pub fn stops(&self) -> Vec<Stopped> {
        let stops = self.notices.iter().filter_map(|notice| match notice {
            Notice::Stopped(stop) => Some(*stop),
            Notice::Tripped(_) => None,
        });
        stops.collect()
    }

    /// The number of trips it was notified of.
    #[must_use]
    pub fn trips(&self) -> usize {
        self.notices
            .iter()
            .map(|notice| if let Notice::Tripped(requests) = notice { *requests } else { 0 })
            .sum()
    }
}

impl Control for Listener {
    fn next_stop(&mut self) -> usize {
        self.draws.draw()
    }

    fn stopped(&mut self, stop: Stop) {
        self.notices.push(Notice::Stopped(stop.into()));
    }

    fn tripped(&mut self, requests: usize) {
        self.notices.push(Notice::Tripped(requests));
    }
}

/// Finds stops by counting the bytes of objects, knowing nothing of buffers.
#[derive(Debug)]
pub(crate) struct Stops {
    draws: Draws,
    /// Bytes to allocate before the next stop.
    left: usize,
    pub(crate) found: Vec<Stopped>,
}

impl Stops {
    pub(crate) fn new(mut draws: Draws) -> Self {
        let left = draws.draw();
        Self { draws, left, found: Vec::new() }
    }

    /// An object was allocated: this much of it was committed. A stop in it is found, and the
    /// next one counts from its end.
    pub(crate) fn object(&mut self, object: Addr, committed: usize) {
        match self.left.checked_sub(committed) {
            Some(left) => self.left = left,
            None => {
                self.found.push(Stopped { object, size: committed, offset: self.left });
                self.left = self.draws.draw();
            }
        }
    }
}
