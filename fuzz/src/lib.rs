//! What the fuzz targets do with their bytes: operations and the oracle that they
//! share with the conformance suite are in `verify/oracle/`.
//!
//! It is separate from the targets themselves, so that `tests/bounded.rs` can run
//! the same code on a stable compiler without a fuzzer.

mod ap_ops;
mod cache_ops;
#[cfg(not(test))]
mod datagram_bytes;
mod debug_misuse;
mod depot_ops;
mod fast_path_sums;
#[cfg(not(test))]
mod feed_bytes;
#[cfg(not(test))]
mod gc_ops;
mod land_ops;
mod laws;
mod manual;
mod memory;
mod mfs_ops;
mod mvff_ops;
mod mvt_ops;
mod packet_ops;
mod snc_ops;
mod telemetry_bytes;
mod tlsf_ops;
mod vm_arena_ops;

pub use ap_ops::ap_ops;
pub use cache_ops::cache_ops;
#[cfg(not(test))]
pub use datagram_bytes::datagram_bytes;
pub use debug_misuse::debug_misuse;
pub use depot_ops::depot_ops;
pub use fast_path_sums::fast_path_sums;
#[cfg(not(test))]
pub use feed_bytes::feed_bytes;
#[cfg(not(test))]
pub use gc_ops::gc_ops;
pub use land_ops::land_ops;
pub use laws::laws;
pub use mfs_ops::mfs_ops;
pub use mvff_ops::mvff_ops;
pub use mvt_ops::mvt_ops;
pub use packet_ops::packet_ops;
pub use snc_ops::snc_ops;
pub use telemetry_bytes::telemetry_bytes;
pub use tlsf_ops::tlsf_ops;
pub use vm_arena_ops::vm_arena_ops;

// The shadow graph of automatic pools, whose own tests run there.
#[cfg(not(test))]
#[path = "../../gc/tests/common/mod.rs"]
mod common;
#[cfg(not(test))]
#[path = "../../gc/tests/graph/mod.rs"]
#[allow(dead_code)]
mod graph;

// The parser of the order book, included as it is. As a dependency it would have the
// crates under test built with its features, and every target with its global
// allocator. Its files name each other from the root of their crate, and their own
// tests run there.
#[cfg(not(test))]
#[path = "../../apps/order-book/src/decimal.rs"]
#[allow(dead_code)]
mod decimal;
#[cfg(not(test))]
#[path = "../../apps/order-book/src/event.rs"]
mod event;
#[cfg(not(test))]
#[path = "../../apps/order-book/src/json.rs"]
mod json;
#[cfg(not(test))]
#[path = "../../apps/order-book/src/levels.rs"]
#[allow(dead_code)]
mod levels;
#[cfg(not(test))]
#[path = "../../apps/order-book/src/malformed.rs"]
mod malformed;
#[cfg(not(test))]
#[path = "../../apps/order-book/src/record.rs"]
#[allow(dead_code)]
mod record;
#[cfg(not(test))]
#[path = "../../apps/order-book/src/symbol.rs"]
mod symbol;
#[cfg(not(test))]
#[path = "../../apps/order-book/src/wire.rs"]
mod wire;

// The same for the framing and the recovery window of the packet path.
#[cfg(not(test))]
#[path = "../../apps/packet-path/src/belief.rs"]
#[allow(dead_code)]
mod belief;
#[cfg(not(test))]
#[path = "../../apps/packet-path/src/datagram_writer.rs"]
#[allow(dead_code)]
mod datagram_writer;
#[cfg(not(test))]
#[path = "../../apps/packet-path/src/message.rs"]
mod message;
#[cfg(not(test))]
#[path = "../../apps/packet-path/src/moldudp64.rs"]
#[allow(dead_code)]
mod moldudp64;
#[cfg(not(test))]
#[path = "../../apps/packet-path/src/window.rs"]
#[allow(dead_code)]
mod window;
