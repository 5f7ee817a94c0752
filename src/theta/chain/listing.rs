//! Lists the tuples of a chain: any stretch of them, by number.

use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use super::super::auto::reordered;
use super::stages::Stage;
use crate::Result;
use crate::control::Control;
use crate::output::{Assembler, Layout, MatchTask, Matches};
use crate::table::Table;

/// Shorter runs are spelled out: copying them one by one would cost more.
const LONG_RUN: usize = 16;

/// What output is read from: the inputs, the last stage's in its order, so that its rows are
/// positions. Hardly a row is moved in vain: nearly all that bounds leave come out.
pub(super) fn assembler(
    layout: Layout,
    mut tables: Vec<Arc<Table>>,
    last: &Stage,
) -> Result<Assembler> {
    tables[last.input] = Arc::new(reordered(&tables[last.input], last.rows.clone())?);
    Ok(Assembler::of_many(layout, tables))
}

/// Builds the tuples numbered `wanted`.
pub(super) struct ChainTask {
    pub stages: Arc<Vec<Stage>>,
    pub wanted: Range<u128>,
    pub control: Arc<Control>,
}

impl MatchTask for ChainTask {
    fn next(&mut self, limit: usize) -> Result<Option<Matches>> {
        let end = self.wanted.end.min(self.wanted.start + limit as u128);
        let wanted = std::mem::replace(&mut self.wanted.start, end)..end;
        if wanted.is_empty() {
            return Ok(None);
        }
        self.control.check()?;
        self.control.advance((wanted.end - wanted.start) as u64);
        Ok(Some(self.list(wanted)))
    }
}

impl ChainTask {
    /// The tuples numbered `wanted`, of which there are not more than a batch holds.
    fn list(&self, wanted: Range<u128>) -> Matches {
        let stages = &self.stages[..];
        let (last, driving) = (&stages[stages.len() - 1], &stages[..stages.len() - 1]);
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); stages.len()];
        let mut runs: Vec<Range<u32>> = Vec::new();
        let mut left = (wanted.end - wanted.start) as usize;
        let tuples = left;
        let (mut walk, mut skip) = Walk::to(stages, wanted.start);
        while left > 0 {
            for range in walk.partners(driving.len() - 1) {
                let skipped = skip.min(range.len() as u32);
                skip -= skipped;
                let begin = range.start + skipped;
                let most = u32::try_from(left).unwrap_or(u32::MAX);
                let run = begin..range.end.min(begin.saturating_add(most));
                if run.is_empty() {
                    continue;
                }
                left -= run.len();
                for (stage, &at) in driving.iter().zip(&walk.at) {
                    rows[stage.input].push(stage.rows[at as usize]);
                }
                runs.push(run);
            }
            if left > 0 {
                walk.advance();
            }
        }
        if runs.len() * LONG_RUN <= tuples {
            return Matches::Runs { rows, slices: runs, sliced: last.input };
        }
        for rows in rows.iter_mut().filter(|rows| !rows.is_empty()) {
            let repeated = rows.iter().zip(&runs).flat_map(|(&row, run)| repeat_n(row, run.len()));
            *rows = repeated.collect();
        }
        rows[last.input] = runs.into_iter().flatten().collect();
        Matches::Tuples { rows }
    }
}

/// A position in every stage but the last, each a partner of the one before.
struct Walk<'a> {
    stages: &'a [Stage],
    at: Vec<u32>,
}

impl<'a> Walk<'a> {
    /// The walk that leads to the tuple of this number, and how many partners in the last stage
    /// come before the tuple's.
    fn to(stages: &'a [Stage], number: u128) -> (Self, u32) {
        let mut walk = Self { stages, at: Vec::with_capacity(stages.len() - 1) };
        let mut way = number;
        for (depth, stage) in stages[..stages.len() - 1].iter().enumerate() {
            if depth > 0 {
                // From the way's number among those of the partners to that among all.
                let [first, second] = walk.partners(depth - 1);
                let ways = stage.ways(first);
                way = match way < ways {
                    true => stage.before[first.start as usize] + way,
                    false => stage.before[second.start as usize] + (way - ways),
                };
            }
            let at = stage.position_of(way);
            way -= stage.before[at as usize];
            walk.at.push(at);
        }
        (walk, way as u32)
    }

    /// Partners, in the stage behind it, of where the walk is at `depth`.
    fn partners(&self, depth: usize) -> &'a [Range<u32>; 2] {
        &self.stages[depth].partners[self.at[depth] as usize]
    }

    /// Goes on to the next position of the deepest stage that has one, and from there to the first
    /// partners below. There is one as long as there are tuples left.
    fn advance(&mut self) {
        let mut depth = self.at.len() - 1;
        while depth > 0 {
            let [first, second] = self.partners(depth - 1);
            let next = self.at[depth] + 1;
            let in_first = first.contains(&self.at[depth]);
            if next < if in_first { first.end } else { second.end } {
                self.at[depth] = next;
                break;
            }
            if in_first && !second.is_empty() {
                self.at[depth] = second.start;
                break;
            }
            depth -= 1;
        }
        if depth == 0 {
            self.at[0] += 1;
        }
        for below in depth + 1..self.at.len() {
            let [first, second] = self.partners(below - 1);
            self.at[below] = if first.is_empty() { second.start } else { first.start };
        }
    }
}
