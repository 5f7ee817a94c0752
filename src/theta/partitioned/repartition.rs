//! Splits oversized partitions into equal widths (Algorithm 3 lines 2 to 9, equation 4).
//!
//! A partition is oversized if it has more rows than its side's partitions have on average, and is
//! then split into as many widths as it has averages. Departures from the printed algorithm, each
//! of which can be switched off:
//!
//! - the average is taken over the rows that are there ([`PartitionedOptions::window`]);
//! - the width is the exact quotient ([`PartitionedOptions::ceiling`]);
//! - parts that are still oversized are split again ([`Repartition::UntilBalanced`]).
//!
//! A partition whose rows all lie in one place cannot be split by range and is split by row count:
//! that spares no comparison, but spreads them.
//!
//! Every split by range separates the least from the greatest position, so splitting again ends.

use std::ops::Range;

use super::boundaries::{cuts, equal_width, extremes};
use super::options::{PartitionedOptions, Repartition};
use super::partition::{Side, by_count};

/// Splits the oversized partitions of `side`.
pub(super) fn repartition(side: &mut Side, options: &PartitionedOptions) {
    if options.repartition == Repartition::Never || side.parts.is_empty() {
        return;
    }
    let rows = options.window.unwrap_or(side.len());
    let average = rows as f64 / side.parts.len() as f64;
    // The next partition is on top, so that parts come out in order.
    let mut todo: Vec<_> = std::mem::take(&mut side.parts);
    todo.reverse();
    while let Some(part) = todo.pop() {
        match split(side, &part, average, options.ceiling) {
            Split::Not => side.parts.push(part),
            Split::ByCount(parts) => side.parts.extend(parts),
            Split::ByRange(parts) => match options.repartition {
                Repartition::UntilBalanced => todo.extend(parts.into_iter().rev()),
                Repartition::Never | Repartition::Once => side.parts.extend(parts),
            },
        }
    }
}

enum Split {
    Not,
    ByRange(Vec<Range<usize>>),
    ByCount(Vec<Range<usize>>),
}

fn split(side: &mut Side, part: &Range<usize>, average: f64, ceiling: bool) -> Split {
    // More parts than rows would be empty ones.
    let count = (part.len() as f64 / average).ceil().min(part.len() as f64) as usize;
    if part.len() as f64 <= average || count < 2 {
        return Split::Not;
    }
    let positions = &side.positions[part.clone()];
    let (least, greatest) = extremes(positions.iter().copied());
    if least == greatest {
        return Split::ByCount(by_count(part.clone(), count));
    }
    let mut bounds = equal_width(positions, count);
    if ceiling && least.is_finite() && greatest.is_finite() {
        let span = ((greatest - least) / count as f64).ceil();
        bounds = (0..count).map(|k| least + k as f64 * span).collect();
        bounds.push(greatest);
        // Boundaries beyond the greatest value cut nothing.
        bounds.retain(|bound| *bound <= greatest);
    }
    let mut parts = side.cut(part.clone(), cuts(&bounds));
    if parts.len() == 1 && !ceiling {
        // Too narrow for floats to lie between: cut off what is greatest.
        parts = side.cut(part.clone(), &[greatest]);
    }
    if parts.len() == 1 { Split::Not } else { Split::ByRange(parts) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array};
    use arrow_schema::DataType;

    use super::*;
    use crate::key::{Column, ordered_keys};

    fn side(values: Vec<f64>) -> Side {
        let array: ArrayRef = Arc::new(Float64Array::from(values));
        let column = Column::new("test", DataType::Float64, vec![array]);
        Side::new(&ordered_keys(&[column]).unwrap()[0])
    }

    fn sizes(values: Vec<f64>, first: &[f64], options: PartitionedOptions) -> Vec<usize> {
        let mut side = side(values);
        side.parts = side.cut(0..side.len(), first);
        repartition(&mut side, &options);
        let mut end = 0;
        for part in &side.parts {
            assert_eq!(part.start, end);
            end = part.end;
        }
        assert_eq!(end, side.len());
        side.parts.iter().map(ExactSizeIterator::len).collect()
    }

    const ONCE: PartitionedOptions =
        PartitionedOptions { repartition: Repartition::Once, ..PartitionedOptions::DEFAULT };

    #[test]
    fn equation_four() {
        // Partitions of 9, 2 and 1: the average is 4, and 9 rows are split into three widths.
        let values = vec![0., 1., 2., 3., 4., 5., 6., 7., 9., 10., 11., 20.];
        assert_eq!(sizes(values.clone(), &[10.0, 20.0], ONCE), [3, 3, 3, 2, 1]);
        // The source's w of 36 makes the average 12: nothing is oversized.
        let window = PartitionedOptions { window: Some(36), ..ONCE };
        assert_eq!(sizes(values, &[10.0, 20.0], window), [9, 2, 1]);
    }

    #[test]
    fn the_ceiling_keeps_narrow_partitions_whole() {
        let values: Vec<f64> = (0..10).map(|i| f64::from(i) / 10.0).chain([5.0, 6.0]).collect();
        assert_eq!(sizes(values.clone(), &[1.0, 6.0], ONCE), [3, 3, 4, 1, 1]);
        let ceiling = PartitionedOptions { ceiling: true, ..PartitionedOptions::DEFAULT };
        assert_eq!(sizes(values, &[1.0, 6.0], ceiling), [10, 1, 1]);
    }

    #[test]
    fn equal_values_are_split_by_count() {
        assert_eq!(
            sizes([vec![7.0; 10], vec![9.0, 10.0]].concat(), &[9.0, 10.0], ONCE),
            [3, 3, 4, 1, 1]
        );
    }

    #[test]
    fn skew_is_split_until_balanced() {
        // Powers of two: equal widths cut off a few at a time.
        let values: Vec<f64> = (0..64).map(|i| f64::exp2(f64::from(i))).chain([1e30]).collect();
        let once = sizes(values.clone(), &[1e29], ONCE);
        assert_eq!(once, [62, 2, 1]);
        let balanced = sizes(values, &[1e29], PartitionedOptions::DEFAULT);
        assert!(balanced.iter().all(|&size| size <= 33), "{balanced:?}");
    }

    #[test]
    fn neighbouring_floats_and_infinities_can_be_split() {
        let one = 1_f64.next_up();
        let values = vec![1.0, one, 1.0, one, 1.0, one, f64::INFINITY, f64::NEG_INFINITY];
        let narrow = PartitionedOptions { window: Some(1), ..PartitionedOptions::DEFAULT };
        assert_eq!(sizes(values, &[], narrow), [1; 8]);
    }
}
