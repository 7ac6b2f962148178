//! Validation of writes: the `validate_doc_update` functions of a database's design documents see each new revision
//! before it is written, and the one it goes on from.
//!
//! It comes before the writer: a request is tried on a snapshot, the functions are asked, and what they refuse is taken
//! out, as is what would change nothing. The other edits then expect their documents where they were seen; where one
//! has moved meanwhile the writer sends the request back, and what has moved is validated again.
//!
//! Source: CouchDB `couch_db:validate_doc_update`, `couch_query_servers:validate_doc_update`.

#[cfg(test)]
mod tests;
mod validating;
mod validators;

use std::collections::HashMap;
use std::sync::Arc;

use seqtide_storage::json::Body;
use seqtide_storage::model::db_name::DbName;
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::Sequence;
use seqtide_storage::{
    BaseLeaf, Edit, EditKind, Expected, Outcome, Refusal, RefusalKind, Rehearsal, Rehearsed, Snapshot, Write,
};
use serde_json::value::RawValue;

pub(crate) use self::validating::Validating;
pub(crate) use self::validators::Validators;
use crate::documents::json::{write_document, write_revisions};
use crate::error::Error;
use crate::functions::protocol::{Proposed, Verdict, shortened};
use crate::functions::{DOCUMENT_BYTES, Design, FunctionError, Functions, batches, raw};
use crate::open_database::OpenDatabase;

/// Where the function stands in a design document.
const VALIDATE: &str = "validate_doc_update";

/// Most documents looked at together.
const DOCS_MAX: usize = 500;
/// A request in which functions were stopped this often is given up.
const STOPS_MAX: usize = 3;

/// What validates one request, as often as its documents move meanwhile.
pub(crate) struct Validation<'a> {
    database: &'a Arc<OpenDatabase>,
    name: &'a DbName,
    functions: &'a Functions,
    /// Whether the request is remembered: then it is not to be that a function was stopped.
    keyed: bool,
    /// What was decided of documents that have not moved since.
    decided: HashMap<DocId, Decided>,
    stops: usize,
}

/// What became of a document's edits.
struct Decided {
    /// Where it was.
    at: Sequence,
    writes: Vec<Write>,
}

/// A document of a request: its edits, and their places in it.
struct Document {
    id: DocId,
    edits: Vec<Edit>,
    places: Vec<usize>,
}

/// A new revision that the functions are to be asked about.
struct Question {
    /// Its document, among those that are looked at together.
    document: usize,
    /// Which of its edits it is.
    edit: usize,
    base: Option<BaseLeaf>,
}

impl<'a> Validation<'a> {
    pub fn new(database: &'a Arc<OpenDatabase>, name: &'a DbName, functions: &'a Functions, keyed: bool) -> Self {
        Validation { database, name, functions, keyed, decided: HashMap::new(), stops: 0 }
    }

    /// Design documents have changed: what was decided before is decided anew.
    pub fn forget(&mut self) {
        self.decided.clear();
    }

    /// Validates the edits among these writes. What is refused, and what would change nothing, has a
    /// [`Write::Decided`] in its place.
    ///
    /// # Errors
    /// When the functions cannot be asked; [`Error::NoDatabase`], [`Error::Stopped`], [`Error::Storage`].
    pub async fn validate(&mut self, designs: &[Design], mut writes: Vec<Write>) -> Result<Vec<Write>, Error> {
        for documents in documents_of(&writes).chunks(DOCS_MAX) {
            let rehearsals = self.rehearse(documents).await?;
            let decided = self.decide(designs, documents, rehearsals).await?;
            for (document, decided) in documents.iter().zip(decided) {
                for (place, write) in document.places.iter().zip(&decided.writes) {
                    writes[*place] = write.clone();
                }
                self.decided.insert(document.id.clone(), decided);
            }
        }
        Ok(writes)
    }

    async fn rehearse(&self, documents: &[Document]) -> Result<Vec<Rehearsal>, Error> {
        let asked: Vec<_> = documents.iter().map(|document| (document.id.clone(), document.edits.clone())).collect();
        let read =
            move |snapshot: &Snapshot<'_>| asked.iter().map(|(id, edits)| snapshot.rehearse(id, edits)).collect();
        self.database.read(read).await
    }

