//! What the fuzz targets do with their bytes.
//!
//! Apart from the targets themselves, so that `tests/bounded.rs` can run the same
//! on a stable compiler without a fuzzer.

mod account;
mod ap_ops;
mod choices;
mod fast_path_sums;
mod mvff_ops;
mod nursery;

pub use ap_ops::ap_ops;
pub use fast_path_sums::fast_path_sums;
pub use mvff_ops::mvff_ops;
