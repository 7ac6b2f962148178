//! `seqtide demo`: a database that follows this machine's own figures, one document each, once a second. What a
//! newcomer sees first is then alive, and real.

mod machine;

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::join_all;
use seqtide::storage::Write;
use seqtide::storage::model::rev::RevId;
use seqtide::{Database, Engine, Error, PutError};
use serde_json::Value;
use tokio::time::MissedTickBehavior;

use self::machine::Machine;

/// The database's name.
pub const DATABASE: &str = "demo";
/// A minute and a half of each document's past.
const REVISIONS: u32 = 100;
const EVERY: Duration = Duration::from_secs(1);

/// Writes the machine's figures for as long as the engine runs; `folder` is on the disk that is told of.
pub async fn follow(engine: Engine, folder: PathBuf) {
    if let Err(error) = write_figures(&engine, folder).await
        && !matches!(error, DemoError::Database(Error::Stopped))
    {
        tracing::error!(%error, "the demo's figures are not written any more");
    }
}

/// Why the demo's figures cannot be had, or kept.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error("{0}")]
    Database(#[from] Error),
    #[error("this machine's figures cannot be read from /proc: {0}")]
    Machine(#[from] std::io::Error),
}

async fn write_figures(engine: &Engine, folder: PathBuf) -> Result<(), DemoError> {
    let database = match engine.create_database(DATABASE).await {
        Ok(made) => {
            made.write(vec![Write::RevsLimit(REVISIONS)]).await?;
            made
        }
        Err(Error::DatabaseExists) => engine.database(DATABASE)?,
        Err(error) => return Err(error.into()),
    };
    let mut machine = Machine::new(folder)?;
    let mut documents = machine::IDS.map(|id| Figures { id, rev: None });
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Rates are told from one reading to the next.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let figures = machine.read()?;
        let writes = documents.iter_mut().zip(figures).map(|(document, figures)| document.write(&database, figures));
        for written in join_all(writes).await {
            match written {
                Err(PutError::Engine(error @ (Error::Stopped | Error::NoDatabase))) => return Err(error.into()),
                Err(error) => tracing::warn!(%error, "a figure of the demo was not written"),
                Ok(()) => {}
            }
        }
    }
}

/// A document of the demo.
struct Figures {
    id: &'static str,
    /// Its revision, as far as it is known.
    rev: Option<RevId>,
}

impl Figures {
    async fn write(&mut self, database: &Database, figures: Value) -> Result<(), PutError> {
        match self.put(database, &figures).await {
            // It was there before, or somebody else has written it.
            Err(PutError::Conflict) => {
                self.rev = database.get(self.id).await?.map(|found| found.rev);
                self.put(database, &figures).await
            }
            written => written,
        }
    }

    async fn put(&mut self, database: &Database, figures: &Value) -> Result<(), PutError> {
        let mut document = figures.clone();
        if let Some(rev) = &self.rev {
            document["_rev"] = Value::from(rev.to_string());
        }
        self.rev = Some(database.put(self.id, document.to_string()).await?.rev);
        Ok(())
    }
}