    /// Decides on the first edits of all documents together, then on the second ones, and so on.
    async fn decide(
        &mut self,
        designs: &[Design],
        documents: &[Document],
        mut rehearsals: Vec<Rehearsal>,
    ) -> Result<Vec<Decided>, Error> {
        let mut decided = Vec::with_capacity(documents.len());
        for (document, rehearsal) in documents.iter().zip(&rehearsals) {
            if !document.edits.iter().all(|edit| rehearsal.is_as_expected(edit)) {
                return Err(Error::Moved);
            }
            let known = self.decided.remove(&document.id).filter(|known| known.at == rehearsal.at());
            decided.push(known.unwrap_or(Decided { at: rehearsal.at(), writes: Vec::new() }));
        }
        let most = documents.iter().map(|document| document.edits.len()).max().unwrap_or(0);
        for edit in 0..most {
            let mut asked = Vec::new();
            for (document, it) in documents.iter().enumerate().filter(|(_, it)| it.edits.len() > edit) {
                if decided[document].writes.len() > edit {
                    continue;
                }
                match rehearsals[document].try_edit(&it.edits[edit]) {
                    Rehearsed::Nothing(outcome) => {
                        decided[document].writes.push(not_made(&it.edits[edit], outcome, &rehearsals[document]));
                    }
                    Rehearsed::NewRev { base } => asked.push(Question { document, edit, base }),
                }
            }
            let refusals = self.ask_all(designs, documents, &asked).await?;
            for (Question { document, edit, base }, refusal) in asked.into_iter().zip(refusals) {
                let edits = &documents[document].edits;
                let edit = &edits[edit];
                // Edits that go on from each other stand or fall with the document, as those that ask for it; one alone
                // with what it goes on from.
                let expected = match (&edits[..], edit.expected()) {
                    ([_only], None | Some(Expected::Base(_))) => Expected::Base(base.map(|base| base.rev)),
                    _ => Expected::At(rehearsals[document].at()),
                };
                decided[document].writes.push(match refusal {
                    Some(refusal) => not_made(edit, Outcome::Refused(refusal), &rehearsals[document]),
                    None => {
                        rehearsals[document].make(edit);
                        Write::Edit(edit.clone().expecting(expected))
                    }
                });
            }
        }
        Ok(decided)
    }

    /// Asks every design document of each revision; the first refusal stands. No more of the documents is in memory at
    /// a time than goes into one batch.
    async fn ask_all(
        &mut self,
        designs: &[Design],
        documents: &[Document],
        asked: &[Question],
    ) -> Result<Vec<Option<Refusal>>, Error> {
        let edit_of = |it: &Question| &documents[it.document].edits[it.edit];
        let bytes_of = |it: &Question| {
            edit_of(it).body().as_bytes().len() + DOCUMENT_BYTES + it.base.as_ref().map_or(0, |base| base.body.bytes())
        };
        let mut refusals = Vec::with_capacity(asked.len());
        for batch in batches(asked, bytes_of) {
            // One that is gone belongs to a document that has moved: what is decided of it does not count.
            let bases = batch.iter().map(|it| it.base.as_ref().map(|base| base.body.clone()));
            let old = self.database.bodies(bases.collect()).await?;
            let shown = batch.iter().zip(old).map(|(it, old)| Proposed {
                new: new_document(edit_of(it)),
                old: old_document(edit_of(it).id(), it.base.as_ref(), old.as_ref()),
            });
            let shown: Vec<Proposed> = shown.collect();
            let mut of_batch: Vec<Option<Refusal>> = vec![None; shown.len()];
            for design in designs {
                let open: Vec<usize> = (0..shown.len()).filter(|at| of_batch[*at].is_none()).collect();
                let answers = self.ask(design, open.iter().map(|at| shown[*at].clone()).collect()).await?;
                for (at, refusal) in open.into_iter().zip(answers) {
                    of_batch[at] = refusal;
                }
            }
            refusals.extend(of_batch);
        }
        Ok(refusals)
    }

    /// Asks a design document of these revisions. Where it gives no answer, each is tried by itself.
    async fn ask(&mut self, design: &Design, proposed: Vec<Proposed>) -> Result<Vec<Option<Refusal>>, Error> {
        if proposed.is_empty() {
            return Ok(Vec::new());
        }
        if let [_one] = &proposed[..] {
            return self.run(design, proposed).await?.or_else(|undecided| self.undecided(undecided));
        }
        if let Ok(refusals) = self.run(design, proposed.clone()).await? {
            return Ok(refusals);
        }
        let mut refusals = Vec::with_capacity(proposed.len());
        for one in proposed {
            let refusal = self.run(design, vec![one]).await?.or_else(|undecided| self.undecided(undecided))?;
            refusals.extend(refusal);
        }
        Ok(refusals)
    }

