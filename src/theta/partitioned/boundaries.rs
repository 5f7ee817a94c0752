//! Where partitions begin and end: equal widths (equation 3), amalgamated (Algorithm 2).
//!
//! Boundaries are positions, that is floats, and nothing but the size of partitions depends on
//! how they are rounded: which partitions can match is asked of the keys that they hold.

/// The boundaries of `count` equal widths over `positions`, ascending: least, …, greatest.
///
/// Infinite positions (NaN counts as one) would make every width infinite. They get a partition of
/// their own, outside the widths of the others.
pub(super) fn equal_width(positions: &[f64], count: usize) -> Vec<f64> {
    let mut bounds = Vec::new();
    let finite = positions.iter().copied().filter(|position| position.is_finite());
    let (least, greatest) = extremes(finite);
    let (below, above) = extremes(positions.iter().copied());
    if least <= greatest {
        bounds.extend((0..count).map(|k| step(least, greatest, k, count)));
        // The last partition is closed: its greatest value is in it, infinity is not.
        bounds.push(if above.is_finite() { greatest } else { greatest.next_up() });
    } else if below < above {
        bounds.push(0.0);
    }
    // Rounding may carry a boundary past the greatest position; there is nothing to cut there.
    let last = bounds.last().copied().unwrap_or(above);
    bounds.retain(|bound| *bound <= last);
    if below < least && below <= above {
        bounds.insert(0, below);
    }
    if above > greatest {
        bounds.push(above);
    }
    bounds.dedup();
    bounds
}

/// The boundaries of both, in order.
pub(super) fn amalgamate(left: &[f64], right: &[f64]) -> Vec<f64> {
    let mut bounds = [left, right].concat();
    bounds.sort_unstable_by(f64::total_cmp);
    bounds.dedup();
    bounds
}

/// Where one partition ends and the next begins: all boundaries but the outermost.
pub(super) fn cuts(bounds: &[f64]) -> &[f64] {
    match bounds {
        [_, inner @ .., _] => inner,
        _ => &[],
    }
}

/// `k` of `count` equal steps from `least` to `greatest`, even where that way is too long for a
/// float.
fn step(least: f64, greatest: f64, k: usize, count: usize) -> f64 {
    let (k, count, whole) = (k as f64, count as f64, greatest - least);
    if whole.is_finite() {
        least + k * (whole / count)
    } else {
        least * ((count - k) / count) + greatest * (k / count)
    }
}

/// Least and greatest; +∞ and −∞ if there is nothing.
pub(super) fn extremes(positions: impl Iterator<Item = f64>) -> (f64, f64) {
    positions.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, greatest), position| {
        (least.min(position), greatest.max(position))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3.3: after prefiltering, R spans [1, 9] and S [0, 8]; p = 3.
    #[test]
    fn the_worked_example_of_the_source() {
        let (r, s) = (equal_width(&[9.0, 4.0, 1.0], 3), equal_width(&[0.0, 8.0], 3));
        let rounded = |bounds: &[f64]| -> Vec<String> {
            bounds.iter().map(|bound| format!("{bound:.2}")).collect()
        };
        assert_eq!(rounded(&r), ["1.00", "3.67", "6.33", "9.00"]);
        assert_eq!(rounded(&s), ["0.00", "2.67", "5.33", "8.00"]);
        let both = amalgamate(&r, &s);
        assert_eq!(
            rounded(&both),
            ["0.00", "1.00", "2.67", "3.67", "5.33", "6.33", "8.00", "9.00"]
        );
        assert_eq!(cuts(&both), &both[1..7]);
    }

    #[test]
    fn nothing_one_value_and_infinities() {
        const INFINITY: f64 = f64::INFINITY;
        assert!(equal_width(&[], 3).is_empty());
        assert_eq!(equal_width(&[2.0, 2.0], 3), [2.0]);
        assert_eq!(equal_width(&[INFINITY], 3), [INFINITY]);
        assert_eq!(equal_width(&[-INFINITY, INFINITY], 2), [-INFINITY, 0.0, INFINITY]);
        assert_eq!(equal_width(&[1.0, 3.0, -INFINITY], 2), [-INFINITY, 1.0, 2.0, 3.0]);
        let above = 3_f64.next_up();
        assert_eq!(equal_width(&[1.0, INFINITY, 3.0], 2), [1.0, 2.0, above, INFINITY]);
        let wide = equal_width(&[f64::MIN, f64::MAX], 4);
        assert!(wide.len() == 5 && wide.is_sorted() && wide[2] == 0.0, "{wide:?}");
        assert!(wide.iter().all(|bound| bound.is_finite()), "{wide:?}");
    }
}
