//! How long a test runs.

/// As many cases or rounds as `full`, or its square root under Miri, where each takes
/// a thousand times as long (design/verification.md `.miri.sizes`).
#[must_use]
pub const fn effort(full: u32) -> u32 {
    if cfg!(miri) { full.isqrt() } else { full }
}

/// As many cases of a property test as `full`, or two to four under Miri: paths are
/// looked at there, and other tests take each of them.
#[must_use]
pub const fn cases(full: u32) -> u32 {
    effort(effort(full))
}
