//! Contents of memory.

/// Whether each byte is this one.
#[must_use]
pub fn all_are(bytes: &[u8], value: u8) -> bool {
    const PIECE: usize = if cfg!(miri) { 4096 } else { 256 };
    // In pieces, because single bytes are slow without optimisation, and slower under
    // Miri.
    let expected = [value; PIECE];
    bytes.chunks(PIECE).all(|piece| piece == &expected[..piece.len()])
}
