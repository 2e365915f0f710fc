//! All cases, by groups.
//!
//! | file | |
//! |---|---|
//! | `rust_heap` | collections and strings |
//! | `c_library` | C's `malloc`, and functions that call it |
//! | `system_calls` | calls about memory |
//! | `pages` | memory that has no page yet, or no more |
//! | `arenas` | more than a frozen arena has |
//! | `waits` | locks, sleeps, files |
//! | `foreign` | C++ |
//! | `futures` | asynchronous code |
//! | `processes` | threads, processes, panics, handlers, libraries |
//! | `controls` | nothing wrong |

mod arenas;
mod c_library;
pub(crate) mod controls;
mod foreign;
mod futures;
mod pages;
mod processes;
mod rust_heap;
mod system_calls;
mod waits;

use crate::case::Group;

pub(crate) const GROUPS: &[Group] = &[
    rust_heap::GROUP,
    c_library::GROUP,
    system_calls::GROUP,
    pages::GROUP,
    arenas::GROUP,
    waits::GROUP,
    foreign::GROUP,
    futures::GROUP,
    processes::GROUP,
    controls::GROUP,
];
