//! What can be asked of the partitioning algorithms.

/// Options of the algorithms that partition both sides; each field says who heeds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionedOptions {
    /// Partitions per side before any are merged or split (the source's p). All algorithms.
    pub partitions: usize,
    /// Prefap only: drop rows that the other side's extremes rule out (Algorithm 1).
    pub prefilter: bool,
    /// Prefap only: cut both sides at the boundaries of both (Algorithm 2).
    pub amalgamation: bool,
    /// Prefap and FTJ: split oversized partitions (Algorithm 3).
    pub repartition: Repartition,
    /// Prefap and FTJ: round the span of a split up to a whole number, as Algorithm 3 prints it.
    /// A partition narrower than 1 is then never split. Off, the span is the exact quotient.
    pub ceiling: bool,
    /// Prefap and FTJ: the source's w, which it divides by the number of partitions to get their
    /// average size. `None` takes the rows that are there, which is what an average is.
    pub window: Option<usize>,
    /// OBT only: where its random assignment begins.
    pub seed: u64,
}

/// How far oversized partitions are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repartition {
    /// Not at all.
    Never,
    /// Each one once, as Algorithm 3 does it; a part of it may still be oversized.
    Once,
    /// Until none is oversized that can be split.
    UntilBalanced,
}

impl PartitionedOptions {
    /// Most partitions that may be asked for: beyond, looking at all pairs of partitions costs
    /// more than what they spare.
    pub const MAX_PARTITIONS: usize = 10_000;

    /// The options of the source's experiments, with sound averages.
    pub const DEFAULT: Self = Self {
        partitions: 10,
        prefilter: true,
        amalgamation: true,
        repartition: Repartition::UntilBalanced,
        ceiling: false,
        window: None,
        seed: 0,
    };
}

impl Default for PartitionedOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}
