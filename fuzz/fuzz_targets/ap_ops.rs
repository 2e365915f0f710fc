//! An allocation point, trips, flips and stops against a naive account.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::ap_ops(data));
