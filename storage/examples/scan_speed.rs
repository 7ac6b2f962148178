//! How fast a database is scanned, and how fast a file is walked through before it is opened, in time on a processor:
//! the figures of `docs/adr/0007-checksums-and-a-walk.md`. Linux only.
//!
//! ```console
//! $ cargo run --release -p seqtide-storage --example scan_speed
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use seqtide_storage::json::{ScanLimits, scan_document};
use seqtide_storage::model::doc_id::DocId;
use seqtide_storage::model::sequence::{SeqFormat, Sequence};
use seqtide_storage::{
    Birth, Detail, Direction, Edit, Identity, PageLimits, ReadChanges, Request, Store, StoreOptions, Write,
};

const DOCUMENTS: usize = 1_000_000;
const BODY_BYTES: usize = 300;
/// The best of so many: other programs can only slow one down.
const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let birth = Birth {
        identity: Identity { uuid: [7; 16], created_secs: 0, seq_format: SeqFormat::Integer },
        start: Sequence::ZERO,
    };
    let store = Store::open(folder.path(), &StoreOptions::default(), &birth)?;
    let filled = Instant::now();
    for first in (0..DOCUMENTS).step_by(10_000) {
        let edits: Result<Vec<_>, _> = (first..first + 10_000).map(edit).collect();
        store.write(&[Request::from(edits?)])?;
    }
    println!("written: {:.0} documents/s", DOCUMENTS as f64 / filled.elapsed().as_secs_f64());
    for (what, bodies) in [("rows", false), ("rows with bodies", true)] {
        let took = best(|| scan(&store, bodies))?;
        println!("{what}: {:.2} million/s", DOCUMENTS as f64 / took.as_secs_f64() / 1e6);
    }
    store.close()?;

    let mebibytes = std::fs::metadata(folder.path().join("data.mdb"))?.len() as f64 / f64::from(1 << 20);
    let open = |verify_at_open_bytes_max| -> Result<Duration, Box<dyn Error>> {
        let options = StoreOptions { verify_at_open_bytes_max, ..StoreOptions::default() };
        best(|| {
            Store::open(folder.path(), &options, &birth)?.close()?;
            Ok(())
        })
    };
    let walk = open(u64::MAX)?.saturating_sub(open(0)?).as_secs_f64();
    println!("walk: {mebibytes:.0} MiB in {walk:.2} s, {:.0} MiB/s", mebibytes / walk);
    Ok(())
}

fn edit(number: usize) -> Result<Write, Box<dyn Error>> {
    let json = format!("{{\"number\":{number},\"text\":\"{}\"}}", "x".repeat(BODY_BYTES));
    let body = scan_document(json.as_bytes(), &ScanLimits::default())?.body;
    Ok(Write::Edit(Edit::interactive(DocId::parse(&format!("order-{number:07}"))?, None, false, body)))
}

fn best(mut work: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = on_processor()?;
        work()?;
        best = best.min(on_processor()?.saturating_sub(start));
    }
    Ok(best)
}

/// How long this thread has run: other programs take time, but less of this.
fn on_processor() -> Result<Duration, Box<dyn Error>> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(times.split(' ').next().ok_or("no times")?.parse()?))
}

fn scan(store: &Store, bodies: bool) -> Result<(), Box<dyn Error>> {
    let mut after = Sequence::ZERO;
    loop {
        let detail = Detail { leaves: false, bodies };
        let (up_to, direction, limits) = (Sequence::MAX, Direction::Forward, PageLimits::default());
        let page = store.snapshot()?.changes(&ReadChanges { after, up_to, direction, detail, limits }, &|_| true)?;
        match page.examined {
            Some(examined) if !page.complete => after = examined,
            _ => return Ok(()),
        }
    }
}
