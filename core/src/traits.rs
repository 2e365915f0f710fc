//! The fifth storey: the traits where layers meet, and what passes between them.
//!
//! A pool asks an [`Arena`](crate::Arena) for tracts, a buffer asks a
//! [`PoolClass`](crate::PoolClass) for a [`Fill`](crate::Fill).

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
