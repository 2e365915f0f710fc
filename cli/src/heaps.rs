//! The objects of another process's heaps, and what keeps each: read from its memory, without calling its code
//! (design/inspection.md).
//!
//! | file, from the ground up | |
//! |---|---|
//! | `unsafe_ptrace` | the calls of the system that stop a thread |
//! | `stopped_process` | memory of a process that is stopped while it is read |
//! | `core_memory` | memory of a core file, and of the files that it was mapped from |
//! | `cached` | memory that is read in blocks |
//! | `faults` | what could not be read |
//! | `layout` | words that the program has for this, by their names |
//! | `types` | types of typed objects: sizes, names, and where references lie |
//! | `segments` | segments, and the bits that say where objects begin |
//! | `pools` | the pools of a heap, with their segments and what buffers hold |
//! | `heap` | a heap with its objects, and where references lead |
//! | `objects` | how objects are found in segments |
//! | `reader` | finds all heaps of a process, and reads them |
//! | `roots` | the roots of a heap |
//! | `paths` | the shortest path from a root to an object |

mod cached;
mod core_memory;
mod faults;
mod heap;
mod layout;
mod objects;
mod paths;
mod pools;
mod reader;
mod roots;
mod segments;
#[cfg(target_os = "linux")]
mod stopped_process;
mod types;
#[cfg(target_os = "linux")]
mod unsafe_ptrace;

pub(crate) use self::cached::Cached;
pub(crate) use self::core_memory::CoreMemory;
pub(crate) use self::heap::Heap;
pub(crate) use self::paths::{Goal, Path, Step};
pub(crate) use self::reader::Heaps;
pub(crate) use self::segments::Segment;
#[cfg(target_os = "linux")]
pub(crate) use self::stopped_process::StoppedProcess;
