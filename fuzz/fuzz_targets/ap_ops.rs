//! Allocation points, trips, flips and stops against the naive oracle.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::ap_ops(data));
