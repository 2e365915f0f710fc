//! Names and lines for code addresses. Slow, and allocates: for cold threads.

use core::fmt;
use std::string::{String, ToString};

use crate::record::Site;
use crate::report::Resolve;

/// Beginnings of the names of functions that are never the site itself, but on
/// the way from it to the detector.
const ON_THE_WAY: [&str; 14] = [
    "alloc::",
    "core::",
    "std::",
    "hashbrown::",
    "tripoint_contract::",
    "tripoint_core::",
    "tripoint_ap::",
    "tripoint_pools::",
    "tripoint_arena_vm::",
    "__rust",
    "__rdl",
    "__libc_",
    "__GI_",
    "_Unwind",
];

/// Functions of C on the way.
const C_ON_THE_WAY: [&str; 13] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "mmap",
    "mmap64",
    "munmap",
    "mprotect",
    "madvise",
    "__restore_rt",
];

/// Where the sources of glibc's `malloc` are, in debug information of it.
const MALLOC_SOURCES: &str = "./malloc/";

/// Resolves sites by the debug information of the running program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Symbols;

/// One function at one address; an address has several where functions were
/// inlined.
struct Frame {
    function: String,
    place: Option<String>,
}

impl Frame {
    fn is_on_the_way(&self) -> bool {
        // `<alloc::vec::Vec<T> as …>::push`, `<&mut core::…`
        let name = self.function.trim_start_matches(['<', '&', '*']).trim_start_matches("mut ");
        // `<&A as tripoint_core::…>::alloc`: of the trait, where the type has no path.
        let name = match name.split_once(" as ") {
            Some((of, of_trait)) if !of.contains("::") => of_trait,
            _ => name,
        };
        let in_malloc = self.place.as_ref().is_some_and(|place| place.starts_with(MALLOC_SOURCES));
        in_malloc
            || self.is_of_built_in_type()
            || ON_THE_WAY.iter().any(|beginning| name.starts_with(beginning))
            || C_ON_THE_WAY.contains(&name)
    }

    /// Whether this is `<*mut T>::write`, `<[T]>::sort`, `<u64>::pow`: a method that
    /// only the standard library can give to a type, named so where symbols are mangled
    /// in the newer way.
    fn is_of_built_in_type(&self) -> bool {
        let parts = self.function.strip_prefix('<').and_then(|rest| rest.split_once(">::"));
        parts
            .is_some_and(|(of, _)| !of.contains(" as ") && (of.starts_with(['*', '[']) || !of.contains("::")))
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{} at {place}", self.function),
            None => f.write_str(&self.function),
        }
    }
}

fn frames_at(address: usize, mut found: impl FnMut(Frame)) {
    backtrace::resolve(core::ptr::without_provenance_mut(address), |symbol| {
        let function = symbol.name().map_or_else(|| "?".to_string(), |name| std::format!("{name:#}"));
        let place = symbol.filename().zip(symbol.lineno());
        let place = place.map(|(file, line)| std::format!("{}:{line}", file.display()));
        found(Frame { function, place });
    });
}

impl Resolve for Symbols {
    /// The innermost function of the program's own.
    fn resolve(&self, site: &Site, out: &mut dyn fmt::Write) -> fmt::Result {
        let (mut own, mut first) = (None, None);
        for &address in site.frames() {
            frames_at(address, |frame| {
                if own.is_none() && !frame.is_on_the_way() && frame.place.is_some() {
                    own = Some(frame);
                } else if first.is_none() {
                    first = Some(frame);
                }
            });
            if own.is_some() {
                break;
            }
        }
        match own.or(first) {
            Some(frame) => write!(out, "{frame}"),
            None => out.write_str("unknown"),
        }
    }

    fn frame(&self, address: usize, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut outcome = Ok(());
        let mut separator = "";
        frames_at(address, |frame| {
            outcome = outcome.and_then(|()| write!(out, "{separator}{frame}"));
            separator = " < ";
        });
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_on_the_way(function: &str) -> bool {
        Frame { function: function.to_string(), place: None }.is_on_the_way()
    }

    #[test]
    fn methods_of_built_in_types_are_on_the_way() {
        for function in [
            "<*mut u8>::write_volatile",
            "<*const program::Order>::read",
            "<[program::Order]>::sort_by::<program::Order>",
            "<u64>::pow",
            "<str>::to_owned",
            "core::ptr::mut_ptr::<impl *mut T>::write_volatile",
        ] {
            assert!(is_on_the_way(function), "{function}");
        }
        for function in [
            "<program::Order>::send",
            "<program::Book<u8>>::send",
            "<u64 as program::Price>::round",
            "<[program::Order] as program::Batch>::send",
            "<<program::Book as program::Side>::Level>::send",
            "program::Order::send",
        ] {
            assert!(!is_on_the_way(function), "{function}");
        }
    }
}
