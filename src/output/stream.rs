//! Runs a join's tasks and hands its output out batch by batch.
//!
//! Tasks find and assemble matches on the worker threads. Few matches at a time would make tiny
//! batches: they travel as matches and are assembled here, together, once a batch is full.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::{Assembler, Matches};
use crate::Result;
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
    Batches(Vec<RecordBatch>),
}

/// The output of one run, in order. Dropping it stops the run.
pub struct BatchStream {
    assembler: Arc<Assembler>,
    /// Gone when the stream has ended, and the run's tasks with it.
    pieces: Option<Ordered<Box<dyn MatchTask>, Piece>>,
    few: Option<Matches>,
    ready: VecDeque<RecordBatch>,
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
        let wanted = run.limit.unwrap_or(u64::MAX);
        let at_once = assembler.batch_rows().min(usize::try_from(wanted).unwrap_or(usize::MAX));
        let builder = Arc::clone(&assembler);
        let step = move |task: &mut Box<dyn MatchTask>| {
            let Some(matches) = task.next(at_once.max(1))? else { return Ok(None) };
            if matches.len() < at_once / 4 {
                return Ok(Some(Piece::Few(matches)));
            }
            builder.assemble(&matches).map(|batches| Some(Piece::Batches(batches)))
        };
        Ok(Self {
            pieces: Some(Ordered::new(tasks, step, run.threads, Arc::clone(&run.control))?),
            assembler,
            few: None,
            ready: VecDeque::new(),
            wanted,
            metrics: Arc::clone(&run.metrics),
            begun: Instant::now(),
        })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        self.assembler.schema()
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.wanted == 0 {
                return Ok(None);
            }
            if let Some(batch) = self.ready.pop_front() {
                let rows = self.wanted.min(batch.num_rows() as u64);
                self.wanted -= rows;
                return Ok(Some(batch.slice(0, rows as usize)));
            }
            let Some(pieces) = &mut self.pieces else { return Ok(None) };
            match pieces.next().transpose()? {
                Some(Piece::Few(matches)) => self.keep(matches)?,
                Some(Piece::Batches(batches)) => {
                    self.flush()?;
                    self.ready.extend(batches);
                }
                None if self.few.is_some() => self.flush()?,
                None => return Ok(None),
            }
        }
    }

    fn keep(&mut self, matches: Matches) -> Result<()> {
        let other_form = match &mut self.few {
            Some(few) => few.append(matches),
            few => few.replace(matches),
        };
        if other_form.is_some() {
            self.flush()?;
            self.few = other_form;
        }
        let kept = self.few.as_ref().map_or(0, Matches::len);
        if kept >= self.assembler.batch_rows() || kept as u64 >= self.wanted {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(few) = self.few.take() {
            self.ready.extend(self.assembler.assemble(&few)?);
        }
        Ok(())
    }
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let next = self.advance().transpose();
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
