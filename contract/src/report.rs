//! What cold threads learn: the report, the sentinel's warnings, and the micro gate.
//!
//! | file | |
//! |---|---|
//! | `outcome` | how a session went |
//! | `findings` | the report itself |
//! | `sizing` | what would have sufficed at Init |
//! | `group` | records that belong together |
//! | `resolve` | places that become something to read |
//! | `frame` | which frame of a site is the program's own |
//! | `symbols` | names and lines for code addresses |
//! | `places` | events by the places where they happened |
//! | `text`, `json` | the two forms of a report |
//! | `sentinel` | a look at the whole process from time to time |
//! | `gate` | a test that a piece of code is steady |
//! | `scope` | what happened in a steady scope |

pub(crate) mod findings;
#[cfg(feature = "symbols")]
pub(crate) mod frame;
#[cfg(feature = "std")]
pub(crate) mod gate;
mod group;
mod json;
pub(crate) mod outcome;
#[cfg(feature = "std")]
mod places;
pub(crate) mod resolve;
#[cfg(feature = "std")]
mod scope;
#[cfg(tripoint_kernel)]
pub(crate) mod sentinel;
pub(crate) mod sizing;
#[cfg(feature = "symbols")]
pub(crate) mod symbols;
mod text;
