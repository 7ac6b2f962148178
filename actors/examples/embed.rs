//! Writes documents and follows them, in one process and without HTTP: `cargo run -p seqtide --example embed`.

use seqtide::{ChangesOptions, Engine, Since};
use tokio_stream::StreamExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let engine = Engine::start(folder.path())?;
    let orders = engine.create_database("orders").await?;
    let options = ChangesOptions { since: Since::START, include_docs: true, ..Default::default() };
    let mut changes = orders.changes(options).await?.only_changes();

    let first = orders.put("o-1", r#"{"status": "new", "total": 12.5}"#).await?;
    orders.put("o-2", r#"{"status": "new", "total": 3}"#).await?;
    orders.put("o-1", format!(r#"{{"_rev": "{}", "status": "paid", "total": 12.5}}"#, first.rev)).await?;

    // A live feed ends when the engine stops or the database is deleted; this one is left when it has shown the newest
    // change.
    while let Some(change) = changes.next().await.transpose()? {
        println!("{} {} {} {:?}", change.seq.version, change.id, change.rev, change.body);
        if change.seq.version == 3 {
            break;
        }
    }
    Ok(engine.shutdown().await?)
}
