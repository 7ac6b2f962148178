//! A database as a whole: `/{db}`, `/{db}/_compact`, `/{db}/_ensure_full_commit`, `/{db}/_revs_limit`.

use actix_web::http::StatusCode;
use seqtide::DatabaseInfo;
use seqtide::storage::json::write_json_string;
use seqtide::storage::model::sequence::SeqFormat;
use seqtide::storage::{FORMAT, Write};

use crate::call::{Answer, Call};
use crate::error::ApiError;
use crate::{reply, request};

pub async fn create(call: &Call, db: &str) -> Answer {
    let format = match call.query.get("seq_format") {
        None => SeqFormat::default(),
        Some(name) => SeqFormat::parse(name).ok_or_else(|| {
            ApiError::bad_request(format!("`seq_format` is `integer` or `versionstamp`, not `{name}`"))
        })?,
    };
    for shards in ["q", "n"] {
        if call.query.get(shards).is_some_and(|number| !number.parse::<u32>().is_ok_and(|number| number > 0)) {
            return Err(ApiError::bad_request(format!("The `{shards}` value should be a positive integer.")));
        }
    }
    if call.query.flag("partitioned") {
        return Err(ApiError::bad_request("partitioned databases are not supported"));
    }
    call.state.engine.create_database_with(db, format).await?;
    let mut answer = reply::json(StatusCode::CREATED);
    answer.insert_header(reply::location(&call.req, &[db]));
    Ok(answer.body(reply::OK_LINE))
}

pub async fn delete(call: &Call, db: &str) -> Answer {
    if call.query.get("rev").is_some() {
        let reason =
            "You tried to DELETE a database with a ?rev= parameter. Did you mean to DELETE a document instead?";
        return Err(ApiError::bad_request(reason));
    }
    call.state.engine.delete_database(db).await?;
    Ok(reply::ok(StatusCode::OK))
}

pub async fn info(call: &Call, db: &str) -> Answer {
    let info = call.state.database(db)?.info().await?;
    Ok(reply::json_body(StatusCode::OK, info_json(db, &info)))
}

/// Source: CouchDB, `GET /{db}`; members in its order. In `props`, where CouchDB has what else a database was made
/// with, is the form of its sequences.
pub fn info_json(db: &str, info: &DatabaseInfo) -> Vec<u8> {
    let DatabaseInfo { counters, purge_seq, sweep, file_bytes, seq_format, created_secs, .. } = info;
    let compact_running = sweep.is_some();
    let mut out = format!("{{\"instance_start_time\":\"{created_secs}\",\"db_name\":").into_bytes();
    write_json_string(&mut out, db);
    let update_seq = seq_format.json(counters.update_seq);
    let (live, all) = (counters.body_bytes, counters.body_bytes + counters.garbage_bytes);
    out.extend_from_slice(
        format!(
            ",\"purge_seq\":{purge_seq},\"update_seq\":{update_seq},\
             \"sizes\":{{\"file\":{file_bytes},\"external\":{live},\"active\":{all}}},\
             \"props\":{{\"seq_format\":\"{}\"}},\
             \"doc_del_count\":{},\"doc_count\":{},\"disk_format_version\":{FORMAT},\"compact_running\":{compact_running},\
             \"cluster\":{{\"q\":1,\"n\":1,\"w\":1,\"r\":1}}}}",
            seq_format.name(),
            counters.deleted_docs,
            counters.docs
        )
        .as_bytes(),
    );
    out
}

/// Starts to free what no leaf needs; the database's information says while it goes on.
pub async fn compact(call: &Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    request::require_json(&call.req)?;
    database.reclaim().await?;
    Ok(reply::ok(StatusCode::ACCEPTED))
}

/// Every acknowledged write is committed, so there is nothing to do.
pub async fn ensure_full_commit(call: &Call, db: &str) -> Answer {
    let info = call.state.database(db)?.info().await?;
    request::require_json(&call.req)?;
    let body = format!("{{\"ok\":true,\"instance_start_time\":\"{}\"}}", info.created_secs);
    Ok(reply::json_body(StatusCode::CREATED, body.into_bytes()))
}

pub async fn revs_limit(call: &Call, db: &str) -> Answer {
    let limit = call.state.database(db)?.read(|snapshot| snapshot.revs_limit()).await?;
    Ok(reply::json_body(StatusCode::OK, limit.to_string().into_bytes()))
}

/// Branches are cut to the new limit when they are next written.
pub async fn set_revs_limit(mut call: Call, db: &str) -> Answer {
    let database = call.state.database(db)?;
    let (body, state) = (call.body().await?, call.state);
    let limit = serde_json::from_slice(&body).ok().filter(|limit| *limit > 0);
    let limit: u32 = limit.ok_or_else(|| ApiError::bad_request("`_revs_limit` is a positive integer, as JSON"))?;
    let (_, written) = state.write_one(&database, Write::RevsLimit(limit)).await?;
    Ok(reply::written(StatusCode::OK, &written).body(reply::OK_LINE))
}
