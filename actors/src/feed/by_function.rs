//! Pages whose rows a function of a design document lets pass: what passes all else of the filter is read, then the
//! function is asked about it, and where the feed tells what leaves, about what the documents were that do not pass. Of
//! what is in memory it is asked once, for all feeds with an equal filter.

use std::borrow::Cow;
use std::sync::Arc;

use seqtide_storage::json::Body;
use seqtide_storage::{Change, LeafBody, LeafRev, Snapshot, StorageError};
use tokio::task::yield_now;

use super::documents::{PAGE_BYTES, PAGE_ROWS, page_limits, read_page};
use super::leave::{Had, Version, had, may_pass};
use super::options::FeedOptions;
use super::shown::{PageRow, Viewing, judge_on_disk, trim_for};
use super::source::{Page, Wanted};
use crate::error::Error;
use crate::filter::{Passed, Test};
use crate::functions::{BATCH_BYTES, DOCUMENT_BYTES, FilterFunction, Functions, batches, document};
use crate::open_database::OpenDatabase;
use crate::row::{NotHere, Row, Trim};

/// At least so many are asked about together.
const CANDIDATES_MIN: usize = 100;

/// A change that the function may let pass, or whose document may have left.
struct Candidate {
    row: Arc<Row>,
    /// The row in memory, which remembers for all what the function says of it.
    shared: Option<Arc<Row>>,
    /// What passes, if it was known when the row was read.
    known: Option<Passed>,
    /// The revisions that the function is asked about otherwise. Losing ones' bodies are read when their turn comes:
    /// there may be many.
    asked: Vec<Revision>,
    /// What decides whether the document has left if nothing passes, where that is told.
    had: Option<Had>,
}

/// Of a document, and where its body is.
type Revision = (LeafRev, LeafBody);

/// Which state of a document the function is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// As it is.
    Now,
    /// As its reader may have it.
    Before,
}

impl AsRef<Change> for Candidate {
    fn as_ref(&self) -> &Change {
        self.row.change()
    }
}

impl Candidate {
    /// Of a row of which this has passed, and whose leaves have these bodies as far as they are looked at; `None` when
    /// there is nothing to ask about.
    fn new(
        row: Arc<Row>,
        shared: Option<Arc<Row>>,
        passed: &Passed,
        bodies: Vec<Option<LeafBody>>,
        viewing: &Viewing<'_>,
    ) -> Option<Candidate> {
        let may_pass = |leaf: &LeafRev| match passed {
            Passed::Nothing => false,
            Passed::All => true,
            Passed::Leaves(leaves) => leaves.contains(leaf),
        };
        let leaves = row.change().leaves.iter().zip(bodies).filter(|(leaf, _)| may_pass(leaf));
        let asked: Vec<_> = leaves.filter_map(|(leaf, body)| Some((leaf.clone(), body?))).collect();
        let known = asked.is_empty().then_some(Passed::Nothing);
        Candidate { row, shared, known, asked, had: None }.or_left(viewing)
    }

    /// With what decides whether it has left; `None` where it neither passes nor can have.
    fn or_left(mut self, viewing: &Viewing<'_>) -> Option<Candidate> {
        let change = self.row.change();
        self.had = viewing.wanted.seen.map(|seen| had(change, &seen, viewing.options));
        if self.had.is_some() && change.deleted() {
            // Who is told what leaves has nothing that is deleted.
            self.known = Some(Passed::Nothing);
        }
        let may_have_left = !matches!(self.had, None | Some(Had::Known(false)));
        (may_have_left || self.known != Some(Passed::Nothing)).then_some(self)
    }

    /// What passes of a state, if that is known by now.
    fn known(&self, state: State, options: &FeedOptions) -> Option<Passed> {
        match (state, self.had) {
            (State::Now, _) => {
                let remembered = || self.shared.as_ref()?.function_verdict(&options.filter, options.shape.all_leaves);
                self.known.clone().or_else(remembered)
            }
            (State::Before, Some(Had::Known(passed))) => Some(Passed::all_or_nothing(passed)),
            (State::Before, Some(Had::Previous(_))) => {
                self.shared.as_ref()?.verdict_before(&options.filter).map(Passed::all_or_nothing)
            }
            (State::Before, _) => None,
        }
    }

