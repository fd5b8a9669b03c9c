//! `load`: files → base rows → change log → indexes, all at once.

use super::args::{Global, LoadArgs};
use super::output::{self, count};
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::index::Counts;
use crate::model::Position;
use crate::source::Freshness;
use crate::source::file::{JsonLines, Line};
use crate::store::Stop;
use crate::write::{RowChange, Writer};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Lines that are written together, at most.
const CHUNK: usize = 2_000;
/// Bytes of lines that are written together, more or less one line.
const CHUNK_BYTES: usize = 4 << 20;

pub async fn run(global: &Global, args: &LoadArgs) -> Result<()> {
    let session = Session::open(global).await?;
    session.declare(&args.table, &args.attributes).await?;
    for path in &args.files {
        let lines = JsonLines::open(path)?;
        let loaded = load(global, &session, &args.table, lines, !args.no_apply).await?;
        report(global, &loaded)?;
    }
    Ok(())
}

/// What a load did.
pub struct Loaded {
    pub file: String,
    pub rows: u64,
    pub elapsed: Duration,
    /// Asks a query to wait for these rows.
    pub token: Freshness,
    /// None when the indexes were left behind.
    pub applied: Option<Counts>,
}

pub fn report(global: &Global, loaded: &Loaded) -> Result<()> {
    let Loaded { file, rows, elapsed, token, applied } = loaded;
    let rate = *rows as f64 / elapsed.as_secs_f64().max(1e-9);
    let mut sentence = match rows {
        0 => format!("{file}: it is empty, nothing was loaded"),
        rows => format!(
            "{file}: {} in {} ({} rows/s)",
            output::plural(*rows, "row", "rows"),
            output::time(*elapsed),
            count(rate as u64)
        ),
    };
    match applied {
        Some(counts) => {
            sentence.push_str(&format!(
                "; indexes up to date, {} written",
                output::plural(counts.entry_writes, "entry", "entries")
            ));
            if counts.quarantined > 0 {
                sentence.push_str(&format!("; {} QUARANTINED", output::plural(counts.quarantined, "event", "events")));
            }
        }
        None => sentence.push_str("; indexes left behind, `apply` brings them up to date"),
    }
    let object = json!({
        "file": file,
        "rows": rows,
        "seconds": elapsed.as_secs_f64(),
        "events_applied": applied.map(|c| c.applied),
        "events_quarantined": applied.map(|c| c.quarantined),
        "events_irrelevant": applied.map(|c| c.irrelevant),
        "entries_written": applied.map(|c| c.entry_writes),
        "fresh_after": token.to_string(),
    });
    output::done(global, &sentence, &object)
}

/// Loads lines; the indexes follow the change log meanwhile, and are up to date on return if `apply`.
pub async fn load(global: &Global, session: &Session, table: &str, lines: JsonLines, apply: bool) -> Result<Loaded> {
    let started = Instant::now();
    let file = lines.path().display().to_string();
    let writer = session.writer(table).await?;
    let bar = output::bar(global, &short(&file), lines.size(), true);
    let (stop, stopped) = oneshot::channel::<()>();
    let following = if apply {
        let mut follower = session.follower(table).await?;
        Some(tokio::spawn(async move {
            follower
                .follow(
                    async {
                        let _ = stopped.await;
                    },
                    |_| {},
                )
                .await
        }))
    } else {
        None
    };
    let written = write(&writer, lines, &bar, &session.stop).await.map_err(|e| e.within(file.clone()));
    drop(stop);
    let applied = match following {
        Some(task) => Some(task.await.unwrap_or_else(|e| {
            Err(Error::new(ErrorKind::Internal, format!("the follower died: {e}")).with_source(e))
        })),
        None => None,
    };
    bar.finish_and_clear();
    let rows = written.map_err(|e| match e.kind() {
        ErrorKind::Interrupted => {
            Error::new(e.kind(), format!("{e}; the indexes may be behind, `apply` brings them up to date"))
        }
        _ => e,
    })?;
    let applied = applied
        .transpose()
        .map_err(|e| e.within("the rows are loaded, but the indexes are behind: `apply` goes on where this stopped"))?;
    let token = Freshness::now(&session.changes, table)?;
    Ok(Loaded { file, rows, elapsed: started.elapsed(), token, applied })
}

/// Writes all lines; how many there were.
async fn write(writer: &Writer, mut lines: JsonLines, bar: &indicatif::ProgressBar, stop: &Stop) -> Result<u64> {
    let (sender, mut chunks) = mpsc::channel::<Result<(Vec<Line>, u64)>>(2);
    tokio::task::spawn_blocking(move || {
        let mut chunk = Vec::with_capacity(CHUNK);
        let mut size = 0;
        loop {
            let (over, failed) = match lines.next() {
                Ok(Some(line)) => {
                    size += line.bytes;
                    chunk.push(line);
                    (false, None)
                }
                Ok(None) => (true, None),
                Err(e) => (true, Some(e)),
            };
            if (over && !chunk.is_empty()) || chunk.len() == CHUNK || size >= CHUNK_BYTES {
                size = 0;
                let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK));
                if sender.blocking_send(Ok((full, lines.bytes_read()))).is_err() {
                    // The writer failed, and says so itself.
                    return;
                }
            }
            if let Some(e) = failed {
                let _ = sender.blocking_send(Err(e));
            }
            if over {
                return;
            }
        }
    });
    let mut rows = 0;
    loop {
        let chunk = tokio::select! {
            chunk = chunks.recv() => chunk,
            // The next line may never come.
            () = stop.stopped() => Some(stop.check().map(|()| (Vec::new(), 0))),
        };
        let Some(chunk) = chunk else { return Ok(rows) };
        let so_far = |e: Error| match rows {
            0 => e.within("nothing was loaded"),
            n => e.within(format!("{} loaded before this", output::plural(n, "row was", "rows were"))),
        };
        let (lines, bytes) = chunk.map_err(so_far)?;
        let changes: Vec<RowChange> = lines.into_iter().map(change).collect();
        writer.write(&changes).await.map_err(so_far)?;
        rows += changes.len() as u64;
        bar.set_position(bytes);
        bar.set_message(format!("{} rows", count(rows)));
    }
}

fn change(line: Line) -> RowChange {
    RowChange {
        row: line.record.id.map(Into::into),
        timestamp: line.record.ts,
        attributes: line.record.attrs.into_iter().collect(),
        origin: Some(Position::File { line: line.number }),
    }
}

fn short(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name).chars().take(16).collect()
}
