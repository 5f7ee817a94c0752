//! Runs a join's tasks and hands its output out batch by batch.
//!
//! Tasks find and assemble matches on the worker threads. Few matches at a time would make tiny
//! batches: they travel as matches and are assembled here, together, once a batch is full.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::{Assembler, Caps, Cursor, Matches};
use crate::Result;
use crate::error::without_panic;
use crate::metrics::{Metric, Metrics};
use crate::operator::Run;
use crate::ordered::Ordered;

/// A piece of a join's work that reports its matches in output order.
pub trait MatchTask: Send {
    /// The next matches, about `limit` of them at most; `None` when there are no more.
    fn next(&mut self, limit: usize) -> Result<Option<Matches>>;
}

enum Piece {
    Few(Matches),
    Batch(RecordBatch),
}

/// A task, and those of its matches that are still to be assembled.
struct Work {
    task: Box<dyn MatchTask>,
    rest: Option<(Matches, Cursor)>,
}

/// The output of one run, in order. Dropping it stops the run.
pub struct BatchStream {
    assembler: Arc<Assembler>,
    /// Gone when the stream has ended, and the run's tasks with it.
    pieces: Option<Ordered<Work, Piece>>,
    /// Matches that wait until they make a batch.
    few: Option<Matches>,
    /// Matches that are handed out now, batch by batch, and the batch behind them.
    now: Option<(Matches, Cursor)>,
    behind: Option<RecordBatch>,
    caps: Caps,
    wanted: u64,
    metrics: Arc<Metrics>,
    begun: Instant,
}

impl BatchStream {
    /// The output that `tasks`, one after the other, make.
    pub fn new(
        assembler: Arc<Assembler>,
        tasks: impl Iterator<Item = Box<dyn MatchTask>> + Send + 'static,
        run: &Run,
    ) -> Result<Self> {
        run.metrics.add("rows_out", 0);
        run.metrics.add("batches_out", 0);
        let (caps, wanted) = (run.caps, run.limit.unwrap_or(u64::MAX));
        let most = usize::try_from(wanted).unwrap_or(usize::MAX);
        let at_once = assembler.batch_rows(caps).min(most).max(1);
        let builder = Arc::clone(&assembler);
        // One batch a step, however many the matches make: so there is one per thread in memory.
        let step = move |work: &mut Work| loop {
            if let Some((matches, at)) = &mut work.rest {
                match builder.next_batch(matches, at, caps)? {
                    Some(batch) => return Ok(Some(Piece::Batch(batch))),
                    None => work.rest = None,
                }
            }
            let Some(matches) = work.task.next(at_once)? else { return Ok(None) };
            if matches.len() < at_once / 4 {
                return Ok(Some(Piece::Few(matches)));
            }
            work.rest = Some((matches, Cursor::default()));
        };
        let works = tasks.map(|task| Work { task, rest: None });
        Ok(Self {
            pieces: Some(Ordered::new(works, step, run.threads, Arc::clone(&run.control))?),
            assembler,
            few: None,
            now: None,
            behind: None,
            caps,
            wanted,
            metrics: Arc::clone(&run.metrics),
            begun: Instant::now(),
        })
    }

    /// The same stream, of a run that began earlier.
    pub(crate) fn begun_at(self, begun: Instant) -> Self {
        Self { begun, ..self }
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        self.assembler.schema()
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        while self.wanted > 0 {
            if let Some((matches, at)) = &mut self.now {
                if let Some(batch) = self.assembler.next_batch(matches, at, self.caps)? {
                    return Ok(Some(self.hand_out(batch)));
                }
                self.now = None;
            }
            if let Some(batch) = self.behind.take() {
                return Ok(Some(self.hand_out(batch)));
            }
            let Some(pieces) = &mut self.pieces else { return Ok(None) };
            match pieces.next().transpose()? {
                Some(Piece::Few(matches)) => self.keep(matches),
                Some(Piece::Batch(batch)) => {
                    self.behind = Some(batch);
                    self.flush();
                }
                None if self.few.is_some() => self.flush(),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    fn hand_out(&mut self, batch: RecordBatch) -> RecordBatch {
        let rows = self.wanted.min(batch.num_rows() as u64);
        self.wanted -= rows;
        batch.slice(0, rows as usize)
    }

    fn keep(&mut self, matches: Matches) {
        let other_form = match &mut self.few {
            Some(few) => few.append(matches),
            few => few.replace(matches),
        };
        if other_form.is_some() {
            self.flush();
            self.few = other_form;
            return;
        }
        let kept = self.few.as_ref().map_or(0, Matches::len);
        if kept >= self.assembler.batch_rows(self.caps) || kept as u64 >= self.wanted {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.now = self.few.take().map(|few| (few, Cursor::default()));
    }
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let next = without_panic(|| self.advance()).transpose();
        match &next {
            Some(Ok(batch)) => {
                self.metrics.add("rows_out", batch.num_rows() as u64);
                self.metrics.add("batches_out", 1);
            }
            _ => self.pieces = None,
        }
        self.metrics.set("seconds", Metric::Real(self.begun.elapsed().as_secs_f64()));
        next
    }
}
