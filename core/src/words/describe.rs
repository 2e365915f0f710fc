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

/// Writes one indented line `name: value`.
///
/// # Errors
/// Those of `out`, and no others.
pub fn line(out: &mut dyn fmt::Write, depth: usize, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
    writeln!(out, "{:indent$}{name}: {value}", "", indent = depth * 2)
}
