use super::*;
use crate::model::rev::{RevHash, RevId};
use crate::model::rev_path::RevPath;

const HEX: &str = "0123456789abcdef0123456789ABCDEF";

fn body(text: &str) -> String {
    scan(text).unwrap().body.as_str().to_owned()
}

fn refused(text: &str) -> String {
    scan(text).unwrap_err().to_string()
}

#[test]
fn special_members_are_taken_out_of_the_body() {
    let text = format!(
        r#" {{ "a" : 1 , "_id" : "x\u0020é" , "_rev" : "2-{HEX}" , "b" : [ 2 ] , "_deleted" : true,
        "_revisions": {{ "start": 2, "ids": ["{HEX}", "a"] }}, "_attachments": {{ "f": {{ "stub" : true }} }} }} "#
    );
    let document = scan(&text).unwrap();
    assert_eq!(document.id.as_deref(), Some("x é"));
    let hash = RevHash::parse(HEX).unwrap();
    assert_eq!(document.rev, Some(RevId::new(2, hash.clone())));
    assert!(document.deleted);
    assert_eq!(document.revisions, RevPath::new(2, vec![hash, RevHash::stored_text("a")]));
    assert_eq!(&document.attachments.unwrap().as_bytes()[..], br#"{"f":{"stub":true}}"#);
    assert_eq!(document.body.as_str(), r#"{"a":1,"b":[2]}"#);
    assert_eq!(document.body.members(), br#""a":1,"b":[2]"#);
}

#[test]
fn a_document_without_special_members_is_all_body() {
    let document = scan(r#"{"a":{"_id":1,"_x":2},"b_":",}"}"#).unwrap();
    assert_eq!(document.body.as_str(), r#"{"a":{"_id":1,"_x":2},"b_":",}"}"#);
    assert_eq!((document.id, document.rev, document.deleted), (None, None, false));
    assert_eq!((document.revisions, document.attachments), (None, None));
}

#[test]
fn the_body_is_whole_wherever_special_members_stood() {
    for text in [
        r#"{"_id":"i","a":",","b":"}"}"#,
        r#"{"a":",","_id":"i","b":"}"}"#,
        r#"{"a":",","b":"}","_id":"i"}"#,
        r#"{"_deleted":false,"a":",","_rev":"1-a","b":"}","_id":"i","_conflicts":[]}"#,
    ] {
        assert_eq!(body(text), r#"{"a":",","b":"}"}"#, "{text}");
    }
    assert_eq!(body(r#"{"_id":"i"}"#), "{}");
    assert!(scan(r#"{ "_id" : "i" , "_rev" : "1-a" }"#).unwrap().body.is_empty());
    assert_eq!(scan("{}").unwrap().body, Body::empty());
}

#[test]
fn of_repeated_special_members_only_the_last_counts() {
    let document =
        scan(r#"{"_id":1,"a":1,"_id":"x","\u005frev":"bad","a":2,"_rev":"1-a","_deleted":0,"_deleted":false}"#);
    let document = document.unwrap();
    assert_eq!(document.id.as_deref(), Some("x"));
    assert_eq!(document.rev.unwrap().to_string(), "1-a");
    assert_eq!(document.body.as_str(), r#"{"a":2}"#);
    assert_eq!(refused(r#"{"_id":"x","_id":1}"#), "Document id must be a string");
}

#[test]
fn the_newest_of_the_revisions_counts_whatever_rev_says() {
    for text in [
        r#"{"_revisions":{"start":2,"ids":["b","a"]}}"#,
        r#"{"_rev":"9-z","_revisions":{"start":2,"ids":["b","a"]}}"#,
        r#"{"_revisions":{"start":2,"ids":["b","a"]},"_rev":"9-z"}"#,
    ] {
        assert_eq!(scan(text).unwrap().rev.map(|rev| rev.to_string()).as_deref(), Some("2-b"), "{text}");
    }
}

#[test]
fn names_with_escapes_are_special_too() {
    let document = scan(r#"{"\u005fid":"x","\u005f\u0064eleted":true}"#).unwrap();
    assert_eq!((document.id.as_deref(), document.deleted), (Some("x"), true));
    assert_eq!(refused(r#"{"\u005fx":1}"#), "Bad special document member: _x");
}

#[test]
fn values_of_special_members_are_compacted_at_depth() {
    let document =
        scan(r#"{"_attachments":{"f":{"a":1,"a":2},"g":{},"f":{"b":1,"b":[ 3 ]}},"x":{"y":1,"y":2}}"#).unwrap();
    assert_eq!(&document.attachments.unwrap().as_bytes()[..], br#"{"g":{},"f":{"b":[3]}}"#);
    assert_eq!(document.body.as_str(), r#"{"x":{"y":2}}"#);
    let document = scan(r#"{"_revisions":{"start":"x","ids":[],"ids":["b"],"\u0073tart":7,"more":[[]]}}"#).unwrap();
    assert_eq!(document.revisions, RevPath::new(7, vec![RevHash::stored_text("b")]));
}

#[test]
fn what_a_read_adds_is_dropped() {
    let text = r#"{"_revs_info":[{"rev":"1-a"}],"_local_seq":3,"_conflicts":null,"_deleted_conflicts":"x","a":1}"#;
    assert_eq!(body(text), r#"{"a":1}"#);
}

#[test]
fn some_special_members_stay_in_the_body() {
    let text = concat!(
        r#"{"_replication_id":"i","_replication_state":"s","_replication_state_time":1,"#,
        r#""_replication_state_reason":null,"_replication_stats":{"a":1},"_access":["x"],"_removed":true}"#
    );
    assert_eq!(body(text), text);
}

#[test]
fn an_empty_attachments_object_names_none() {
    assert_eq!(scan(r#"{"_attachments": { }}"#).unwrap().attachments, None);
}

#[test]
fn only_objects_are_documents() {
    for text in ["[1,2]", "[{\"a\":1}]", "null", "1", "\"{}\""] {
        assert_eq!(refused(text), "Document must be a JSON object", "{text}");
    }
    for text in ["", "[1,2", "{\"a\":", "{} {}", "{\"a\":\"\\udfff\"}", "{\"a\":1e999}", "{\"a\":\"\t\"}"] {
        assert_eq!(refused(text), "invalid UTF-8 JSON", "{text}");
    }
}

#[test]
fn bad_special_members_are_named() {
    for (name, value) in [
        ("_x", "1"),
        ("_", "1"),
        ("_ID", "\"x\""),
        ("_deleted", "1"),
        ("_deleted", "\"true\""),
        ("_deleted", "null"),
        ("_attachments", "[]"),
        ("_attachments", "null"),
        ("_revisions", "[]"),
        ("_revisions", "\"{\""),
    ] {
        let text = format!("{{\"a\":1,\"{name}\":{value}}}");
        assert_eq!(refused(&text), format!("Bad special document member: {name}"), "{text}");
    }
}

#[test]
fn bad_ids_and_revs_are_refused() {
    for value in ["1", "null", "true", "{}", "[\"x\"]"] {
        assert_eq!(refused(&format!("{{\"_id\":{value}}}")), "Document id must be a string", "{value}");
    }
    assert_eq!(scan(r#"{"_id":""}"#).unwrap().id.as_deref(), Some(""));
    let not_hex = format!("\"1-{}\"", "z".repeat(32));
    for value in ["1", "null", "\"\"", "\"abc\"", "\"-a\"", "[\"1-a\"]", &not_hex] {
        assert_eq!(refused(&format!("{{\"_rev\":{value}}}")), "Invalid rev format", "{value}");
    }
    let long = format!("{{\"_rev\":\"1-{}\"}}", "a".repeat(129));
    assert!(refused(&long).starts_with("Invalid rev format: "));
}

#[test]
fn bad_revisions_are_refused() {
    let not_hex = format!(r#"{{"start":1,"ids":["{}"]}}"#, "z".repeat(32));
    let too_long = format!(r#"{{"start":1,"ids":["{}"]}}"#, "z".repeat(129));
    let out_of_range = "_revisions.start must be at least the number of ids, and below 2^64";
    for (value, reason) in [
        ("{}", "_revisions.start isn't an integer."),
        (r#"{"start":"1","ids":["a"]}"#, "_revisions.start isn't an integer."),
        (r#"{"start":1.0,"ids":["a"]}"#, "_revisions.start isn't an integer."),
        (r#"{"start":null,"ids":["a"]}"#, "_revisions.start isn't an integer."),
        (r#"{"start":1}"#, "_revisions.ids isn't a array."),
        (r#"{"start":1,"ids":"a"}"#, "_revisions.ids isn't a array."),
        (r#"{"start":1,"ids":null}"#, "_revisions.ids isn't a array."),
        (r#"{"start":1,"ids":[1]}"#, "RevId isn't a string"),
        (r#"{"start":2,"ids":["a",null]}"#, "RevId isn't a string"),
        (&not_hex, "RevId isn't a valid hexadecimal"),
        (&too_long, "RevId is longer than 128 bytes"),
        (r#"{"start":1,"ids":[]}"#, "_revisions.ids is empty"),
        (r#"{"start":1,"ids":["b","a"]}"#, out_of_range),
        (r#"{"start":-1,"ids":["a"]}"#, out_of_range),
        (r#"{"start":18446744073709551616,"ids":["a"]}"#, out_of_range),
    ] {
        assert_eq!(refused(&format!("{{\"_revisions\":{value}}}")), reason, "{value}");
    }
}

#[test]
fn revisions_are_accepted_up_to_the_limit() {
    let limits = ScanLimits { revisions_max: 2, ..ScanLimits::default() };
    let scan =
        |ids: &str| scan_document(format!(r#"{{"_revisions":{{"start":9,"ids":{ids}}},"a":1}}"#).as_bytes(), &limits);
    for (ids, first) in [(r#"["a"]"#, "9-a"), (r#"["\"]",""]"#, "9-\"]"), (r#"[ "" , "a,b" ]"#, "9-")] {
        assert_eq!(scan(ids).unwrap().revisions.unwrap().rev().to_string(), first, "{ids}");
    }
    let refused = scan(r#"["","",""]"#).unwrap_err().to_string();
    assert_eq!(refused, "the document has too many revisions: at most 2 are accepted");
    assert_eq!(scan(r#"["a",["b"],"c"]"#), Err(DocumentError::RevisionsIdNotString), "whatever comes first");
}

#[test]
fn many_members_and_cuts_leave_special_members_intact() {
    let many: String = (0..100_000).map(|n| format!(" \"m{}\" : {{\"a\":1,\"a\":{n}}},", n % 50_000)).collect();
    let document = scan(&format!("{{{many}\"_id\":\"x\",{many}\"_deleted\":true}}")).unwrap();
    assert_eq!((document.id.as_deref(), document.deleted), (Some("x"), true));
    let expected: Vec<_> = (50_000..100_000).map(|n| format!("\"m{}\":{{\"a\":{n}}}", n - 50_000)).collect();
    assert!(document.body.members() == expected.join(",").as_bytes());
}
