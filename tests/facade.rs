//! No name of the facade hides one of Rust's: a program may import all of them.

#[allow(unused_imports)]
use tripoint::*;

#[test]
fn taking_every_name_leaves_core_and_std_as_they_are() {
    assert_eq!(core::mem::size_of::<Addr>(), size_of::<usize>());
}
