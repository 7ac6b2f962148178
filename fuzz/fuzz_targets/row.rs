//! libFuzzer's way into `seqtide_fuzz::row`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| seqtide_fuzz::row::check(input));
