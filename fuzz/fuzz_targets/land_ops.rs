//! A land of free blocks against a row of granules.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::land_ops(data));
