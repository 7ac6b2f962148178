//! Where the index of terms has bounds, it finds too much and never too little.

use super::*;

fn is_woken(wake: &mut Wake, version: u64) -> bool {
    wake.nothing_up_to(Sequence::new(0, version)) != Sequence::new(0, version)
}

fn joined(json: &str) -> (Matcher, Wake) {
    let matcher = Matcher::new(Sequence::ZERO);
    let wake = matcher.join(&selector(json), false);
    (matcher, wake)
}

#[test]
fn a_term_of_many_values_finds_each_of_them() {
    for values in [10, 1_000, 1_001] {
        let list: Vec<String> = (0..values).map(|n| n.to_string()).collect();
        let (matcher, mut wake) = joined(&format!(r#"{{"n":{{"$in":[{}]}}}}"#, list.join(",")));
        for (version, n, woken) in [(1, 0, true), (2, values - 1, true), (3, values, false)] {
            commit_leaves(&matcher, version, "d", &format!(r#"{{"n":{n}}}"#), &[("1-a", false)]);
            assert_eq!(is_woken(&mut wake, version), woken, "{n} of {values}");
        }
    }
}

#[test]
fn a_list_of_many_values_in_a_document_is_found_by_each_of_them() {
    let (matcher, mut wake) = joined(r#"{"tags":{"$in":["t"]}}"#);
    for (version, others) in [(1, 1), (2, 999), (3, 1_000), (4, 5_000)] {
        let others: Vec<String> = (0..others).map(|n| n.to_string()).collect();
        let body = format!(r#"{{"tags":[{},"t"]}}"#, others.join(","));
        commit_leaves(&matcher, version, "d", &body, &[("1-a", false)]);
        assert!(is_woken(&mut wake, version), "{} others", others.len());
    }
    commit_leaves(&matcher, 5, "d", r#"{"tags":["u"]}"#, &[("1-a", false)]);
    assert!(!is_woken(&mut wake, 5));
}

#[test]
fn every_field_is_found_however_many_there_are() {
    let matcher = Matcher::new(Sequence::ZERO);
    let mut wakes: Vec<Wake> = (0..100).map(|n| matcher.join(&selector(&format!(r#"{{"f{n}":1}}"#)), false)).collect();
    for n in 0..100 {
        let version = n as u64 + 1;
        commit_leaves(&matcher, version, "d", &format!(r#"{{"f{n}":1}}"#), &[("1-a", false)]);
        let woken: Vec<usize> = (0..100).filter(|at| is_woken(&mut wakes[*at], version)).collect();
        assert_eq!(woken, [n]);
    }
}

#[test]
fn nothing_matches_an_empty_list_of_values() {
    let (matcher, mut wake) = joined(r#"{"n":{"$in":[]}}"#);
    commit_leaves(&matcher, 1, "d", r#"{"n":1}"#, &[("1-a", false)]);
    assert!(!is_woken(&mut wake, 1));
}
