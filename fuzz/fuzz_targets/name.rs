//! libFuzzer's way into `seqtide_fuzz::name`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| seqtide_fuzz::name::check(input));
