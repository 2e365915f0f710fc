//! The ground floor: words and values that everything else is made of.

pub(crate) mod atomics;
pub(crate) mod class;
pub(crate) mod detector_set;
pub(crate) mod lifecycle;
pub(crate) mod name;
pub(crate) mod record;
