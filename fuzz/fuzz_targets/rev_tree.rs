//! libFuzzer's way into `seqtide_fuzz::rev_tree`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| seqtide_fuzz::rev_tree::check(input));
