//! Collections, and the roots that they begin with.

pub(crate) mod collection;
pub(crate) mod roots;
