//! Heaps: what belongs to one, how one thread stops all its mutators, and how these wait.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `frozen_range`, `frozen_table` | where frozen segments are |
//! | `member` | what a collection asks of each pool |
//! | `listing` | which heaps there are, for readers outside of the process |
//! | `own` | which pool of the heap a reference leads to |
//! | `stop_word` | the heap's two words: whether a stop is wanted, and how many mutators arrived |
//! | `attendance` | a mutator's word, and how it gives way and comes back |
//! | `record` | a mutator in the memory of the arena |
//! | `this_thread` | which thread this is |
//! | `postponed` | why a heap was not stopped |
//! | `heap` | the mutators that give way to each other, and the stop |
//! | `stopped` | the time in which a heap is stopped, as a value |
//! | `mutator` | a thread's registration with a heap |
//! | `mutator_buffer` | how an allocation point gives way: the buffer class that knows its mutator |

pub(crate) mod attendance;
pub(crate) mod frozen_range;
pub(crate) mod frozen_table;
pub(crate) mod heap;
pub(crate) mod listing;
pub(crate) mod member;
pub(crate) mod mutator;
pub(crate) mod mutator_buffer;
pub(crate) mod own;
pub(crate) mod postponed;
pub(crate) mod record;
pub(crate) mod stop_word;
pub(crate) mod stopped;
pub(crate) mod this_thread;
