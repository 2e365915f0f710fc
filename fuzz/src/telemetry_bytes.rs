//! The reader of telemetry files on any bytes.

/// Reads what the bytes make of a telemetry file: bytes as they are, or a sound file with changes,
/// before it is read or meanwhile (design/telemetry.md `.reader`).
///
/// # Panics
/// If the reader panics, does not end, or shows what a terminal could obey.
pub fn telemetry_bytes(data: &[u8]) {
    tripoint_oracle::telemetry_bytes(data);
}
