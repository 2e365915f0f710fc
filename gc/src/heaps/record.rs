//! What a heap keeps of a mutator.

use tripoint_core::internal::RegistryNode;

use crate::heaps::attendance::Attendance;

/// A mutator in the memory of its heap's arena: there as long as the heap, and used again.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Record {
    pub(crate) node: RegistryNode,
    pub(crate) attendance: Attendance,
    pub(crate) number: u32,
}
