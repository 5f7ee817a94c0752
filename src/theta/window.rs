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
//! lateness. Inner joins only: a window without a counterpart gives nothing.
//!
//! [`push`](WindowJoin::push) joins nothing and never waits, [`poll`](WindowJoin::poll) computes
//! what is asked for. Memory: the windows that wait (for rows of the other stream, or to be
//! polled), on the account of a budget, and one output batch per thread. After an error nothing is
//! lost: what could not be pushed was not taken, and the windows of a poll that failed or was
//! stopped are joined again by the next one, which goes on where the last one got to.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};

use super::balance::Loads;
use super::partitioned::Partitioned;
use super::plan::ThetaPlan;
use crate::budget::{Budget, Reservation};
use crate::control::Control;
use crate::metrics::{Metric, Metrics};
use crate::operator::{Plan, Run};
use crate::output::BatchStream;
use crate::predicate::JoinKind;
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
    const BOTH: [Self; 2] = [Self::Left, Self::Right];

    /// The input called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::BOTH.into_iter().find(|input| input.name() == name)
    }

    fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
        }
    }
}

/// A theta join of two streams, window by window. See the module's text.
pub struct WindowJoin {
    /// Unknown until both schemas are.
    plan: Option<ThetaPlan>,
    window: usize,
    run: Run,
    budget: Budget,
    sides: [Windows; 2],
    /// The pair of windows that is being joined.
    current: Option<Pair>,
    finished: bool,
    loads: Loads,
    seconds: f64,
}

/// The windows of one side that wait: all full but the last.
#[derive(Default)]
struct Windows {
    schema: Option<SchemaRef>,
    waiting: VecDeque<Window>,
}

/// Rows of one window, with the memory they are in.
#[derive(Default)]
struct Window {
    batches: Vec<RecordBatch>,
    rows: usize,
    held: Vec<Arc<Reservation>>,
}

/// Two windows that are joined; what is measured counts when all of it is done.
struct Pair {
    windows: [Window; 2],
    /// Gone after an error: begun again when it is next asked for.
    stream: Option<BatchStream>,
    metrics: Arc<Metrics>,
    loads: Arc<Loads>,
    /// Rows that were handed out.
    handed: usize,
    /// Rows that come out again before new ones do.
    again: usize,
}

impl WindowJoin {
    /// A join of windows of `window` rows. `run` says how and collects the metrics of all windows;
    /// its limit is not heeded. Rows that wait reserve memory from `budget`.
    pub fn new(window: usize, run: Run, budget: Budget) -> Result<Self> {
        if window == 0 {
            return Err(Error::invalid("window=0; expected at least 1 row"));
        }
        Ok(Self {
            plan: None,
            window,
            run: Run { limit: None, ..run },
            budget,
            sides: Default::default(),
            current: None,
            finished: false,
            loads: Loads::default(),
            seconds: 0.0,
        })
    }

    /// Says how windows are joined, and the schemas of the two streams. Rows may be pushed before;
    /// they wait.
    pub fn describe(&mut self, plan: ThetaPlan, schemas: [SchemaRef; 2]) -> Result<()> {
        if plan.spec.kind != JoinKind::Inner {
            return Err(Error::unsupported(format!(
                "windows are joined by how=\"inner\" only, not how={:?}",
                plan.spec.kind.name()
            )));
        }
        for ((side, schema), input) in self.sides.iter().zip(&schemas).zip(Input::BOTH) {
            side.check(input, schema)?;
        }
        self.plan = Some(plan);
        self.sides.iter_mut().zip(schemas).for_each(|(side, schema)| side.schema = Some(schema));
        Ok(())
    }

    /// The schema of every batch that comes out, once it is known.
    pub fn schema(&self) -> Option<&SchemaRef> {
        self.plan.as_ref().map(Plan::schema)
    }

    /// Heeds `control` from now on: the one before may have been stopped.
    pub fn watch(&mut self, control: Arc<Control>) {
        self.run.control = control;
    }

    /// Takes the next rows of one stream: all of them, or none if they do not fit the budget.
    pub fn push(&mut self, input: Input, batches: &[RecordBatch]) -> Result<()> {
        if self.finished {
            return Err(Error::invalid(format!(
                "a batch of the {} stream after finish(); a new join takes more",
                input.name()
            )));
        }
        let advice = match self.is_ready() {
            true => "windows are ready: poll, then push again".into(),
            false => format!("what is held waits for rows of the {} stream", input.other().name()),
        };
        let what = format!("the next batch of the {} stream ({advice})", input.name());
        let side = &mut self.sides[input as usize];
        let mut held = Vec::with_capacity(batches.len());
        for batch in batches {
            side.check(input, &batch.schema())?;
            held.push(self.budget.reserve(what.clone(), bytes(batch))?);
        }
        for (batch, held) in batches.iter().zip(held) {
            side.take(batch, Arc::new(held), self.window);
        }
        Ok(())
    }

    /// The next batch of the windows that are ready; `None` if more rows must be pushed first, or
    /// if both streams have ended and this was all.
    pub fn poll(&mut self) -> Result<Option<RecordBatch>> {
        let begun = Instant::now();
        let next = self.next_batch();
        if self.finished && matches!(next, Ok(None)) {
            self.leave();
        }
        self.seconds += begun.elapsed().as_secs_f64();
        self.run.metrics.set("seconds", Metric::Real(self.seconds));
        next
    }

