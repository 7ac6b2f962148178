//! libFuzzer's way into `seqtide_fuzz::query`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| seqtide_fuzz::query::check(input));
