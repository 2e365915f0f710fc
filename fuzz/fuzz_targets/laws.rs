//! The laws of sums, with numbers of the fuzzer's choice.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::laws(data));
