//! libFuzzer's way into `seqtide_fuzz::revision`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| seqtide_fuzz::revision::check(input));
