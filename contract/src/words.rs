//! The ground floor: words and values that everything else is made of.
//!
//! | file | |
//! |---|---|
//! | `atomics` | constant construction of atomics |
//! | `class` | what can go wrong |
//! | `detector_set` | which detectors there are |
//! | `lifecycle` | the phases of a process |
//! | `name` | the name of a thread |
//! | `record` | the record of an event |

pub(crate) mod atomics;
pub(crate) mod class;
pub(crate) mod detector_set;
pub(crate) mod lifecycle;
pub(crate) mod name;
pub(crate) mod record;
