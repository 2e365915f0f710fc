//! A pool of class TLSF against the naive oracle.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::tlsf_ops(data));
