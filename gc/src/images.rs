//! Images: a transitive closure of objects as bytes, that processes map and share.
//!
//! | file, from the ground up | |
//! |---|---|
//! | `error` | why an image is refused, and why none was written |
//! | `header` | the first bytes of an image: what is where |
//! | `image` | an image that was checked; relocation |
//! | `plan` | measuring and writing an image of objects of a heap |

pub(crate) mod error;
pub(crate) mod header;
pub(crate) mod image;
pub(crate) mod plan;
