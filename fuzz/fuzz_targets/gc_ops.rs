//! Automatic pools against a shadow graph.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::gc_ops(data));
