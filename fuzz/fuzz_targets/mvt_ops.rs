//! A pool of class MVT against the naive oracle.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::mvt_ops(data));
