//! The index of a database's feed: `/{db}/_feed_index`.

use actix_web::http::StatusCode;
use seqtide::storage::Outcome;
use seqtide::{Database, FeedIndex, IndexFields, IndexFieldsError};
use serde_json::json;

use crate::call::{Answer, Call};
use crate::call_state::CallState;
use crate::error::ApiError;
use crate::json::{BODY, Members, elements};
use crate::reply;

/// Members of a body: at most so many are looked at before one is found that is not known.
const MEMBERS_MAX: usize = 10;

/// Paths of a body, the same one several times included.
const PATHS_MAX: usize = 100;

/// What the body must be like, for those who sent another.
const SHAPE: &str = "{\"fields\": [\"owner\", \"address.city\"]}";

/// Says what the index is of, and how far it is.
pub async fn get(call: &Call, db: &str) -> Answer {
    let FeedIndex { fields, state, rows_done, rows_total } = call.state.database(db)?.feed_index().await?;
    let index = json!({ "fields": fields, "state": state.name(), "rows_done": rows_done, "rows_total": rows_total });
    Ok(reply::json_body(StatusCode::OK, index.to_string().into_bytes()))
}

/// Makes it an index of the fields given. It is kept from now on, and made of the past in the background.
pub async fn put(mut call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    let (body, state) = (call.body().await?, call.state);
    set(&state, &database, &parse(&body)?).await
}

/// Removes it.
pub async fn delete(call: &Call, db: &str) -> Answer {
    set(&call.state, &call.state.database(db)?, &IndexFields::none()).await
}

async fn set(state: &CallState, database: &Database, fields: &IndexFields) -> Answer {
    let (outcome, written) = state.write_one(database, fields.write()).await?;
    let begins = outcome == Outcome::Done && !fields.is_empty();
    let status = if begins { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(reply::written(status, &written).body(reply::OK_LINE))
}

/// Reads `{"fields":["path",…]}`.
fn parse(body: &[u8]) -> Result<IndexFields, ApiError> {
    let too_many = || ApiError::bad_request(format!("the body has too many members; it should be like {SHAPE}"));
    let other_shape = || ApiError::bad_request(format!("the body should be like {SHAPE}"));
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(other_shape());
    }
    let (mut list, members) = (None, Members::read(body, BODY, MEMBERS_MAX, too_many)?);
    for (name, value) in members {
        if name != "fields" {
            return Err(ApiError::bad_request(format!("{name:?} is no member of an index, which is like {SHAPE}")));
        }
        list = Some(value);
    }
    let list = list.ok_or_else(other_shape)?;
    let not_list = || ApiError::bad_request(format!("`fields` must be a list of paths, as in {SHAPE}"));
    let wrong = |error: IndexFieldsError| ApiError::bad_request(error.to_string());
    let paths: Vec<String> = elements(list, PATHS_MAX, not_list, || wrong(IndexFieldsError::TooMany))?;
    IndexFields::parse(paths).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_name_fields_and_nothing_else() {
        assert_eq!(parse(br#" {"fields": ["a", "b.c"]} "#).unwrap(), IndexFields::parse(["a", "b.c"]).unwrap());
        assert!(parse(br#"{"fields": []}"#).unwrap().is_empty());
        let many = format!("{{\"fields\": [{}\"a\"]}}", "\"a\",".repeat(PATHS_MAX));
        for (body, named) in [
            (many.as_bytes(), "too many fields"),
            (b"{}", "should be like"),
            (b" ", "should be like"),
            (b"[]", "must be a JSON object"),
            (b"{", "JSON"),
            (br#"{"fields": ["a"], "filed": 1}"#, "is no member of an index"),
            (br#"{"fields": "a"}"#, "must be a list of paths"),
            (br#"{"fields": ["a", 1]}"#, "must be a list of paths"),
            (br#"{"fields": ["a..b"]}"#, "a..b"),
            (br#"{"fields": [""]}"#, "bad_request"),
        ] {
            let refused = parse(body).unwrap_err();
            let text = format!("{refused:?}");
            assert!(text.contains(named) && text.contains("400"), "{text}");
        }
    }
}
