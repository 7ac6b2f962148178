use super::*;

/// The key is the first byte after the field's name and a colon.
#[derive(Debug)]
pub(crate) struct FirstByte;

impl FeedKeys for FirstByte {
    fn version(&self) -> u64 {
        1
    }

    fn reader(&self, fields: &[&str]) -> ReadKeys {
        let names: Vec<String> = fields.iter().map(|field| format!("\"{field}\":")).collect();
        Box::new(move |_, _, body| {
            let after = |name: &String| body.as_str().split_once(name.as_str()).map(|(_, value)| value.as_bytes()[0]);
            names.iter().map(|name| FieldKeys::These(after(name).into_iter().map(u64::from).collect())).collect()
        })
    }
}

fn paths(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

fn seq(version: u64) -> Sequence {
    Sequence::new(0, version)
}

/// Number of each field, and whether it is ready.
fn fields(index: &FeedIndex) -> Vec<(&str, u32, bool)> {
    index.fields.iter().map(|field| (field.path.as_str(), field.number, field.ready)).collect()
}

fn finished(mut index: FeedIndex) -> FeedIndex {
    index.building = None;
    index.fields.iter_mut().for_each(|field| field.ready = true);
    index
}

#[test]
fn fields_in_common_stay_and_no_number_is_given_twice() {
    let first = FeedIndex::empty(1).redefined(&paths(&["a", "b"]), seq(9)).unwrap();
    assert_eq!(fields(&first), [("a", 0, false), ("b", 1, false)]);
    assert_eq!((first.building, first.garbage), (Some(Building { done: Sequence::ZERO, until: seq(9) }), false));
    let second = finished(first).redefined(&paths(&["c", "b"]), seq(12)).unwrap();
    assert_eq!(fields(&second), [("c", 2, false), ("b", 1, true)]);
    assert_eq!((second.building.unwrap().until, second.garbage), (seq(12), true));
    // What was begun has rows up to some place, and is begun anew under another number.
    let third = second.redefined(&paths(&["c", "b", "a"]), seq(15)).unwrap();
    assert_eq!(fields(&third), [("c", 3, false), ("b", 1, true), ("a", 4, false)]);
    let none = third.redefined(&[], seq(20)).unwrap();
    assert_eq!((fields(&none), none.building, none.garbage, none.next_number), (vec![], None, true, 5));
}

#[test]
fn the_same_fields_in_another_order_change_nothing() {
    let index = FeedIndex::empty(1).redefined(&paths(&["a", "b"]), seq(9)).unwrap();
    assert_eq!(index.redefined(&paths(&["b", "a"]), seq(10)), None);
    assert_eq!(FeedIndex::empty(1).redefined(&[], seq(10)), None);
}

#[test]
fn other_keys_make_all_fields_anew() {
    let index = finished(FeedIndex::empty(1).redefined(&paths(&["a", "b"]), seq(9)).unwrap());
    let remade = index.remade(2, seq(30));
    assert_eq!((fields(&remade), remade.keys_version), (vec![("a", 2, false), ("b", 3, false)], 2));
    assert!(remade.garbage && remade.building == Some(Building { done: Sequence::ZERO, until: seq(30) }));
}

#[test]
fn rows_are_due_where_documents_were_gone_through_and_where_they_were_written_since() {
    let mut index = FeedIndex::empty(1).redefined(&paths(&["a"]), seq(9)).unwrap();
    index.building = Some(Building { done: seq(4), until: seq(9) });
    let due: Vec<bool> = [1, 4, 5, 9, 10].map(|version| index.is_due(&index.fields[0], seq(version))).into();
    assert_eq!(due, [true, true, false, false, true]);
    let index = finished(index);
    assert!(index.is_due(&index.fields[0], seq(5)));
}

#[test]
fn a_document_s_rows_say_what_cannot_be_told() {
    let index = finished(FeedIndex::empty(1).redefined(&paths(&["a"]), seq(9)).unwrap());
    let indexer = Indexer::new(&index, &FirstByte);
    let id = DocId::stored("x");
    let keys = |leaves, body: Result<Option<&'static [u8]>, StorageError>| {
        let winner = LeafRev { rev: crate::model::rev::RevId::parse("1-x").unwrap(), deleted: false };
        let doc = Indexed { seq: seq(3), id: &id, winner, leaves };
        let body = body.map(|found| found.map(|text| Body::from_stored(bytes::Bytes::from_static(text))));
        let rows = indexer.rows_of(&doc, || body).unwrap();
        assert!(rows.iter().all(|row| (row.field, row.seq) == (0, seq(3))));
        rows.into_iter().map(|row| row.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(1, Ok(Some(b"{\"a\":1}"))), [u64::from(b'1')]);
    assert_eq!(keys(2, Ok(Some(b"{\"a\":1}"))), [FORKED, u64::from(b'1')]);
    assert_eq!(keys(1, Ok(Some(b"{\"b\":1}"))), [0; 0]);
    assert_eq!(keys(1, Ok(None)), [0; 0]);
    let damaged = StorageError::damaged(crate::tables::Table::Bodies, b"k", crate::codec::Malformed("torn"));
    assert_eq!(keys(2, Err(damaged)), [ANY, FORKED]);
}
