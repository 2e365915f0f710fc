//! Numbers in the byte order of another process.

use object::{Endian as _, Endianness};

/// A number of 4 or 8 bytes.
pub(crate) fn number(bytes: &[u8], endian: Endianness) -> u64 {
    match bytes {
        [a, b, c, d] => endian.read_u32([*a, *b, *c, *d]).into(),
        [a, b, c, d, e, f, g, h] => endian.read_u64([*a, *b, *c, *d, *e, *f, *g, *h]),
        _ => 0,
    }
}
