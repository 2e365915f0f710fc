//! Caches by size classes against the naive oracle.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::cache_ops(data));
