//! Cards: what is known of the references in a part of a segment (design/gc.md `.segment.card`).
//!
//! | value | the objects that begin on the card |
//! |---|---|
//! | 0, [`WRITTEN`] | may refer to anything: it was written on since it was last looked at |
//! | `g + 1` | refer to generation `g`, and to none that is younger |
//! | 255, [`CLEAN`] | refer to no object of the heap |
//!
//! Mutators store [`WRITTEN`], the thread that stops the heap all else. So a card that is less than another says that
//! its objects may refer to more.

/// The bytes of a segment that share a card.
pub(crate) const CARD_SIZE: usize = 512;

/// A reference was stored there.
pub(crate) const WRITTEN: u8 = 0;

/// No reference of these objects leads to an object of the heap.
pub(crate) const CLEAN: u8 = u8::MAX;
