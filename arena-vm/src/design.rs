#![doc = include_str!("../design/README.md")]

#[doc = include_str!("../design/arena-vm.md")]
pub mod arena_vm {}
