//! A pool of class MVFF against the naive oracle.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::mvff_ops(data));
