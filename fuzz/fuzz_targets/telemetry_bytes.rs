//! The reader of telemetry files on any bytes, which change while they are read.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::telemetry_bytes(data));
