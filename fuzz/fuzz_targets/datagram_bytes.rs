//! The framing and the recovery window of the packet path, on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tripoint_fuzz::datagram_bytes(data));
