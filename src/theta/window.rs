//! Theta joins over streams cut into windows of equal row count.
//!
//! The source joins "between windows of data streams": the i-th window of one side with the i-th
//! of the other, each `window` rows long in order of arrival, the last possibly shorter. A pair of
//! windows is ready once both are full; what arrives on the faster side waits. When the streams
//! end, their unfinished windows are joined as they are, and windows that have no counterpart
//! match nothing.
//!
//! ```text
//! left    |0000|1111|2222|33        0 with 0, 1 with 1, at the end 2 with the shorter 2;
//! right   |0000|1111|22             left window 3 has no counterpart
//! ```
//!
//! Order of the output: window by window, within each as its algorithm has it. How the input is
//! cut into batches changes nothing. Windows are by count, so there is neither watermark nor
//! lateness. Memory: the windows that wait, on the account of a budget, and one output batch per
//! thread; [`push`](WindowJoin::push) joins nothing, [`poll`](WindowJoin::poll) computes what is
//! asked for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{Schema, SchemaRef};

use super::balance::Loads;
use super::partitioned::Partitioned;
use super::plan::ThetaPlan;
use crate::budget::{Budget, Reservation};
use crate::control::Control;
use crate::metrics::Metric;
use crate::operator::{Plan, Run};
use crate::output::BatchStream;
use crate::table::Table;
use crate::{Error, Result};

/// One of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

impl Input {
    fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
        }
    }
}

/// A theta join of two streams, window by window. See the module's text.
pub struct WindowJoin {
    plan: ThetaPlan,
    window: usize,
    run: Run,
    budget: Budget,
    sides: [Windows; 2],
    /// The pair of windows that is being joined, and its output.
    current: Option<(BatchStream, [Window; 2])>,
    loads: Arc<Loads>,
    seconds: f64,
}

/// The windows of one side that wait: all full but the last.
struct Windows {
    schema: SchemaRef,
    waiting: VecDeque<Window>,
}

/// Rows of one window, with the memory they are in.
#[derive(Default)]
struct Window {
    batches: Vec<RecordBatch>,
    rows: usize,
    held: Vec<Arc<Reservation>>,
}

impl WindowJoin {
    /// A join of windows of `window` rows by `plan`, over streams of these schemas. `run` says how
    /// and collects the metrics of all windows; its limit is not heeded. Rows that wait reserve
    /// memory from `budget`.
    pub fn new(
        plan: ThetaPlan,
        left: &Schema,
        right: &Schema,
        window: usize,
        run: Run,
        budget: Budget,
    ) -> Result<Self> {
        if window == 0 {
            return Err(Error::invalid("window=0; expected at least 1 row"));
        }
        let sides = [left, right]
            .map(|schema| Windows { schema: Arc::new(schema.clone()), waiting: VecDeque::new() });
        let run = Run { limit: None, ..run };
        Ok(Self {
            plan,
            window,
            run,
            budget,
            sides,
            current: None,
            loads: Arc::default(),
            seconds: 0.0,
        })
    }

    /// The schema of every batch that comes out.
    pub fn schema(&self) -> &SchemaRef {
        self.plan.schema()
    }

    /// Takes the next rows of one stream. If they do not fit the budget, nothing is taken: poll,
    /// then push again.
    pub fn push(&mut self, input: Input, batch: &RecordBatch) -> Result<()> {
        let side = &mut self.sides[input as usize];
        if batch.schema().fields() != side.schema.fields() {
            return Err(Error::invalid(format!(
                "{} batch has columns {:?}; expected {:?}",
                input.name(),
                batch.schema().fields(),
                side.schema.fields()
            )));
        }
        let what = format!("rows of the {} stream that wait for a window", input.name());
        let held = Arc::new(self.budget.reserve(what, bytes(batch))?);
        let mut begin = 0;
        while begin < batch.num_rows() {
            if side.waiting.back().is_none_or(|last| last.rows == self.window) {
                side.waiting.push_back(Window::default());
            }
            let Some(last) = side.waiting.back_mut() else { break };
            let rows = (self.window - last.rows).min(batch.num_rows() - begin);
            last.batches.push(batch.slice(begin, rows));
            last.rows += rows;
            last.held.push(Arc::clone(&held));
            begin += rows;
        }
        Ok(())
    }

    /// The next batch of the windows that are ready; `None` if more rows must be pushed first.
    pub fn poll(&mut self) -> Result<Option<RecordBatch>> {
        let window = self.window;
        self.advance(|first| first.is_some_and(|first| first.rows == window))
    }

    /// Ends both streams: the rest of the output, computed as it is asked for.
    pub fn finish(self) -> Rest {
        Rest { join: Some(self) }
    }

    fn advance(&mut self, ready: impl Fn(Option<&Window>) -> bool) -> Result<Option<RecordBatch>> {
        let begun = Instant::now();
        let next = self.next_batch(ready);
        self.seconds += begun.elapsed().as_secs_f64();
        self.run.metrics.set("seconds", Metric::Real(self.seconds));
        next
    }

    fn next_batch(
        &mut self,
        ready: impl Fn(Option<&Window>) -> bool,
    ) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((stream, _)) = &mut self.current {
                match stream.next() {
                    Some(Ok(batch)) => return Ok(Some(batch)),
                    ended => {
                        self.current = None;
                        ended.transpose()?;
                    }
                }
            }
            if !self.sides.iter().all(|side| ready(side.waiting.front())) {
                return Ok(None);
            }
            let pair = self.sides.each_mut().map(|side| side.waiting.pop_front());
            let [Some(left), Some(right)] = pair else { return Ok(None) };
            let stream = self.join(&left, &right)?;
            self.current = Some((stream, [left, right]));
        }
    }

    fn join(&self, left: &Window, right: &Window) -> Result<BatchStream> {
        let table = |input: Input, window: &Window| {
            let schema = Arc::clone(&self.sides[input as usize].schema);
            Table::new(input.name(), schema, window.batches.clone()).map(Arc::new)
        };
        let (left, right) = (table(Input::Left, left)?, table(Input::Right, right)?);
        let run =
            Run { control: Arc::new(Control::part_of(&self.run.control)), ..self.run.clone() };
        self.run.metrics.add("windows", 1);
        if self.plan.spec.algorithm.options().is_some() {
            let join = Partitioned::new(self.plan.clone(), left, right)?;
            return join.stream_with(&run, Arc::clone(&self.loads));
        }
        self.plan.bind(&[left, right])?.stream(&run)
    }

    /// Counts the rows of windows that have no counterpart.
    fn leave(&mut self) {
        let names = [["rows_left", "unmatched_left"], ["rows_right", "unmatched_right"]];
        for (side, names) in self.sides.iter_mut().zip(names) {
            let rows: usize = side.waiting.drain(..).map(|window| window.rows).sum();
            for name in names {
                self.run.metrics.add(name, rows as u64);
            }
        }
    }
}

/// The output that is left when both streams have ended.
pub struct Rest {
    join: Option<WindowJoin>,
}

impl Iterator for Rest {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.join.as_mut()?.advance(|first| first.is_some()).transpose();
        if !matches!(next, Some(Ok(_)))
            && let Some(mut join) = self.join.take()
        {
            join.leave();
        }
        next
    }
}

/// Bytes of a batch's own rows; a slice does not count for the whole it is cut from.
fn bytes(batch: &RecordBatch) -> u64 {
    let size = |column: &arrow_array::ArrayRef| {
        let data = column.to_data();
        data.get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()) as u64
    };
    batch.columns().iter().map(size).sum()
}