    /// What passes of a state, the function having let these of its revisions pass; remembered.
    fn judged(&self, state: State, passed: Vec<LeafRev>, options: &FeedOptions) -> Passed {
        let all_leaves = options.shape.all_leaves;
        let is_all = state == State::Before || !all_leaves || passed.len() == self.row.change().leaves.len();
        let passed = match passed.len() {
            0 => Passed::Nothing,
            _ if is_all => Passed::All,
            _ => Passed::Leaves(passed.into()),
        };
        match (&self.shared, state, self.had) {
            (Some(shared), State::Now, _) => {
                shared.keep_function_verdict(&options.filter, all_leaves, passed.clone());
            }
            (Some(shared), State::Before, Some(Had::Previous(_))) => {
                shared.keep_verdict_before(&options.filter, passed != Passed::Nothing);
            }
            _ => {}
        }
        passed
    }

    fn shown(&self, passed: Passed, options: &FeedOptions) -> Option<Arc<Row>> {
        let trim = trim_for(passed, options)?;
        Some(if trim.is_none() && options.shape.doc {
            Arc::clone(&self.row)
        } else if let (true, Some(shared)) = (trim.is_none(), &self.shared) {
            Arc::clone(shared)
        } else {
            self.trimmed(trim, options.shape.doc)
        })
    }

    fn left(&self) -> Arc<Row> {
        self.trimmed(Trim::left(), false)
    }

    /// What only the filter looked at takes no memory in the page.
    fn trimmed(&self, trim: Trim, with_body: bool) -> Arc<Row> {
        let change = self.row.change();
        let body = change.body.clone().filter(|_| with_body);
        Arc::new(Row::trimmed(Change { body, ..change.clone() }, self.row.seq_format(), trim))
    }
}

impl PageRow for Candidate {
    fn of_tail(row: Arc<Row>, viewing: &Viewing<'_>) -> Result<Option<Arc<Candidate>>, NotHere> {
        let (options, change) = (viewing.options, row.change());
        let all_leaves = options.shape.all_leaves;
        if all_leaves && change.leaves.len() > 1 {
            let known = Some(row.function_verdict(&options.filter, all_leaves).ok_or(NotHere::OnDisk)?);
            let shared = Some(Arc::clone(&row));
            let candidate = Candidate { row, shared, known, asked: Vec::new(), had: None };
            return Ok(candidate.or_left(viewing).map(Arc::new));
        }
        let passed = viewing.judge(&row)?;
        let winner = vec![change.body.clone().map(LeafBody::Here)];
        Ok(Candidate::new(Arc::clone(&row), Some(row), &passed, winner, viewing).map(Arc::new))
    }

    fn of_disk(
        snapshot: &Snapshot<'_>,
        change: Change,
        viewing: &Viewing<'_>,
    ) -> Result<Option<Candidate>, StorageError> {
        let Viewing { options, live, format, .. } = viewing;
        let passed = judge_on_disk(snapshot, &change, options, live)?;
        let mut bodies = vec![change.body.clone().map(LeafBody::Here)];
        if options.shape.all_leaves && change.leaves.len() > 1 {
            let tree = snapshot.tree(&change.id)?;
            let leaves = tree.iter().flat_map(|found| found.tree.leaves());
            bodies.extend(leaves.skip(1).map(|leaf| Some(LeafBody::Stored(leaf.body))));
        }
        let shared = live.tail().row(change.seq);
        Ok(Candidate::new(Arc::new(Row::new(change, *format)), shared, &passed, bodies, viewing))
    }
}

/// Reads part of a stretch. Where the function gives no answer about a row, the page ends before it; about the first,
/// that is an error.
pub(super) async fn read(
    database: &Arc<OpenDatabase>,
    functions: &Functions,
    function: &FilterFunction,
    options: &FeedOptions,
    wanted: Wanted,
) -> Result<Page<Row>, Error> {
    // Before anything is read: feeds that wait hold nothing.
    let _of_database = database.asking.acquire().await.map_err(|_closed| database.live.gone())?;
    let _of_all = functions.page().await?;
    // As many as the function is asked about together; with their documents, no more than are handed on at once.
    let bytes_max = if options.shape.doc { PAGE_BYTES } else { BATCH_BYTES };
    // Few rows are asked for: they are looked for among some more.
    let rows_max = wanted.rows_max.clamp(CANDIDATES_MIN, PAGE_ROWS);
    let all = Wanted { rows_max, ..wanted };
    let candidates = read_page::<Candidate>(database, options, all, page_limits(rows_max, bytes_max)).await?;
    let asking = Asking { database, functions, function, options };
    let Judged { of: shown, unanswered } = asking.show(&candidates.rows).await?;
    let mut page = Page::empty(candidates.state);
    for (candidate, row) in candidates.rows.iter().zip(shown) {
        page.rows.extend(row);
        page.examined = Some(candidate.row.change().seq);
        if page.rows.len() == wanted.rows_max {
            return Ok(page);
        }
    }
    match unanswered {
        None => Ok(Page { examined: candidates.examined, complete: candidates.complete, ..page }),
        Some(error) if page.examined.is_none() => Err(error),
        Some(_) => Ok(page),
    }
}

