//! What edits would do to a document, found out without writing: so that whoever must see the old document before a new
//! revision is written sees the one it goes on from.

use std::collections::HashMap;

use crate::error::StorageError;
use crate::json::Body;
use crate::leaf_body::LeafBody;
use crate::model::body_place::BodyPlace;
use crate::model::doc_id::DocId;
use crate::model::rev::RevId;
use crate::model::rev_tree::{Growing, RevTree};
use crate::model::sequence::Sequence;
use crate::plan::{Edit, EditKind, Plan, make, plan};
use crate::snapshot::{DocTree, Snapshot};
use crate::write::Outcome;

/// A document's tree, on which edits are tried one after the other. Owns what it needs; see [`Snapshot::rehearse`].
#[derive(Debug)]
pub struct Rehearsal {
    at: Sequence,
    tree: Growing,
    /// Bodies of revisions that were made here, on top of what the tables have.
    made: HashMap<RevId, Body>,
    revs_limit: u32,
}

/// The leaf a new revision goes on from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseLeaf {
    /// The revision.
    pub rev: RevId,
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// Its body.
    pub body: LeafBody,
}

/// What an edit would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rehearsed {
    /// Nothing, and this is what becomes of it.
    Nothing(Outcome),
    /// A new revision: of a new document, or of one whose leaf is named. A document that was deleted and is made again
    /// without naming the tombstone is new.
    ///
    /// Source: CouchDB `couch_db:prep_and_validate_update`, `prep_and_validate_replicated_update`.
    NewRev {
        /// What it goes on from.
        base: Option<BaseLeaf>,
    },
}

impl Snapshot<'_> {
    /// Prepares for trying edits of one document, in this state.
    ///
    /// # Errors
    /// [`StorageError`].
    pub fn rehearse(&self, id: &DocId, edits: &[Edit]) -> Result<Rehearsal, StorageError> {
        let found = self.tree(id)?;
        let DocTree { seq: at, tree } =
            found.unwrap_or_else(|| DocTree { seq: Sequence::ZERO, tree: RevTree::default() });
        let revs_limit = self.revs_limit()?;
        let mut tree = Growing::from(tree);
        // What the first edit makes of the tree may be why the second one needs its history.
        let history_needed = match edits {
            [only] => plan(&mut tree, only, BodyPlace::Unknown, revs_limit).is_err(),
            _ => true,
        };
        if history_needed {
            let whole = self.with_history(id, tree.whole())?;
            tree.set(whole);
        }
        Ok(Rehearsal { at, tree, made: HashMap::new(), revs_limit })
    }
}

impl Rehearsal {
    /// The document's latest sequence; zero when it never was. See [`Expected::At`](crate::Expected::At).
    pub fn at(&self) -> Sequence {
        self.at
    }

    /// Whether the document is as an edit [expects](Edit::expecting) it, if no other was made before.
    pub fn is_as_expected(&self, edit: &Edit) -> bool {
        edit.expects(self.at, &self.tree)
    }

    /// What an edit would do now.
    pub fn try_edit(&mut self, edit: &Edit) -> Rehearsed {
        // All history is at hand where it may decide, as for a commit.
        let plan = plan(&mut self.tree, edit, BodyPlace::Unknown, self.revs_limit);
        match plan.unwrap_or(Plan::Conflict) {
            Plan::Known { rev } => Rehearsed::Nothing(Outcome::Known { rev }),
            Plan::Conflict => Rehearsed::Nothing(Outcome::Conflict),
            Plan::Changed { .. } => Rehearsed::NewRev { base: self.base(edit) },
        }
    }

    /// Goes on as if the edit had been made.
    pub fn make(&mut self, edit: &Edit) {
        // A leaf that was there keeps its body, as in a commit: only ancestors of it are new.
        let was_there = match edit.kind() {
            EditKind::Replicated { path } => self.tree.tip(&path.rev()).is_some(),
            EditKind::Interactive { .. } => false,
        };
        if let Ok(Plan::Changed { rev }) = make(&mut self.tree, edit, BodyPlace::Unknown, self.revs_limit)
            && !was_there
        {
            self.made.insert(rev, edit.body().clone());
        }
    }

    fn base(&self, edit: &Edit) -> Option<BaseLeaf> {
        let (rev, tip) = edit.base_in(&self.tree)?;
        let body = self.made.get(&rev).map_or(LeafBody::Stored(tip.body), |body| LeafBody::Here(body.clone()));
        Some(BaseLeaf { rev, deleted: tip.deleted, body })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::json::{ScanLimits, scan_document};
    use crate::model::rev_path::RevPath;
    use crate::model::sequence::SeqFormat;
    use crate::{Birth, Identity, Outcome, Store, StoreOptions, Write};

    fn store(folder: &Path) -> Store {
        let options = StoreOptions { map_bytes: 64 << 20, ..StoreOptions::default() };
        let identity = Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Integer };
        Store::open(folder, &options, &Birth { identity, start: Sequence::ZERO }).unwrap()
    }

    fn id() -> DocId {
        DocId::parse("a").unwrap()
    }

    fn edit(parent: Option<&RevId>, deleted: bool, json: &str) -> Edit {
        let body = scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body;
        Edit::interactive(id(), parent.cloned(), deleted, body)
    }

    fn pushed(revs: &[&str]) -> Edit {
        let revs: Vec<RevId> = revs.iter().map(|rev| RevId::parse(rev).unwrap()).collect();
        let path = RevPath::new(revs[0].generation, revs.into_iter().map(|rev| rev.hash).collect()).unwrap();
        Edit::replicated(id(), path, false, Body::empty())
    }

