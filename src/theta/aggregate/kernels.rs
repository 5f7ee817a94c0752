//! Folding the matches of every left place, by the shape that they have.
//!
//! Cost, for n left and m right rows: ranges take O(m) to prepare and O(1) a row where partials can
//! be subtracted (differences of prefix sums), else O(log m); a sweep takes O((n + m) log m). Both
//! run on all threads of the pool they are called in, and what they give does not depend on how
//! many these are: the partial of a row is made in the same way whoever makes it.

use std::ops::Range;

use rayon::prelude::*;

use super::shape::{Asked, Ranges, Shape, Turns};
use crate::Result;
use crate::aggregate::{BlockTree, Fold, Kernel};
use crate::control::Control;

/// Left places that are folded between two looks at the control.
const AT_ONCE: usize = 1 << 13;

/// Folds the matches of every left place.
pub(super) struct FoldShape<'a> {
    pub(super) shape: &'a Shape,
    /// Stopped by it; told of every place.
    pub(super) control: &'a Control,
}

impl Kernel for FoldShape<'_> {
    fn run<F: Fold>(&self, fold: &F) -> Result<Vec<F::Partial>> {
        match self.shape {
            Shape::Ranges(ranges) => self.ranges(fold, ranges),
            Shape::Turns(turns) => self.turns(fold, turns),
        }
    }
}

impl FoldShape<'_> {
    fn ranges<F: Fold>(&self, fold: &F, ranges: &Ranges) -> Result<Vec<F::Partial>> {
        let Ranges { rows, asked } = ranges;
        if !F::SUBTRACTS {
            let tree = BlockTree::new(fold, rows.par_iter().map(|&row| fold.of(row)).collect());
            return self.each(fold, asked, |asked| over(fold, &tree, asked));
        }
        let mut before = Vec::with_capacity(rows.len() + 1);
        let mut all = fold.identity();
        before.push(all);
        before.extend(rows.iter().map(|&row| {
            all = fold.merge(all, fold.of(row));
            all
        }));
        let over = |range: &Range<u32>| {
            fold.subtract(before[range.end as usize], before[range.start as usize])
        };
        self.each(fold, asked, |[low, high]| fold.merge(over(low), over(high)))
    }

    fn each<F: Fold>(
        &self,
        fold: &F,
        asked: &[Asked],
        over: impl Fn(&Asked) -> F::Partial + Sync,
    ) -> Result<Vec<F::Partial>> {
        let mut partials = vec![fold.identity(); asked.len()];
        let stretches = partials.par_chunks_mut(AT_ONCE).zip(asked.par_chunks(AT_ONCE));
        stretches.try_for_each(|(partials, asked)| -> Result<()> {
            self.control.check()?;
            for (partial, asked) in partials.iter_mut().zip(asked) {
                *partial = over(asked);
            }
            self.control.advance(asked.len() as u64);
            Ok(())
        })?;
        Ok(partials)
    }

    fn turns<F: Fold>(&self, fold: &F, turns: &Turns) -> Result<Vec<F::Partial>> {
        let Turns { places, asked, .. } = turns;
        let mut by_turn = vec![fold.identity(); places.len()];
        let stretch = places.len().div_ceil(rayon::current_num_threads()).max(2 * AT_ONCE);
        let stretches = by_turn.par_chunks_mut(stretch).zip(asked.par_chunks(stretch)).enumerate();
        stretches.try_for_each(|(number, (partials, asked))| {
            self.stretch(fold, turns, number * stretch, partials, asked)
        })?;
        let mut partials = vec![fold.identity(); places.len()];
        for (&place, partial) in places.iter().zip(by_turn) {
            partials[place as usize] = partial;
        }
        Ok(partials)
    }

    /// Some turns in a row, from `first` on: begins with what is active before that.
    fn stretch<F: Fold>(
        &self,
        fold: &F,
        turns: &Turns,
        first: usize,
        partials: &mut [F::Partial],
        asked: &[Asked],
    ) -> Result<()> {
        let Turns { rows, activated, active, .. } = turns;
        let mut done = active[first] as usize;
        let mut leaves = vec![fold.identity(); rows.len()];
        for &at in &activated[..done] {
            leaves[at as usize] = fold.of(rows[at as usize]);
        }
        let mut tree = BlockTree::new(fold, leaves);
        let mut turn = first;
        for (partials, asked) in partials.chunks_mut(AT_ONCE).zip(asked.chunks(AT_ONCE)) {
            self.control.check()?;
            for (partial, asked) in partials.iter_mut().zip(asked) {
                let wanted = active[turn] as usize;
                for &at in &activated[done..wanted] {
                    tree.set(at, fold.of(rows[at as usize]));
                }
                (done, turn) = (wanted, turn + 1);
                *partial = over(fold, &tree, asked);
            }
            self.control.advance(asked.len() as u64);
        }
        Ok(())
    }
}

fn over<F: Fold>(fold: &F, tree: &BlockTree<F>, [low, high]: &Asked) -> F::Partial {
    let low = tree.over(low.clone());
    if high.is_empty() { low } else { fold.merge(low, tree.over(high.clone())) }
}
