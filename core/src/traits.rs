//! The fifth storey: the traits where layers meet, and what passes between them.
//!
//! A pool asks an [`Arena`](crate::Arena) for tracts, a buffer asks a
//! [`PoolClass`](crate::PoolClass) for a [`Fill`](crate::Fill).
//!
//! | file | |
//! |---|---|
//! | `allocation_sampler` | the trait that samples allocations of a global allocator |
//! | `arena` | what an arena promises to the pools that live in it |
//! | `arena_ref` | a borrowed arena is an arena |
//! | `barrier` | pairs of memory barriers: a light one for commit, a heavy one for flip |
//! | `block` | a block of memory: a range that keeps its provenance |
//! | `buffer_class` | buffer classes: what a pool keeps with each of its buffers |
//! | `control` | what a client does when its fast path gives way |
//! | `control_pair` | two controls at one allocation point |
//! | `exhausted` | a refusal in full: which pool refused, what was asked for, and what is left |
//! | `fill` | the memory that a pool hands to a buffer |
//! | `frame_pool` | what a pool class promises to allocation points that use frames |
//! | `gives_way` | pool classes with a collector |
//! | `keeps_in_buffer` | what a pool class keeps in its buffers |
//! | `magazine` | objects of one layout, on their way between a store and its caller |
//! | `manual_class` | the short way to write a manual pool class: only what is particular to it |
//! | `manual_pool` | what a manual pool promises in addition: its objects are freed one by one |
//! | `own_buffer` | the token of a buffer's owner |
//! | `parking` | how a thread waits for a word to change |
//! | `pool` | what a pool class promises to the buffers and clients of its pools |
//! | `pool_header` | what every pool has, whatever its class: an arena, a number, buffers, tracts |
//! | `store` | where one object gets its memory from, and returns it to |
//! | `write_watch` | which memory was written, as the platform knows it |

pub(crate) mod allocation_sampler;
pub(crate) mod arena;
pub(crate) mod arena_ref;
pub(crate) mod barrier;
pub(crate) mod block;
pub(crate) mod buffer_class;
pub(crate) mod control;
pub(crate) mod control_pair;
pub(crate) mod exhausted;
pub(crate) mod fill;
pub(crate) mod frame_pool;
pub(crate) mod gives_way;
pub(crate) mod keeps_in_buffer;
pub(crate) mod magazine;
pub(crate) mod manual_class;
pub(crate) mod manual_pool;
pub(crate) mod own_buffer;
pub(crate) mod parking;
pub(crate) mod pool;
pub(crate) mod pool_header;
pub(crate) mod store;
pub(crate) mod write_watch;
