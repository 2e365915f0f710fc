//! How much of a reservation is reserved, and where ([design/arena-vm.md `.gaps`](crate::design::arena_vm)).

#![forbid(unsafe_code)]

use core::ops::Range;

/// What is reserved, in bytes from the base. Only grows.
///
/// ```text
/// 0                            end        apart
/// | reserved | gap | reserved |    gap    | reserved |
///   the arena's table has these             not yet
/// ```
#[derive(Debug)]
pub(crate) struct Extent {
    /// Where that ends which the arena's table has.
    end: usize,
    /// The bytes of the gaps below the end.
    gaps: usize,
    /// What was reserved behind one more gap.
    apart: Option<Range<usize>>,
}

impl Extent {
    pub(super) const fn new(end: usize) -> Self {
        Self { end, gaps: 0, apart: None }
    }

    pub(crate) const fn end(&self) -> usize {
        self.end
    }

    pub(crate) const fn has_gaps(&self) -> bool {
        self.gaps > 0
    }

    /// What was reserved behind a gap that the arena's table has to skip.
    pub(crate) const fn apart(&self) -> Option<&Range<usize>> {
        self.apart.as_ref()
    }

    /// The bytes that are reserved, without the gaps.
    pub(super) fn size(&self) -> usize {
        self.end - self.gaps + self.apart.as_ref().map_or(0, ExactSizeIterator::len)
    }

    /// Adds what was reserved at or behind the end, while nothing is apart.
    pub(super) fn add(&mut self, range: Range<usize>) {
        match range.start == self.end {
            true => self.end = range.end,
            false => self.apart = Some(range),
        }
    }

    /// What was apart is part of the arena's table now.
    pub(crate) fn join(&mut self) {
        if let Some(apart) = self.apart.take() {
            self.gaps += apart.start - self.end;
            self.end = apart.end;
        }
    }

    /// Leaves what lies before `end`, where the first gap begins: the rest was released.
    pub(super) const fn cut(&mut self, end: usize) {
        (self.end, self.gaps) = (end, 0);
    }
}
