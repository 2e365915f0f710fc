//! An arena over a platform that refuses calls.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::vm_arena_ops(data));
