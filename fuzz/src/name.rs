//! Ids of documents, names of databases, tokens of feeds.

use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::doc_id::{DOC_ID_MAX_BYTES, DocId, LocalId};
use seqtide_storage::model::sequence::{SeqFormat, Sequence};

/// What a name accepts is within its bounds and is written as it was read.
///
/// # Panics
/// When that does not hold.
pub fn check(input: &[u8]) {
    if let Ok(bytes) = input.try_into() {
        check_order(Sequence::from_bytes(bytes));
    }
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    check_document_ids(text);
    check_database_name(text);
    if let Some(seq) = Sequence::parse(text) {
        check_order(seq);
        assert_eq!(Sequence::parse(&SeqFormat::Versionstamp.plain(seq).to_string()), Some(seq));
        let integer = SeqFormat::Integer.plain(seq).to_string();
        let read = Sequence::parse(&integer).map(|read| SeqFormat::Integer.plain(read).to_string());
        assert_eq!(read, Some(integer), "of {text}");
    }
}

fn check_document_ids(text: &str) {
    let (document, local) = (DocId::parse(text), LocalId::parse(text));
    assert!(document.is_err() || local.is_none(), "{text:?} is one or the other");
    if let Ok(id) = document {
        assert_eq!(id.as_str(), text);
        assert!((1..=DOC_ID_MAX_BYTES).contains(&text.len()), "{text:?}");
    }
    if let Some(Ok(id)) = local {
        assert_eq!(id.to_string(), text);
        assert!(!id.name().is_empty() && text.len() <= DOC_ID_MAX_BYTES, "{text:?}");
    }
}

fn check_database_name(text: &str) {
    if let Ok(name) = DbName::parse(text) {
        let folder = name.folder();
        assert_eq!(name.as_str(), text);
        assert_eq!(DbName::from_folder(&folder).as_ref(), Some(&name), "by its folder {folder}");
        assert!(folder.len() <= 255 && !folder.contains(['/', '.']), "{folder}");
    }
    if let Some(name) = DbName::from_folder(text) {
        assert_eq!(name.folder(), text);
    }
}

fn check_order(seq: Sequence) {
    assert_eq!(Sequence::from_bytes(&seq.to_bytes()), seq);
    let before = seq.before();
    assert_eq!(before < seq, seq != Sequence::ZERO, "before {seq:?}");
    assert_eq!(before.to_bytes() < seq.to_bytes(), before < seq, "bytes of {seq:?}");
}
