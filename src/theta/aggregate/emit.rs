//! Results become batches: the left rows, and their aggregates beside them.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};

use super::Results;
use super::plan::AggregatePlan;
use crate::aggregate::{Finished, Measures};
use crate::operator::{Plan, Run};
use crate::output::{BatchTask, Caps, Picker};
use crate::predicate::JoinKind;
use crate::table::{NO_ROW, Table};
use crate::{Error, Result};

/// The output of a run, before it is put together.
pub(super) struct Output {
    plan: Arc<AggregatePlan>,
    measures: Arc<Measures>,
    results: Arc<Results>,
    left: Picker,
    /// The right columns that aggregates pick values from, by number.
    right: Vec<(usize, Picker)>,
    /// The left rows that come out, ascending.
    rows: Vec<u32>,
    /// Where their results are; [`NO_ROW`] for a row that matches nothing.
    slots: Vec<u32>,
}

impl Output {
    pub(super) fn new(
        plan: Arc<AggregatePlan>,
        measures: Arc<Measures>,
        results: Arc<Results>,
        [left, right]: [&Arc<Table>; 2],
    ) -> Self {
        let (rows, slots) = match plan.theta.spec.kind {
            JoinKind::Inner => results.matched().unzip(),
            _ => {
                let mut slots = vec![NO_ROW; left.num_rows()];
                for (&row, slot) in results.rows.iter().zip(0..) {
                    slots[row as usize] = slot;
                }
                ((0..left.num_rows() as u32).collect(), slots)
            }
        };
        let left = Picker::new(Arc::clone(left), 0..left.schema().fields().len());
        let picker =
            |column: usize| (column, Picker::new(Arc::clone(right), std::iter::once(column)));
        let right = measures.picked().into_iter().map(picker).collect();
        Self { plan, measures, results, left, right, rows, slots }
    }

    /// How many rows come out.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Tasks that make the batches, in order.
    pub(super) fn tasks(self: &Arc<Self>, run: &Run) -> Vec<BatchTask> {
        let picked: u64 = self.right.iter().map(|(_, picker)| picker.average_bytes()).sum();
        let width = self.left.average_bytes() + picked + self.plan.aggregates.len() as u64 * 8;
        let caps = run.caps;
        let most = run.limit.map_or(caps.rows, |limit| caps.rows.min(limit as usize)).max(1);
        let at_once = ((caps.bytes / width) as usize).clamp(1, most);
        let task = |begin: usize| -> BatchTask {
            let (output, control) = (Arc::clone(self), Arc::clone(&run.control));
            let end = self.len().min(begin + at_once);
            let mut piece = None;
            Box::new(move || {
                control.check()?;
                let piece = match &mut piece {
                    Some(piece) => piece,
                    none => none.insert(Piece::new(&output, begin, end)?),
                };
                let batch = piece.next(&output, caps)?;
                control.advance(batch.as_ref().map_or(0, RecordBatch::num_rows) as u64);
                Ok(batch)
            })
        };
        (0..self.len()).step_by(at_once).map(task).collect()
    }

    fn picker(&self, column: usize) -> Result<&Picker> {
        let found = self.right.iter().find(|(other, _)| *other == column);
        found.map(|(_, picker)| picker).ok_or_else(|| Error::internal("no such column is picked"))
    }
}

/// Some output rows in a row, with their aggregates.
struct Piece {
    begin: usize,
    at: usize,
    end: usize,
    columns: Vec<Finished>,
}

impl Piece {
    fn new(output: &Output, begin: usize, end: usize) -> Result<Self> {
        let Output { plan, measures, results, rows, slots, .. } = output;
        let columns = measures.finish(
            &plan.aggregates,
            &results.partials,
            &results.matches,
            &slots[begin..end],
            |row| rows[begin + row],
        )?;
        Ok(Self { begin, at: begin, end, columns })
    }

    /// The next batch within `caps`; a single row may exceed its bytes.
    fn next(&mut self, output: &Output, caps: Caps) -> Result<Option<RecordBatch>> {
        if self.at == self.end {
            return Ok(None);
        }
        let picked = self.columns.iter().filter_map(|column| match column {
            Finished::Values(_) => None,
            Finished::Picked { column, rows } => {
                Some(output.picker(*column).map(|picker| (picker, rows)))
            }
        });
        let picked = picked.collect::<Result<Vec<_>>>()?;
        let fixed = (self.columns.len() - picked.len()) as u64 * 8;
        let mut bytes = 0;
        let fits = (self.at..self.end).take_while(|&at| {
            let of_picked = picked.iter().map(|(picker, rows)| picker.bytes(rows[at - self.begin]));
            bytes += output.left.bytes(output.rows[at]) + fixed + of_picked.sum::<u64>();
            bytes <= caps.bytes
        });
        let taken = self.at..self.at + fits.count().max(1);
        self.at = taken.end;
        let mut columns = output.left.pick(&output.rows[taken.clone()])?;
        let within = taken.start - self.begin..taken.end - self.begin;
        for column in &self.columns {
            columns.push(match column {
                Finished::Values(values) => values.slice(within.start, within.len()),
                Finished::Picked { column, rows } => {
                    let picked = output.picker(*column)?.pick(&rows[within.clone()])?;
                    picked.into_iter().next().ok_or_else(|| Error::internal("no column picked"))?
                }
            });
        }
        Ok(Some(RecordBatch::try_new(Arc::clone(output.plan.schema()), columns)?))
    }
}
