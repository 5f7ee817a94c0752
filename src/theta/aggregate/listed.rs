//! Matches that have to be listed: each task folds the pairs it finds and forgets them.
//!
//! For predicates whose matches lie in no range, and for the nested loop. Pairs come in runs of one
//! left row; a task folds each run, and the partials of runs are merged in the order of the tasks,
//! so that results do not depend on threads.

use std::sync::Arc;

use super::Results;
use crate::aggregate::{Fold, Kernel, Measures, Partials};
use crate::control::Control;
use crate::ordered::Ordered;
use crate::output::{MatchTask, Matches};
use crate::{Error, Result};

/// Pairs that a task folds at a time.
pub(super) const AT_ONCE: usize = 1 << 16;

/// Folds the pairs that `tasks` find, for each of `rows` left rows.
pub(super) fn fold_pairs(
    measures: &Arc<Measures>,
    rows: usize,
    tasks: impl Iterator<Item = Box<dyn MatchTask>> + Send + 'static,
    threads: usize,
    control: Arc<Control>,
) -> Result<Results> {
    let nothing = Nothing { rows };
    let partials = measures.list.iter().map(|measure| measure.run(&nothing));
    let mut partials = partials.collect::<Result<Vec<_>>>()?;
    let mut matches = vec![0; rows];
    let folded = Arc::clone(measures);
    let step = move |task: &mut Box<dyn MatchTask>| match task.next(AT_ONCE)? {
        None => Ok(None),
        Some(Matches::Pairs { left, right }) => Ok(Some(Folded::new(&folded, &left, right)?)),
        Some(_) => Err(Error::internal("pairs are listed one by one")),
    };
    for folded in Ordered::new(tasks, step, threads, control)? {
        let Folded { left, counts, partials: more } = folded?;
        for (&row, count) in left.iter().zip(counts) {
            matches[row as usize] += count;
        }
        for ((measure, all), more) in measures.list.iter().zip(&mut partials).zip(more) {
            measure.merge(all, &left, more);
        }
    }
    let rows = Arc::new((0..rows as u32).collect());
    Ok(Results { rows, matches: Arc::new(matches), partials })
}

/// The pairs of one step, run by run.
struct Folded {
    left: Vec<u32>,
    counts: Vec<u32>,
    partials: Vec<Partials>,
}

impl Folded {
    fn new(measures: &Measures, left: &[u32], right: Vec<u32>) -> Result<Self> {
        let runs = left.chunk_by(|a, b| a == b);
        let (rows, counts) = runs.map(|run| (run[0], run.len() as u32)).unzip();
        let runs = Runs { counts, right };
        // On the task's own thread: all threads have tasks.
        let partials =
            measures.list.iter().map(|measure| measure.run(&runs)).collect::<Result<_>>()?;
        Ok(Self { left: rows, counts: runs.counts, partials })
    }
}

/// Right rows in runs of this length.
struct Runs {
    counts: Vec<u32>,
    right: Vec<u32>,
}

impl Kernel for Runs {
    fn run<F: Fold>(&self, fold: &F) -> Result<Vec<F::Partial>> {
        let mut rest = &self.right[..];
        let partial = |&count: &u32| {
            let (run, behind) = rest.split_at(count as usize);
            rest = behind;
            run.iter().fold(fold.identity(), |all, &row| fold.merge(all, fold.of(row)))
        };
        Ok(self.counts.iter().map(partial).collect())
    }
}

/// Rows without a match.
struct Nothing {
    rows: usize,
}

impl Kernel for Nothing {
    fn run<F: Fold>(&self, fold: &F) -> Result<Vec<F::Partial>> {
        Ok(vec![fold.identity(); self.rows])
    }
}
