//! Only the owner of the cache opens a limit again, after it has returned everything.

use tripoint_pools::{CacheClasses, CacheDescriptor};

fn main() {
    let descriptor = CacheDescriptor::new(CacheClasses::linear(512, 8).unwrap());
    descriptor.trip();
    let _ = descriptor.trips();
}
