//! Pages whose rows a function of a design document lets pass: what passes all else of the filter is read, then the
//! function is asked about it. Of what is in memory it is asked once, for all feeds with an equal filter.

use std::sync::Arc;

use seqtide_storage::{Change, LeafBody, LeafRev, Snapshot, StorageError};

use super::documents::{PAGE_BYTES, PAGE_ROWS, read_page};
use super::options::FeedOptions;
use super::shown::{PageRow, Viewing, judge_on_disk, trim_for};
use super::source::{Page, Wanted};
use crate::error::Error;
use crate::filter::Passed;
use crate::functions::{BATCH_BYTES, DOCUMENT_BYTES, FilterFunction, Functions, batches, document};
use crate::open_database::OpenDatabase;
use crate::row::{NotInMemory, Row};
use crate::selector::DocView;

/// At least so many are asked about together.
const CANDIDATES_MIN: usize = 100;

/// A change that passes all of a filter but its function.
struct Candidate {
    row: Arc<Row>,
    /// The row in memory, which remembers for all what the function says of it.
    shared: Option<Arc<Row>>,
    /// What passes, if it was known when the row was read.
    known: Option<Passed>,
    /// The revisions that the function is asked about otherwise. Losing ones' bodies are read when their turn comes: there
    /// may be many.
    asked: Vec<(LeafRev, LeafBody)>,
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
    ) -> Option<Candidate> {
        let may_pass = |leaf: &LeafRev| match passed {
            Passed::Nothing => false,
            Passed::All => true,
            Passed::Leaves(leaves) => leaves.contains(leaf),
        };
        let leaves = row.change().leaves.iter().zip(bodies).filter(|(leaf, _)| may_pass(leaf));
        let asked: Vec<_> = leaves.filter_map(|(leaf, body)| Some((leaf.clone(), body?))).collect();
        (!asked.is_empty()).then_some(Candidate { row, shared, known: None, asked })
    }

    /// What passes, if that is known by now.
    fn known(&self, options: &FeedOptions) -> Option<Passed> {
        let remembered = || self.shared.as_ref()?.function_verdict(&options.filter, options.shape.all_leaves);
        self.known.clone().or_else(remembered)
    }

    /// What passes, the function having let these of the revisions pass; remembered.
    fn judged(&self, passes: impl Iterator<Item = bool>, options: &FeedOptions) -> Passed {
        let passed = self.asked.iter().zip(passes).filter(|(_, passes)| *passes);
        let passed: Vec<LeafRev> = passed.map(|((leaf, _), _)| leaf.clone()).collect();
        let passed = match passed.len() {
            0 => Passed::Nothing,
            count if !options.shape.all_leaves || count == self.row.change().leaves.len() => Passed::All,
            _ => Passed::Leaves(passed.into()),
        };
        if let Some(shared) = &self.shared {
            shared.keep_function_verdict(&options.filter, options.shape.all_leaves, passed.clone());
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
            // What only the filter looked at takes no memory in the page.
            let change = self.row.change();
            let body = change.body.clone().filter(|_| options.shape.doc);
            Arc::new(Row::trimmed(Change { body, ..change.clone() }, self.row.seq_format(), trim))
        })
    }
}

impl PageRow for Candidate {
    fn of_tail(row: Arc<Row>, viewing: &Viewing<'_>) -> Result<Option<Arc<Candidate>>, NotInMemory> {
        let (options, counted) = (viewing.options, viewing.live.counted());
        let (change, all_leaves) = (row.change(), options.shape.all_leaves);
        if all_leaves && change.leaves.len() > 1 {
            let known = Some(row.function_verdict(&options.filter, all_leaves).ok_or(NotInMemory)?);
            let shared = Some(Arc::clone(&row));
            return Ok(Some(Arc::new(Candidate { row, shared, known, asked: Vec::new() })));
        }
        let passed = row.judge(&options.filter.test, DocView::of_winner(change).as_ref(), all_leaves, counted)?;
        let winner = vec![change.body.clone().map(LeafBody::Here)];
        Ok(Candidate::new(Arc::clone(&row), Some(row), &passed, winner).map(Arc::new))
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
        Ok(Candidate::new(Arc::new(Row::new(change, *format)), shared, &passed, bodies))
    }
}

