//! libFuzzer's way into `seqtide_fuzz::document`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| seqtide_fuzz::document::check(input));
