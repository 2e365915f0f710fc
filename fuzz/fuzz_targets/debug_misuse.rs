//! Misuse of a pool in a debug pool: found, and nothing else.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::debug_misuse(data));
