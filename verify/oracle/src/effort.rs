//! How long a test runs.

/// As many cases or rounds as `full`, or its square root under Miri, where each takes
/// a thousand times as long (design/verification.md `.miri.sizes`).
#[must_use]
pub const fn effort(full: u32) -> u32 {
    if cfg!(miri) { full.isqrt() } else { full }
}
