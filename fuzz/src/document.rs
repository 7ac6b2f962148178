//! Documents as clients hand them in.

use seqtide_storage::json::{Body, Document, ScanLimits, compact_value, revision_hash, scan_document};
use serde_json::Value;

/// A text is accepted exactly if it is JSON; what is accepted is kept as it was meant, and hashed so however it is
/// spelled.
///
/// # Panics
/// When that does not hold.
pub fn check(text: &[u8]) {
    let limits = ScanLimits::default();
    let compact = compact_value(text, &limits);
    assert_serde_json_agrees(text, compact.as_deref().ok());
    if let Ok(compact) = &compact {
        assert_eq!(compact_value(compact, &limits).as_ref(), Ok(compact), "compacting twice");
    }
    let Ok(document) = scan_document(text, &limits) else {
        return;
    };
    assert!(compact.is_ok(), "a document is JSON");
    let body = document.body;
    let without_special_members = Document::new(None, false, body.clone());
    assert_eq!(scan_document(body.as_bytes(), &limits), Ok(without_special_members), "a body is a document");
    assert_hash_ignores_spelling(&body, &limits);
}

/// Both refuse, or both accept and mean the same. Apart from that we take integers of any size and deeper nesting.
fn assert_serde_json_agrees(text: &[u8], compact: Option<&[u8]>) {
    match (compact, serde_json::from_slice::<Value>(text)) {
        (None, Err(_)) => {}
        (None, Ok(value)) => panic!("refused, though it is {value}"),
        (Some(compact), Ok(value)) => {
            assert_eq!(serde_json::from_slice::<Value>(compact).ok(), Some(value), "compacting keeps the value");
        }
        (Some(_), Err(error)) => {
            let reason = error.to_string();
            let ours_alone = reason.starts_with("number out of range") || reason.starts_with("recursion limit");
            assert!(ours_alone, "accepted, though {reason}");
        }
    }
}

fn assert_hash_ignores_spelling(body: &Body, limits: &ScanLimits) {
    let respelled = scan_document(respelled(body.as_str()).as_bytes(), limits).map(|document| document.body);
    let respelled = respelled.unwrap_or_else(|error| panic!("{error}, in another spelling of {body:?}"));
    assert_eq!(revision_hash(&respelled, None, true), revision_hash(body, None, true), "{respelled:?} of {body:?}");
}

/// The same JSON with space around whatever stands outside strings, and escapes for the characters within them.
fn respelled(compact: &str) -> String {
    let mut out = String::new();
    let (mut in_string, mut escapes_left) = (false, 0);
    for character in compact.chars() {
        match character {
            _ if escapes_left > 0 => {
                escapes_left = if character == 'u' && escapes_left == 1 { 4 } else { escapes_left - 1 };
                out.push(character);
            }
            '"' => {
                in_string = !in_string;
                out.push('"');
            }
            '\\' => {
                escapes_left = 1;
                out.push('\\');
            }
            _ if in_string => {
                let mut units = [0; 2];
                character.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
            }
            '{' | '}' | '[' | ']' | ',' | ':' => out.extend(['\n', character, ' ']),
            _ => out.push(character),
        }
    }
    out
}
