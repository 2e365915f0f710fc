//! How the places in a report become something people can read.

use core::fmt;

use tripoint_stack::Site;

#[cfg(tripoint_kernel)]
use crate::detectors::platform;

/// Turns sites into something people can read.
pub trait Resolve {
    /// Writes the one place that a site is best known by.
    ///
    /// # Errors
    /// Only those of `out`.
    fn resolve(&self, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result;

    /// Writes which code called that place, as far as that helps to know it: places with ` < ` between them. By default
    /// nothing.
    ///
    /// # Errors
    /// Only those of `out`.
    fn callers(&self, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result {
        let _ = (site, out);
        Ok(())
    }

    /// Writes what is known of one code address.
    ///
    /// # Errors
    /// Only those of `out`.
    fn frame(&self, address: usize, out: &mut dyn fmt::Write) -> fmt::Result;
}

/// Code addresses for tools to resolve.
///
/// On Linux a site is the command that turns it into lines: `addr2line` with the program's file, and where in it the
/// calls are, the innermost first. A single address is printed as it is, and so is a site if the program's file is not
/// known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw;

impl Resolve for Raw {
    fn resolve(&self, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result {
        match site.frames().first() {
            #[cfg(tripoint_kernel)]
            Some(_) => platform::describe(site, out),
            #[cfg(not(tripoint_kernel))]
            Some(address) => self.frame(*address, out),
            None => out.write_str("unknown"),
        }
    }

    fn frame(&self, address: usize, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "{address:#x}")
    }
}

/// A place to print, by a resolver.
pub(crate) struct At<'a>(pub(crate) &'a dyn Resolve, pub(crate) &'a Site);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.resolve(self.1, f)
    }
}

/// The callers of a place to print, by a resolver.
pub(crate) struct CallersOf<'a>(pub(crate) &'a dyn Resolve, pub(crate) &'a Site);

impl fmt::Display for CallersOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.callers(self.1, f)
    }
}

/// A place and its callers to print, by a resolver.
pub(crate) struct WithCallers<'a>(pub(crate) &'a dyn Resolve, pub(crate) &'a Site);

impl fmt::Display for WithCallers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.resolve(self.1, f)?;
        self.0.callers(self.1, &mut AfterPlace { out: f, separator: " < " })
    }
}

/// Puts a separator before what is written, if anything is.
struct AfterPlace<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    separator: &'static str,
}

impl fmt::Write for AfterPlace<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.is_empty() {
            return Ok(());
        }
        self.out.write_str(core::mem::take(&mut self.separator))?;
        self.out.write_str(text)
    }
}

/// A code address to print, by a resolver.
pub(crate) struct FrameAt<'a>(pub(crate) &'a dyn Resolve, pub(crate) usize);

impl fmt::Display for FrameAt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.frame(self.1, f)
    }
}