    /// Ends both streams: polling gives the rest, unfinished windows too.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Whether the next windows of both streams can be joined.
    fn is_ready(&self) -> bool {
        let ready = |first: &Window| self.finished || first.rows == self.window;
        self.sides.iter().all(|side| side.waiting.front().is_some_and(ready))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(plan) = &self.plan else { return Ok(None) };
        loop {
            if let Some(mut pair) = self.current.take() {
                let next = pair.next(plan, &self.sides, &self.run);
                if let Ok(None) = next {
                    self.count(&pair);
                } else {
                    self.current = Some(pair);
                    return next;
                }
            }
            if !self.is_ready() {
                return Ok(None);
            }
            let windows = self.sides.each_mut().map(|side| side.waiting.pop_front());
            let [Some(left), Some(right)] = windows else { return Ok(None) };
            self.current = Some(Pair::new([left, right]));
        }
    }

    /// Adds what was measured of a pair that is done.
    fn count(&self, pair: &Pair) {
        let metrics = &self.run.metrics;
        metrics.add("windows", 1);
        metrics.add_all(&pair.metrics);
        self.loads.add_all(&pair.loads);
        if self.plan.as_ref().is_some_and(|plan| plan.spec.algorithm.options().is_some()) {
            metrics.set("load_balance_in", Metric::Real(self.loads.balance_in()));
            metrics.set("load_balance_out", Metric::Real(self.loads.balance_out()));
        }
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

impl Windows {
    /// Puts the rows of `batch` into windows.
    fn take(&mut self, batch: &RecordBatch, held: Arc<Reservation>, window: usize) {
        self.schema.get_or_insert_with(|| batch.schema());
        let mut begin = 0;
        while begin < batch.num_rows() {
            if self.waiting.back().is_none_or(|last| last.rows == window) {
                self.waiting.push_back(Window::default());
            }
            let Some(last) = self.waiting.back_mut() else { break };
            let rows = (window - last.rows).min(batch.num_rows() - begin);
            last.batches.push(batch.slice(begin, rows));
            last.rows += rows;
            last.held.push(Arc::clone(&held));
            begin += rows;
        }
    }

    /// Whether rows of `schema` go with those that wait.
    fn check(&self, input: Input, schema: &Schema) -> Result<()> {
        let columns = |schema: &Schema| {
            let column = |field: &Arc<Field>| {
                let null = if field.is_nullable() { "" } else { ", never null" };
                format!("{:?} ({}{null})", field.name(), field.data_type())
            };
            schema.fields().iter().map(column).collect::<Vec<_>>().join(", ")
        };
        match &self.schema {
            Some(known) if known.fields() != schema.fields() => Err(Error::invalid(format!(
                "{} batch has the columns {}; expected those of the first batch: {}",
                input.name(),
                columns(schema),
                columns(known)
            ))),
            _ => Ok(()),
        }
    }
}

impl Pair {
    fn new(windows: [Window; 2]) -> Self {
        let (metrics, loads) = Default::default();
        Self { windows, stream: None, metrics, loads, handed: 0, again: 0 }
    }

    /// The next rows that were not handed out before; `None` when all were.
    fn next(
        &mut self,
        plan: &ThetaPlan,
        sides: &[Windows; 2],
        run: &Run,
    ) -> Result<Option<RecordBatch>> {
        loop {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None => {
                    let begun = self.begin(plan, sides, run)?;
                    self.stream.insert(begun)
                }
            };
            match stream.next() {
                Some(Ok(batch)) => {
                    let before = self.again.min(batch.num_rows());
                    self.again -= before;
                    let batch = batch.slice(before, batch.num_rows() - before);
                    self.handed += batch.num_rows();
                    if batch.num_rows() > 0 {
                        return Ok(Some(batch));
                    }
                }
                Some(Err(error)) => {
                    self.stream = None;
                    return Err(error);
                }
                None => return Ok(None),
            }
        }
    }

    /// Begins to join the windows, from the first row on: the order is always the same.
    fn begin(&mut self, plan: &ThetaPlan, sides: &[Windows; 2], run: &Run) -> Result<BatchStream> {
        (self.metrics, self.loads) = Default::default();
        self.again = self.handed;
        let table = |input: Input| {
            let side = input as usize;
            let (schema, batches) = (sides[side].schema.clone(), &self.windows[side].batches);
            let schema = schema.ok_or_else(|| Error::internal("a window without a schema"))?;
            Table::new(input.name(), schema, batches.clone()).map(Arc::new)
        };
        let tables = [table(Input::Left)?, table(Input::Right)?];
        let control = Arc::new(Control::part_of(&run.control));
        let run = Run { control, metrics: Arc::clone(&self.metrics), ..run.clone() };
        if plan.spec.algorithm.options().is_some() {
            let [left, right] = tables;
            let join = Partitioned::new(plan.clone(), left, right)?;
            return join.stream_with(&run, Arc::clone(&self.loads));
        }
        plan.bind(&tables)?.stream(&run)
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
