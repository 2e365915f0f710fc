//! Recording of many objects in a row.

use tripoint_core::Addr;

use crate::segments::segment::SegmentPtr;

/// Records where objects begin, in the order of their addresses: each word of a segment's map is written once, and not
/// once for each object. The last word is written when this is dropped.
pub(crate) struct Recorder {
    segment: SegmentPtr,
    index: usize,
    bits: usize,
}

impl Recorder {
    pub(crate) const fn new(segment: SegmentPtr) -> Self {
        Self { segment, index: 0, bits: 0 }
    }

    /// Records that an object begins at `addr`, which is in the payload and aligned.
    #[inline(always)]
    pub(crate) fn record(&mut self, addr: Addr) {
        let (index, bit) = self.segment.get().place(addr);
        if index != self.index {
            self.flush();
            self.index = index;
        }
        self.bits |= bit;
    }

    #[inline(always)]
    fn flush(&mut self) {
        if self.bits != 0 {
            self.segment.record_bits(self.index, self.bits);
            self.bits = 0;
        }
    }
}

impl Drop for Recorder {
    #[inline(always)]
    fn drop(&mut self) {
        self.flush();
    }
}
