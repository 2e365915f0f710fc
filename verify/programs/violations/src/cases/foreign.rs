//! C++, whose operators call C's `malloc`.

use crate::case::{Act, C_HEAP, Case, Facts, Group, LIBRARY};

const HEAP: Facts = C_HEAP | LIBRARY;

/// The functions of `src/foreign/cases.cpp`.
#[cfg(foreign_code)]
mod code {
    use core::ffi::c_int;

    unsafe extern "C" {
        pub(super) safe fn foreign_new_and_delete();
        pub(super) safe fn foreign_nothrow();
        pub(super) safe fn foreign_vector();
        pub(super) safe fn foreign_string();
        pub(super) safe fn foreign_map();
        pub(super) safe fn foreign_shared();
        pub(super) safe fn foreign_function();
        pub(super) safe fn foreign_exception() -> c_int;
    }
}

/// Does it, if there was a compiler for it.
macro_rules! of_foreign {
    ($function:ident) => {
        || -> Act {
            #[cfg(foreign_code)]
            return crate::case::once(|| crate::case::discard(code::$function()));
            #[cfg(not(foreign_code))]
            crate::case::cannot_run("there was no compiler for C++")
        }
    };
}

pub(crate) const GROUP: Group = Group {
    name: "allocation in C++",
    cases: &[
        Case::new("new and delete", HEAP, of_foreign!(foreign_new_and_delete)),
        Case::new("new that does not throw", HEAP, of_foreign!(foreign_nothrow)),
        Case::new("a vector of C++ grows", HEAP, of_foreign!(foreign_vector)),
        Case::new("a long string of C++", HEAP, of_foreign!(foreign_string)),
        Case::new("a map of C++", HEAP, of_foreign!(foreign_map)),
        Case::new("make_shared", HEAP, of_foreign!(foreign_shared)),
        Case::new("a function object that does not fit", HEAP, of_foreign!(foreign_function)),
        Case::new("an exception is thrown and caught", HEAP, of_foreign!(foreign_exception)),
    ],
};
