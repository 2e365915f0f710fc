//! A trip is undone by the owner of the cache, who gives all back first, and by nobody
//! else.

use tripoint_pools::{CacheClasses, CacheDescriptor};

fn main() {
    let descriptor = CacheDescriptor::new(CacheClasses::linear(512, 8).unwrap());
    descriptor.trip();
    descriptor.publish_limit(0);
}
