//! The sums of the fast path against wide arithmetic.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::fast_path_sums(data));
