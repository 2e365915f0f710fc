//! A pool of class MVFF against a naive account of its objects.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::mvff_ops(data));