/// What comes of each candidate, in order, up to the first about which the function gives no answer.
struct Judged<T> {
    of: Vec<T>,
    /// Why it gives none.
    unanswered: Option<Error>,
}

/// Who is asked, and for whom.
struct Asking<'a> {
    database: &'a Arc<OpenDatabase>,
    functions: &'a Functions,
    function: &'a FilterFunction,
    options: &'a FeedOptions,
}

/// A revision of one of the candidates.
struct Question<'a> {
    candidate: usize,
    change: &'a Change,
    state: State,
    leaf: &'a LeafRev,
    body: &'a LeafBody,
}

impl Asking<'_> {
    /// What is shown of each candidate. What it was is asked about only where nothing passes any more.
    async fn show(&self, candidates: &[Arc<Candidate>]) -> Result<Judged<Option<Arc<Row>>>, Error> {
        let all: Vec<&Candidate> = candidates.iter().map(AsRef::as_ref).collect();
        let now = self.judge(&all, State::Now).await?;
        let may_have_left = |(it, passed): &(&Candidate, &Passed)| **passed == Passed::Nothing && it.had.is_some();
        let gone: Vec<&Candidate> =
            all.iter().copied().zip(&now.of).filter(may_have_left).map(|(candidate, _)| candidate).collect();
        let before = self.judge(&gone, State::Before).await?;
        let mut passed_before = before.of.into_iter();
        let mut shown = Vec::with_capacity(now.of.len());
        for (candidate, passed) in all.into_iter().zip(now.of) {
            shown.push(match may_have_left(&(candidate, &passed)) {
                false => candidate.shown(passed, self.options),
                true => match passed_before.next() {
                    Some(Passed::Nothing) => None,
                    Some(_) => Some(candidate.left()),
                    None => return Ok(Judged { of: shown, unanswered: before.unanswered }),
                },
            });
        }
        Ok(Judged { of: shown, unanswered: now.unanswered })
    }

    /// What passes of each candidate in a state; the function is asked about those of which that is not known.
    async fn judge(&self, candidates: &[&Candidate], state: State) -> Result<Judged<Passed>, Error> {
        let all_known = || candidates.iter().map(|it| it.known(state, self.options)).collect::<Vec<_>>();
        let mut known = all_known();
        let others_may_ask = candidates.iter().zip(&known).any(|(it, known)| known.is_none() && it.shared.is_some());
        let _turn = if others_may_ask { Some(self.function.turn().await) } else { None };
        if others_may_ask {
            // Another feed may have asked meanwhile.
            known = all_known();
        }
        let asked = self.revisions(candidates, &mut known, state).await?;
        let questions: Vec<Question<'_>> = (0..candidates.len())
            .flat_map(|candidate| {
                let change = candidates[candidate].row.change();
                let of_it = asked[candidate].iter();
                of_it.map(move |(leaf, body)| Question { candidate, change, state, leaf, body })
            })
            .collect();
        let Judged { of: answers, unanswered } = self.ask(&questions).await?;
        let end = questions.get(answers.len()).map_or(candidates.len(), |unanswered| unanswered.candidate);
        let mut answers = answers.into_iter();
        let judged = candidates[..end].iter().zip(known).zip(&asked).map(|((candidate, known), asked)| {
            known.unwrap_or_else(|| {
                let passed = asked.iter().zip(answers.by_ref()).filter(|(_, passes)| *passes);
                candidate.judged(state, passed.map(|((leaf, _), _)| leaf.clone()).collect(), self.options)
            })
        });
        Ok(Judged { of: judged.collect(), unanswered })
    }

    /// The revisions of each candidate that the function is asked about: none where it is known what passes. Where not
    /// all are known that a reader may have, one passed for all that is known from here on.
    async fn revisions<'c>(
        &self,
        candidates: &[&'c Candidate],
        known: &mut [Option<Passed>],
        state: State,
    ) -> Result<Vec<Cow<'c, [Revision]>>, Error> {
        if state == State::Now {
            let asked = candidates.iter().zip(known).map(|(candidate, known)| match known {
                Some(_) => Cow::Borrowed(&[][..]),
                None => Cow::Borrowed(&candidate.asked[..]),
            });
            return Ok(asked.collect());
        }
        let mut asked = vec![Cow::Borrowed(&[][..]); candidates.len()];
        let unknown = candidates.iter().zip(&*known).enumerate().filter(|(_, (_, known))| known.is_none());
        let unknown: Vec<_> =
            unknown.filter_map(|(at, (candidate, _))| Some((at, Arc::clone(&candidate.row), candidate.had?))).collect();
        if unknown.is_empty() {
            return Ok(asked);
        }
        let options = self.options.clone();
        let read = move |snapshot: &Snapshot<'_>| {
            let versions = |(at, row, had): (usize, Arc<Row>, Had)| {
                had.versions(snapshot, &row.change().id, &options).map(|versions| (at, versions))
            };
            unknown.into_iter().map(versions).collect::<Result<Vec<_>, _>>()
        };
        for (at, versions) in self.database.read(read).await? {
            match versions {
                Some(versions) => {
                    let stored = |Version { leaf, body }| (leaf, LeafBody::Stored(body));
                    asked[at] = versions.into_iter().map(stored).collect();
                }
                None => known[at] = Some(Passed::All),
            }
        }
        Ok(asked)
    }

    /// The answers to questions, in order, up to the first that has none, and why it has none.
    async fn ask(&self, questions: &[Question<'_>]) -> Result<Judged<bool>, Error> {
        let mut judged = Judged { of: Vec::with_capacity(questions.len()), unanswered: None };
        for batch in batches(questions, |question| question.body.bytes() + DOCUMENT_BYTES) {
            match self.ask_batch(batch).await {
                Ok(answers) => judged.of.extend(answers),
                // It need not be for a document's sake: each may have an answer by itself.
                Err(Error::Function(error)) if error.is_of_the_function() => {
                    self.ask_one_by_one(batch, &mut judged).await?;
                }
                Err(error) => return Err(error),
            }
            if judged.unanswered.is_some() {
                break;
            }
        }
        Ok(judged)
    }

    /// Finds out about which document the function gives no answer.
    async fn ask_one_by_one(&self, batch: &[Question<'_>], judged: &mut Judged<bool>) -> Result<(), Error> {
        for one in batch {
            match self.ask_batch(std::slice::from_ref(one)).await {
                Ok(answer) => judged.of.extend(answer),
                Err(Error::Function(error)) => {
                    judged.unanswered = Some(Error::Function(error.at(one.change.id.as_str())));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn ask_batch(&self, batch: &[Question<'_>]) -> Result<Vec<bool>, Error> {
        let bodies = self.database.bodies(batch.iter().map(|question| Some(question.body.clone())).collect()).await?;
        let test = &self.options.filter.test;
        let mut known: Vec<Option<bool>> = Vec::with_capacity(batch.len());
        for (it, body) in batch.iter().zip(&bodies) {
            known.push(it.known(body.as_ref(), test));
            // A selector may take some milliseconds for each.
            if test.selector.is_some() {
                yield_now().await;
            }
        }
        let asked = batch.iter().zip(&bodies).zip(&known).filter(|(_, known)| known.is_none());
        let docs: Vec<_> =
            asked.filter_map(|((it, body), _)| Some(document(it.change, it.leaf, body.as_ref()?))).collect();
        docs.iter().for_each(|_| self.database.live.counted().evaluated());
        let mut passes = match docs.is_empty() {
            true => Vec::new(),
            false => self.functions.passes(self.function, docs).await?,
        }
        .into_iter();
        Ok(known.into_iter().map(|known| known.unwrap_or_else(|| passes.next().unwrap_or(false))).collect())
    }
}

impl Question<'_> {
    /// What is known without the function of a revision with this body. One whose body is gone passes nothing, and may
    /// have passed before, as may one for which the test may take long; it was asked about what is there now.
    fn known(&self, body: Option<&Body>, test: &Test) -> Option<bool> {
        match (self.state, body) {
            (State::Now, None) => Some(false),
            (State::Before, None) => Some(true),
            (State::Now, Some(_)) => None,
            (State::Before, Some(body)) if test.may_take_long(body) => None,
            (State::Before, Some(body)) => (!may_pass(&self.change.id, self.leaf, Some(body), test)).then_some(false),
        }
    }
}