/// Reads part of a stretch. Where the function gives no answer about a row, the page ends before it; about the first, that
/// is an error.
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
    let candidates = read_page::<Candidate>(database, options, all, (rows_max, bytes_max)).await?;
    let asking = Asking { database, functions, function, options };
    let judged = asking.judge(&candidates.rows).await?;
    let all_judged = judged.len() == candidates.rows.len();
    let mut page = Page::empty(candidates.state);
    for (candidate, passed) in candidates.rows.iter().zip(judged) {
        page.rows.extend(candidate.shown(passed, options));
        page.examined = Some(candidate.row.change().seq);
        if page.rows.len() == wanted.rows_max {
            return Ok(page);
        }
    }
    if !all_judged {
        return Ok(page);
    }
    Ok(Page { examined: candidates.examined, complete: candidates.complete, ..page })
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
    leaf: &'a LeafRev,
    body: &'a LeafBody,
}

impl Asking<'_> {
    /// What passes of each candidate, in order, up to the first about which the function gives no answer; it is asked
    /// about those of which that is not known.
    async fn judge(&self, candidates: &[Arc<Candidate>]) -> Result<Vec<Passed>, Error> {
        let all_known = || candidates.iter().map(|candidate| candidate.known(self.options)).collect::<Vec<_>>();
        let mut known = all_known();
        let others_may_ask = candidates.iter().zip(&known).any(|(it, known)| known.is_none() && it.shared.is_some());
        let _turn = if others_may_ask { Some(self.function.turn().await) } else { None };
        if others_may_ask {
            // Another feed may have asked meanwhile.
            known = all_known();
        }
        let unknown = |place: &usize| known[*place].is_none();
        let questions: Vec<Question<'_>> = (0..candidates.len())
            .filter(unknown)
            .flat_map(|candidate| {
                let change = candidates[candidate].row.change();
                candidates[candidate].asked.iter().map(move |(leaf, body)| Question { candidate, change, leaf, body })
            })
            .collect();
        let answers = self.ask(&questions).await?;
        let end = questions.get(answers.len()).map_or(candidates.len(), |unanswered| unanswered.candidate);
        let mut answers = answers.into_iter();
        let judged = candidates[..end].iter().zip(known).map(|(candidate, known)| {
            known.unwrap_or_else(|| candidate.judged(answers.by_ref().take(candidate.asked.len()), self.options))
        });
        Ok(judged.collect())
    }

    /// The answers to questions, in order, up to the first that has none; an error where that is about the first
    /// candidate.
    async fn ask(&self, questions: &[Question<'_>]) -> Result<Vec<bool>, Error> {
        let mut answers = Vec::with_capacity(questions.len());
        for batch in batches(questions, |question| question.body.bytes() + DOCUMENT_BYTES) {
            match self.ask_batch(batch).await {
                Ok(of_batch) => answers.extend(of_batch),
                Err(Error::Function(error)) if error.is_of_the_function() => {
                    return self.ask_one_by_one(batch, answers).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    /// Finds out about which document the function gives no answer.
    async fn ask_one_by_one(&self, batch: &[Question<'_>], mut answers: Vec<bool>) -> Result<Vec<bool>, Error> {
        for one in batch {
            match self.ask_batch(std::slice::from_ref(one)).await {
                Ok(answer) => answers.extend(answer),
                Err(Error::Function(error)) if one.candidate == 0 => {
                    return Err(Error::Function(error.at(one.change.id.as_str())));
                }
                Err(Error::Function(_)) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    async fn ask_batch(&self, batch: &[Question<'_>]) -> Result<Vec<bool>, Error> {
        let bodies = self.database.bodies(batch.iter().map(|question| Some(question.body.clone())).collect()).await?;
        let there = batch.iter().zip(&bodies).filter_map(|(it, body)| Some((it, body.as_ref()?)));
        let docs: Vec<_> = there.map(|(it, body)| document(it.change, it.leaf, body)).collect();
        docs.iter().for_each(|_| self.database.live.counted().evaluated());
        let mut passes = match docs.is_empty() {
            true => Vec::new(),
            false => self.functions.passes(self.function, docs).await?,
        }
        .into_iter();
        // A revision whose body is not there passes nothing.
        Ok(bodies.iter().map(|body| body.is_some() && passes.next().unwrap_or(false)).collect())
    }
}