    /// Runs a design document's function. Inside, why it gave no verdicts.
    async fn run(
        &mut self,
        design: &Design,
        proposed: Vec<Proposed>,
    ) -> Result<Result<Vec<Option<Refusal>>, FunctionError>, Error> {
        match self.functions.validate(design, proposed, self.user(), security()).await {
            Ok(verdicts) => Ok(verdicts.into_iter().map(|verdict| refusal(design, verdict, self.keyed)).collect()),
            Err(error) if error.is_of_the_function() => Ok(Err(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses a revision of which nothing could be found out. Of a request in which it happens often, or that is
    /// remembered, nothing is written: it may be found out when it is sent again.
    fn undecided(&mut self, error: FunctionError) -> Result<Vec<Option<Refusal>>, Error> {
        self.stops += usize::from(matches!(error, FunctionError::Stopped { .. }));
        if self.keyed || self.stops > STOPS_MAX {
            return Err(error.into());
        }
        Ok(vec![Some(Refusal { kind: RefusalKind::Undecided, reason: error.to_string() })])
    }

    /// Who writes: there are no users yet, so everybody may do everything.
    fn user(&self) -> Box<RawValue> {
        raw(format!(r#"{{"db":"{}","name":null,"roles":["_admin"]}}"#, self.name).into_bytes())
    }
}

/// CouchDB's default.
fn security() -> Box<RawValue> {
    raw(br#"{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}"#.to_vec())
}

fn refusal(design: &Design, verdict: Verdict, keyed: bool) -> Result<Option<Refusal>, FunctionError> {
    let (kind, reason) = match verdict {
        Verdict::Allowed => return Ok(None),
        Verdict::Forbidden(reason) => (RefusalKind::Forbidden, shortened(&reason)),
        Verdict::Unauthorized(reason) => (RefusalKind::Unauthorized, shortened(&reason)),
        Verdict::Failed(message) => {
            let (design, function) = (design.id().to_owned(), VALIDATE.to_owned());
            let error = FunctionError::Failed { design, function, message: shortened(&message) };
            if keyed {
                return Err(error);
            }
            (RefusalKind::Undecided, error.to_string())
        }
    };
    Ok(Some(Refusal { kind, reason }))
}

/// What stands in the place of an edit that is not made. Where the edit asked for its document to be as it was, this
/// does: the request as a whole depends on it.
fn not_made(edit: &Edit, outcome: Outcome, rehearsal: &Rehearsal) -> Write {
    Write::Decided { outcome, expected: edit.expected().map(|_| (edit.id().clone(), rehearsal.at())) }
}

/// The edit that is to be validated, if this is one. Those of design documents are not: who may write them may replace
/// the functions.
fn validated(write: &Write) -> Option<&Edit> {
    match write {
        Write::Edit(edit) => Some(edit).filter(|edit| !edit.id().is_design()),
        _ => None,
    }
}

/// The edits that are validated, by document, in the order in which the documents come first.
fn documents_of(writes: &[Write]) -> Vec<Document> {
    let mut documents: Vec<Document> = Vec::new();
    let mut known: HashMap<DocId, usize> = HashMap::new();
    for (place, write) in writes.iter().enumerate() {
        let Some(edit) = validated(write) else { continue };
        let document = *known.entry(edit.id().clone()).or_insert_with(|| {
            documents.push(Document { id: edit.id().clone(), edits: Vec::new(), places: Vec::new() });
            documents.len() - 1
        });
        documents[document].edits.push(edit.clone());
        documents[document].places.push(place);
    }
    documents
}

/// The document as it is to be: with the revision it goes on from, or the one it has if it was made elsewhere.
fn new_document(edit: &Edit) -> Box<RawValue> {
    let mut json = Vec::with_capacity(edit.body().as_bytes().len() + 256);
    let (id, deleted, body) = (edit.id().as_str(), edit.deleted(), edit.body());
    match edit.kind() {
        EditKind::Interactive { parent } => {
            let start = parent.as_ref().map_or(0, |parent| parent.generation);
            let hashes = parent.iter().map(|parent| &parent.hash);
            write_document(&mut json, id, parent.as_ref(), deleted, body, |out| write_revisions(out, start, hashes));
        }
        EditKind::Replicated { path } => {
            let rev = path.rev();
            let revisions = |out: &mut Vec<u8>| write_revisions(out, path.start(), path.hashes().iter());
            write_document(&mut json, id, Some(&rev), deleted, body, revisions);
        }
    }
    raw(json)
}

fn old_document(id: &DocId, base: Option<&BaseLeaf>, body: Option<&Body>) -> Box<RawValue> {
    let (Some(BaseLeaf { rev, deleted, .. }), Some(body)) = (base, body) else { return RawValue::NULL.to_owned() };
    let mut json = Vec::with_capacity(body.as_bytes().len() + 128);
    write_document(&mut json, id.as_str(), Some(rev), *deleted, body, |_| {});
    raw(json)
}
