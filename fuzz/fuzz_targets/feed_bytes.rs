//! The order book's parser on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::feed_bytes(data));
