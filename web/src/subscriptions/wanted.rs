//! The subscriptions that a connection is opened with.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::value::RawValue;

use super::asked::{self, Asked, Checked, Client, Opened};
use super::connections::{Handle, Holder};
use super::resume_id::{Resume, Resumed, checksum};
use super::together::{Kept, Subscriptions};
use crate::connection::Cutting;
use crate::error::ApiError;
use crate::feed_options::native::{Options, SUBSCRIPTIONS};

/// How many of a connection's subscriptions are opened at once: a filter's function may take seconds to answer.
const OPENED_AT_ONCE: usize = 32;

/// The subscriptions that a connection is opened with: those that the request names are first.
pub struct Wanted(Vec<One>);

/// One of them, and what becomes of it.
struct One {
    asked: Asked,
    resume: Resume,
    /// The request names it. The others are of the id with which the client comes back.
    named: bool,
}

/// Reads one of several. What is wrong with it is said of it by name, or by its number where it has none.
fn read_one(number: usize, given: &RawValue) -> Result<Asked, ApiError> {
    let it =
        || asked::name_in(given).map_or_else(|| format!("subscription {number} of the list"), |name| called(&name));
    Asked::read(given).map_err(|error| error.said_of(&it()))
}

fn called(name: &str) -> String {
    format!("subscription {name:?}")
}

impl Wanted {
    /// Reads them from what a request says.
    ///
    /// # Errors
    /// 400 for what they may not be, and for an id of others; 413 for too many.
    pub fn read(options: &Options, client: &Client<'_>) -> Result<Wanted, ApiError> {
        let most = client.state.config.limits.subscriptions_max;
        let read = |given: &[Box<RawValue>]| {
            (1..).zip(given).map(|(number, given)| read_one(number, given)).collect::<Result<Vec<_>, _>>()
        };
        let named = read(&asked::one_or_more(options.text(SUBSCRIPTIONS)?.unwrap_or("[]"), most)?)?;
        let mut names = HashSet::new();
        if let Some(twice) = named.iter().find(|asked| !names.insert(&*asked.name)) {
            return Err(ApiError::bad_request(format!("there are two subscriptions {:?}", twice.name)));
        }
        let Some(id) = options.text("last-event-id")?.filter(|id| !id.is_empty()) else {
            let anew = |asked| One { asked, resume: Resume::AsAsked, named: true };
            return Ok(Wanted(named.into_iter().map(anew).collect()));
        };
        let resumed = Resumed::read(id, most)?;
        let later = read(&resumed.later)?;
        let of_named: Vec<_> = named.iter().map(Asked::subject).collect();
        let of_later: Vec<_> = later.iter().map(Asked::subject).collect();
        let places = resumed.places(&of_named, &of_later)?;
        let named = named.into_iter().map(|asked| (asked, true));
        let all = named.chain(later.into_iter().map(|asked| (asked, false)));
        let resume = |((asked, named), resume)| One { asked, resume, named };
        Ok(Wanted(all.zip(places).map(resume).collect()))
    }

    /// Opens them. One that cannot be had is told of, and keeps no other from being opened.
    ///
    /// # Errors
    /// 400 for options that there may not be.
    pub async fn open(
        self,
        client: &Client<'_>,
        handle: &Arc<Handle>,
        cutting: Cutting,
    ) -> Result<Subscriptions, ApiError> {
        let sum = checksum(self.0.iter().filter(|one| one.named).map(|one| one.asked.subject()));
        let has_ids = client.reader.form.has_ids();
        let mut all = Vec::with_capacity(self.0.len());
        for One { asked, resume, named } in self.0 {
            let name = asked.name.clone();
            let checked = asked.checked(client, resume).map_err(|error| error.said_of(&called(&name)))?;
            let later = (!named && has_ids).then(|| checked.given.clone());
            all.push((Kept { name: checked.name.clone(), db: checked.db.clone(), later, resume }, checked));
        }
        let mut opening = stream::iter(all)
            .map(async |(kept, checked): (Kept, Checked)| {
                let opened = match kept.resume {
                    Resume::Never => None,
                    _ => Some(checked.open(client, handle).await),
                };
                (kept, opened)
            })
            .buffered(OPENED_AT_ONCE);
        // What is open decides when its reader is to come back, and that is said before anything of them.
        let mut begun = Vec::new();
        while let Some((kept, opened)) = opening.next().await {
            // Of those that the client comes back for there may be more than a connection has: one may be had now whose
            // name and place were free for others when it was refused. What cannot be opened takes no place from them.
            let hold = |opened: Opened| -> Result<(Opened, Holder), ApiError> {
                Ok((opened, handle.reserve(&kept.name)?.hold(kept.later.clone())))
            };
            let held = opened.map(|opened| opened.and_then(hold));
            begun.push((kept, held));
        }
        let least = client.state.config.feeds.retry;
        let open = begun.iter().filter_map(|(_, held)| held.as_ref()?.as_ref().ok());
        let comeback = open.map(|(opened, _)| opened.feed.comeback(least)).max().unwrap_or(least);
        let mut subscriptions = Subscriptions::new(Arc::clone(handle), sum, comeback, cutting);
        for (kept, held) in begun {
            match held {
                Some(Ok((opened, holder))) => subscriptions.open(opened, holder, kept.later.is_none()),
                Some(Err(refused)) => {
                    subscriptions.refuse(Some(&kept.name), &refused);
                    subscriptions.keep_closed(kept);
                }
                None => subscriptions.keep_closed(kept),
            }
        }
        Ok(subscriptions)
    }
}
