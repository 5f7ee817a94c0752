//! Partials over positions: any range in logarithmic time, any position set in logarithmic time.
//!
//! ```text
//! nodes     ┌───────┴───────┐            binary, over blocks: node i is made of 2i and 2i + 1
//! blocks    ▢       ▢       ▢            each of all its leaves
//! leaves    ▫▫▫▫…   ▫▫▫▫…   ▫▫▫▫…        16 to a block
//! ```
//!
//! A node depends on nothing but its leaves, so what a range gives does not depend on the order in
//! which leaves were set. Blocks keep the nodes few: of a million positions they stay in a core's
//! own cache.

use std::ops::Range;

use super::fold::Fold;

const BLOCK: usize = 16;

/// A tree over the partials of some positions.
pub(crate) struct BlockTree<'a, F: Fold> {
    fold: &'a F,
    leaves: Vec<F::Partial>,
    /// Node 1 is the root; from `blocks` on they are the blocks.
    nodes: Vec<F::Partial>,
    blocks: usize,
}

impl<'a, F: Fold> BlockTree<'a, F> {
    pub(crate) fn new(fold: &'a F, leaves: Vec<F::Partial>) -> Self {
        let blocks = leaves.len().div_ceil(BLOCK);
        let mut nodes = vec![fold.identity(); blocks];
        nodes.extend(leaves.chunks(BLOCK).map(|block| fold_all(fold, block)));
        for node in (1..blocks).rev() {
            nodes[node] = fold.merge(nodes[2 * node], nodes[2 * node + 1]);
        }
        Self { fold, leaves, nodes, blocks }
    }

    /// Sets the partial at `position`.
    pub(crate) fn set(&mut self, position: u32, partial: F::Partial) {
        self.leaves[position as usize] = partial;
        let block = position as usize / BLOCK;
        let end = self.leaves.len().min((block + 1) * BLOCK);
        let mut whole = fold_all(self.fold, &self.leaves[block * BLOCK..end]);
        let mut node = self.blocks + block;
        while node > 1 && self.nodes[node] != whole {
            self.nodes[node] = whole;
            let other = self.nodes[node ^ 1];
            whole = match node % 2 {
                0 => self.fold.merge(whole, other),
                _ => self.fold.merge(other, whole),
            };
            node /= 2;
        }
        if node == 1 {
            self.nodes[1] = whole;
        }
    }

    /// What the positions of `range` give together.
    pub(crate) fn over(&self, range: Range<u32>) -> F::Partial {
        let (start, end) = (range.start as usize, range.end as usize);
        if start >= end {
            return self.fold.identity();
        }
        let (first, last) = (start.div_ceil(BLOCK), end / BLOCK);
        if first > last {
            return fold_all(self.fold, &self.leaves[start..end]);
        }
        let mut before = fold_all(self.fold, &self.leaves[start..first * BLOCK]);
        let mut behind = fold_all(self.fold, &self.leaves[last * BLOCK..end]);
        let (mut low, mut high) = (self.blocks + first, self.blocks + last);
        while low < high {
            if low % 2 == 1 {
                before = self.fold.merge(before, self.nodes[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                behind = self.fold.merge(self.nodes[high], behind);
            }
            (low, high) = (low / 2, high / 2);
        }
        self.fold.merge(before, behind)
    }
}

fn fold_all<F: Fold>(fold: &F, partials: &[F::Partial]) -> F::Partial {
    partials.iter().fold(fold.identity(), |all, &partial| fold.merge(all, partial))
}

#[cfg(test)]
mod tests {
    use super::super::fold::ExactSum;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_add_up(
            mut values in prop::collection::vec(-9..9_i64, 0..400),
            changes in prop::collection::vec((any::<u32>(), -9..9_i64), 0..40),
            ranges in prop::collection::vec((any::<u32>(), any::<u32>()), 1..40),
        ) {
            let len = values.len() as u32;
            let fold = ExactSum::<i64> { values: vec![] };
            let mut tree = BlockTree::new(&fold, values.clone());
            for (at, value) in changes.into_iter().filter(|_| len > 0) {
                values[(at % len) as usize] = value;
                tree.set(at % len, value);
            }
            for (a, b) in ranges {
                let (a, b) = (a % (len + 1), b % (len + 1));
                let sum: i64 = values[a.min(b) as usize..a.max(b) as usize].iter().sum();
                prop_assert_eq!(tree.over(a.min(b)..a.max(b)), sum);
            }
        }
    }
}
