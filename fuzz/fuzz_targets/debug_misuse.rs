//! Misuse of a pool under a debug pool: all of it is found, and nothing else is
//! reported.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::debug_misuse(data));
