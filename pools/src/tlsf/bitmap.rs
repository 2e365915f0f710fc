//! The bits that tell which lists have blocks: one for each class, in rows, and one for each row
//! (design/pool-tlsf.md `.tlsf.lists`). Kept apart from pointers, so that laws can be proved of it (design/laws.md `.law.pure`).

#![forbid(unsafe_code)]

use super::class::{ROW, ROWS};

const _: () = assert!(ROWS <= 64 && ROW == 32, "a row is a word, and a word has a bit for each row");

/// Which classes have blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bitmap {
    /// Bit r: row r has a class that is not empty.
    pub(super) occupied: u64,
    /// Bit c of row r: class `r * ROW + c` is not empty.
    pub(super) rows: [u32; ROWS],
}

impl Bitmap {
    /// No class has blocks.
    pub(super) const fn new() -> Self {
        Self { occupied: 0, rows: [0; ROWS] }
    }

    /// Notes that a class has blocks.
    #[inline]
    pub(super) const fn set(&mut self, class: usize) {
        self.rows[class / ROW] |= 1 << (class % ROW);
        self.occupied |= 1 << (class / ROW);
    }

    /// Notes that a class has none.
    #[inline]
    pub(super) const fn clear(&mut self, class: usize) {
        let row = &mut self.rows[class / ROW];
        *row &= !(1 << (class % ROW));
        if *row == 0 {
            self.occupied &= !(1 << (class / ROW));
        }
    }

    /// The lowest class at or above `class` that is not empty.
    #[inline]
    pub(super) fn class_from(&self, class: usize) -> Option<usize> {
        let row = class / ROW;
        let here = self.rows.get(row)? & u32::MAX << (class % ROW);
        if here != 0 {
            return Some(row * ROW + here.trailing_zeros() as usize);
        }
        let above = self.occupied & (u64::MAX << row << 1);
        if above == 0 {
            return None;
        }
        let row = above.trailing_zeros() as usize;
        Some(row * ROW + self.rows[row].trailing_zeros() as usize)
    }

    /// The highest class that is not empty.
    #[inline]
    pub(super) fn highest(&self) -> Option<usize> {
        let row = self.occupied.checked_ilog2()? as usize;
        Some(row * ROW + self.rows[row].checked_ilog2()? as usize)
    }

    /// Whether the bit of a class says that it has blocks.
    pub(super) const fn has(&self, class: usize) -> bool {
        self.rows[class / ROW] & 1 << (class % ROW) != 0
    }

    /// Whether the bit of every row is right.
    pub(super) fn has_row_bits(&self) -> bool {
        let mut rows = self.rows.iter().enumerate();
        rows.all(|(row, bits)| (*bits != 0) == (self.occupied & 1 << row != 0))
    }
}
