//! A pool of class MFS and its caches against the naive oracle.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::mfs_ops(data));
