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

/// A piece of an operator's work that makes batches itself.
pub(crate) type BatchTask = Box<dyn FnMut() -> Result<Option<RecordBatch>> + Send>;

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
    schema: SchemaRef,
    /// Where there are matches.
    assembler: Option<Arc<Assembler>>,
    /// Gone when the stream has ended, and the run's tasks with it.
    pieces: Option<Box<dyn Iterator<Item = Result<Piece>> + Send>>,
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
        let caps = run.caps;
        let most = run.limit.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
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
        let pieces = Ordered::new(works, step, run.threads, Arc::clone(&run.control))?;
        let schema = Arc::clone(assembler.schema());
        Ok(Self { assembler: Some(assembler), ..Self::begin(schema, Box::new(pieces), run) })
    }

    /// The batches of `schema` that `tasks`, one after the other, make.
    pub(crate) fn of_batches(
        schema: SchemaRef,
        tasks: impl Iterator<Item = BatchTask> + Send + 'static,
        run: &Run,
    ) -> Result<Self> {
        let step = |task: &mut BatchTask| task();
        let batches = Ordered::new(tasks, step, run.threads, Arc::clone(&run.control))?;
        let pieces = batches.map(|batch| batch.map(Piece::Batch));
        Ok(Self::begin(schema, Box::new(pieces), run))
    }

    fn begin(
        schema: SchemaRef,
        pieces: Box<dyn Iterator<Item = Result<Piece>> + Send>,
        run: &Run,
    ) -> Self {
        run.metrics.add("rows_out", 0);
        run.metrics.add("batches_out", 0);
        Self {
            schema,
            assembler: None,
            pieces: Some(pieces),
            few: None,
            now: None,
            behind: None,
            caps: run.caps,
            wanted: run.limit.unwrap_or(u64::MAX),
            metrics: Arc::clone(&run.metrics),
            begun: Instant::now(),
        }
    }

    /// The same stream, of a run that began earlier.
    pub(crate) fn begun_at(self, begun: Instant) -> Self {
        Self { begun, ..self }
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        while self.wanted > 0 {
            if let (Some((matches, at)), Some(assembler)) = (&mut self.now, &self.assembler) {
                if let Some(batch) = assembler.next_batch(matches, at, self.caps)? {
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
        let enough = self.assembler.as_ref().map_or(0, |a| a.batch_rows(self.caps));
        if kept >= enough || kept as u64 >= self.wanted {
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
