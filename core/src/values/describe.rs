//! Writing a structure out for a person (MPS: the Describe methods).

use core::fmt;

/// A structure that can write its state as text, one fact to a line.
///
/// ```
/// use tripoint_core::{ClientArena, ClientArenaOptions, Describe};
///
/// let mut memory = Box::new_uninit_slice(64 << 10);
/// let arena = ClientArena::create(&mut memory, ClientArenaOptions::default())?;
/// let mut text = String::new();
/// arena.describe(&mut text, 0).unwrap();
/// assert!(text.contains("grain"));
/// # Ok::<(), tripoint_core::Error>(())
/// ```
pub trait Describe {
    /// Writes the state, each line indented by `depth` steps of two spaces.
    ///
    /// # Errors
    /// Those of `out`, and no others.
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result;
}

impl<A: Describe + ?Sized> Describe for &A {
    fn describe(&self, out: &mut dyn fmt::Write, depth: usize) -> fmt::Result {
        (**self).describe(out, depth)
    }
}

/// Writes one indented line `name: value`. It is indented by at most 65,535 spaces, the most
/// that can be formatted.
///
/// # Errors
/// Those of `out`, and no others.
pub fn line(out: &mut dyn fmt::Write, depth: usize, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
    let indent = depth.saturating_mul(2).min(usize::from(u16::MAX));
    writeln!(out, "{:indent$}{name}: {value}", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    #[test]
    fn lines_are_indented_by_two_spaces_a_step_as_far_as_can_be_formatted() {
        let depths = [(0, 0), (3, 6), (32_767, 65_534), (32_768, 65_535), (usize::MAX, 65_535)];
        for (depth, spaces) in depths.into_iter().take(if cfg!(miri) { 2 } else { 5 }) {
            let mut text = String::new();
            line(&mut text, depth, "free", format_args!("{} bytes", 16)).unwrap();
            assert_eq!(text.trim_start_matches(' '), "free: 16 bytes\n");
            assert_eq!(text.find('f'), Some(spaces), "at depth {depth}");
        }
    }
}
