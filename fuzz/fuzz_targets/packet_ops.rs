//! The ways of packets against the naive model.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::packet_ops(data));