    fn write(store: &Store, edit: Edit) -> RevId {
        let commit = store.write(&[vec![Write::Edit(edit)].into()]).unwrap();
        match &commit.requests[0].outcomes[..] {
            [Outcome::Written { rev, .. }] => rev.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// What an edit would go on from, as text: `new`, `conflict`, `known`, or the revision of the base, whether it is a
    /// tombstone, and its body.
    fn said(store: &Store, rehearsal: &mut Rehearsal, edit: &Edit) -> String {
        match rehearsal.try_edit(edit) {
            Rehearsed::Nothing(Outcome::Known { .. }) => "known".to_owned(),
            Rehearsed::Nothing(_) => "conflict".to_owned(),
            Rehearsed::NewRev { base: None } => "new".to_owned(),
            Rehearsed::NewRev { base: Some(BaseLeaf { rev, deleted, body }) } => {
                let body = store.snapshot().unwrap().leaf_body(body).unwrap().unwrap();
                format!("{rev} {deleted} {}", body.as_str())
            }
        }
    }

    #[test]
    fn an_edit_goes_on_from_the_leaf_it_names_and_is_new_over_a_tombstone_it_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let try_one = |edit: &Edit| {
            let mut rehearsal = store.snapshot().unwrap().rehearse(&id(), std::slice::from_ref(edit)).unwrap();
            said(&store, &mut rehearsal, edit)
        };
        assert_eq!(try_one(&edit(None, false, "{}")), "new");
        let first = write(&store, edit(None, false, r#"{"n":1}"#));
        assert_eq!(try_one(&edit(None, false, "{}")), "conflict");
        assert_eq!(try_one(&edit(Some(&first), false, "{}")), format!(r#"{first} false {{"n":1}}"#));
        assert_eq!(try_one(&pushed(&["3-c", "2-b", &first.to_string()])), format!(r#"{first} false {{"n":1}}"#));
        assert_eq!(try_one(&pushed(&["3-c", "2-b", "1-x"])), "new");
        assert_eq!(try_one(&pushed(&[&first.to_string()])), "known");
        let gone = write(&store, edit(Some(&first), true, "{}"));
        assert_eq!(try_one(&edit(None, false, "{}")), "new");
        assert_eq!(try_one(&pushed(&["3-c", &gone.to_string()])), format!("{gone} true {{}}"));
    }

    #[test]
    fn edits_of_one_request_go_on_from_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let first = write(&store, edit(None, false, "{}"));
        let second = edit(Some(&first), false, r#"{"n":2}"#);
        let mut rehearsal = store.snapshot().unwrap().rehearse(&id(), std::slice::from_ref(&second)).unwrap();
        assert_eq!(rehearsal.at(), store.snapshot().unwrap().tree(&id()).unwrap().unwrap().seq);
        rehearsal.make(&second);
        assert_eq!(said(&store, &mut rehearsal, &second), "conflict");
        let rev = write(&store, second);
        assert_eq!(said(&store, &mut rehearsal, &edit(Some(&rev), false, "{}")), format!(r#"{rev} false {{"n":2}}"#));
    }

    #[test]
    fn a_leaf_that_is_pushed_again_with_more_ancestors_keeps_its_body() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let with_body = |revs: &[&str], json: &str| {
            let EditKind::Replicated { path } = pushed(revs).kind().clone() else { unreachable!() };
            Edit::replicated(id(), path, false, scan_document(json.as_bytes(), &ScanLimits::default()).unwrap().body)
        };
        let (first, again) = (with_body(&["2-b"], r#"{"by":1}"#), with_body(&["2-b", "1-a"], r#"{"by":2}"#));
        let next = pushed(&["3-c", "2-b", "1-a"]);
        let expected = r#"2-b false {"by":1}"#;
        let edits = [first.clone(), again.clone(), next.clone()];
        let mut rehearsal = store.snapshot().unwrap().rehearse(&id(), &edits).unwrap();
        rehearsal.make(&first);
        rehearsal.make(&again);
        assert_eq!(said(&store, &mut rehearsal, &next), expected, "both are new");
        write(&store, first);
        let mut rehearsal = store.snapshot().unwrap().rehearse(&id(), &edits[1..]).unwrap();
        rehearsal.make(&again);
        assert_eq!(said(&store, &mut rehearsal, &next), expected, "the first was there");
        write(&store, again);
        let mut rehearsal = store.snapshot().unwrap().rehearse(&id(), std::slice::from_ref(&next)).unwrap();
        assert_eq!(said(&store, &mut rehearsal, &next), expected, "as it was written");
    }

    #[test]
    fn a_second_branch_from_below_what_is_at_hand_is_told_from_a_conflict() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        let revs: Vec<String> = (1..=60).rev().map(|generation| format!("{generation}-r{generation}")).collect();
        let line: Vec<&str> = revs.iter().map(String::as_str).collect();
        write(&store, pushed(&line));
        let branch = |rev: &str| pushed(&[&[rev], &line[..1]].concat());
        let edits = [branch("61-a"), branch("61-b")];
        let mut rehearsal = store.snapshot().unwrap().rehearse(&id(), &edits).unwrap();
        rehearsal.make(&edits[0]);
        assert_eq!(said(&store, &mut rehearsal, &edits[1]), "new", "the leaf it goes on from is none any more");
    }
}
