//! What is kept of some rows of one column, so that more rows can be added: partial states.
//!
//! A [`Fold`] turns one row into a partial and merges two partials; both are plain values of a few
//! bytes, so loops over them are typed. Merging is associative and commutative up to rounding, and
//! merging with the identity changes nothing.
//!
//! | fold | partial | can be subtracted |
//! |---|---|---|
//! | [`Rows`] | how many rows | yes |
//! | [`Values`] | how many values are not null | yes |
//! | [`ExactSum`] | their sum, exactly | yes, of 64 and 128 bits |
//! | [`RealSum`] | their sum, and what rounding lost | no: NaN and infinity would stay |
//! | [`Spread`] | count, mean, sum of squared distances from it | no: digits would cancel |
//! | [`Least`], [`Greatest`] | a rank | no |

use std::ops::{Add, Sub};
use std::sync::Arc;

use arrow_buffer::{NullBuffer, i256};

/// How rows of one column are folded.
pub(crate) trait Fold: Sync {
    /// What is kept of some rows.
    type Partial: Copy + PartialEq + Send + Sync;

    /// Whether [`subtract`](Self::subtract) works.
    const SUBTRACTS: bool = false;

    /// What is kept of no rows.
    fn identity(&self) -> Self::Partial;

    /// What is kept of one row.
    fn of(&self, row: u32) -> Self::Partial;

    /// What is kept of the rows of both.
    fn merge(&self, a: Self::Partial, b: Self::Partial) -> Self::Partial;

    /// What is kept of the rows of `whole` without those of `part`.
    fn subtract(&self, whole: Self::Partial, _part: Self::Partial) -> Self::Partial {
        whole
    }
}

/// How many rows.
pub(crate) struct Rows;

impl Fold for Rows {
    type Partial = u32;
    const SUBTRACTS: bool = true;

    fn identity(&self) -> u32 {
        0
    }

    fn of(&self, _row: u32) -> u32 {
        1
    }

    fn merge(&self, a: u32, b: u32) -> u32 {
        a + b
    }

    fn subtract(&self, whole: u32, part: u32) -> u32 {
        whole - part
    }
}

/// How many values are not null.
pub(crate) struct Values {
    pub(super) nulls: NullBuffer,
}

impl Fold for Values {
    type Partial = u32;
    const SUBTRACTS: bool = true;

    fn identity(&self) -> u32 {
        0
    }

    fn of(&self, row: u32) -> u32 {
        u32::from(self.nulls.is_valid(row as usize))
    }

    fn merge(&self, a: u32, b: u32) -> u32 {
        a + b
    }

    fn subtract(&self, whole: u32, part: u32) -> u32 {
        whole - part
    }
}

/// A sum of integers. Nulls are zeros here.
pub(crate) struct ExactSum<T> {
    pub(super) values: Vec<T>,
}

/// Integers that the sum of all values' magnitudes fits into, so that no part of it overflows.
pub(crate) trait Roomy:
    Copy + Default + PartialEq + Send + Sync + Add<Output = Self> + Sub<Output = Self>
{
}

impl Roomy for i64 {}
impl Roomy for i128 {}

impl<T: Roomy> Fold for ExactSum<T> {
    type Partial = T;
    const SUBTRACTS: bool = true;

    fn identity(&self) -> T {
        T::default()
    }

    fn of(&self, row: u32) -> T {
        self.values[row as usize]
    }

    fn merge(&self, a: T, b: T) -> T {
        a + b
    }

    fn subtract(&self, whole: T, part: T) -> T {
        whole - part
    }
}

/// The sum of 256-bit integers that overflowed. No decimal has this value.
pub(super) const OVERFLOWED: i256 = i256::MIN;

/// There is no wider integer to choose, so an overflow is remembered.
impl Fold for ExactSum<i256> {
    type Partial = i256;

    fn identity(&self) -> i256 {
        i256::ZERO
    }

    fn of(&self, row: u32) -> i256 {
        self.values[row as usize]
    }

    fn merge(&self, a: i256, b: i256) -> i256 {
        if a == OVERFLOWED || b == OVERFLOWED {
            return OVERFLOWED;
        }
        a.checked_add(b).unwrap_or(OVERFLOWED)
    }
}

/// A sum of floats as the sum of two: the rounded one, and what rounding lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Twofold {
    sum: f64,
    lost: f64,
}

impl Twofold {
    /// The sum, rounded once more. NaN and infinity are as plain addition has them.
    pub(super) fn total(self) -> f64 {
        let total = self.sum + self.lost;
        // What an infinite sum lost is not a number.
        if total.is_nan() { self.sum } else { total }
    }
}

/// A sum of floats. Nulls are zeros here.
pub(crate) struct RealSum {
    pub(super) values: Vec<f64>,
}

impl Fold for RealSum {
    type Partial = Twofold;

    fn identity(&self) -> Twofold {
        Twofold::default()
    }

    fn of(&self, row: u32) -> Twofold {
        Twofold { sum: self.values[row as usize], lost: 0.0 }
    }

    fn merge(&self, a: Twofold, b: Twofold) -> Twofold {
        let sum = a.sum + b.sum;
        // Knuth's two-sum: what was lost of a and of b.
        let of_b = sum - a.sum;
        let lost = (a.sum - (sum - of_b)) + (b.sum - of_b);
        Twofold { sum, lost: (a.lost + b.lost) + lost }
    }
}

/// Count, mean and spread of some numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    pub(super) count: f64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    pub(super) squares: f64,
}

/// The spread of floats; what is not finite is NaN here, as are nulls, which are left out.
pub(crate) struct Spread {
    pub(super) values: Vec<f64>,
    pub(super) nulls: Option<NullBuffer>,
}

impl Fold for Spread {
    type Partial = Moments;

    fn identity(&self) -> Moments {
        Moments::default()
    }

    fn of(&self, row: u32) -> Moments {
        match &self.nulls {
            Some(nulls) if nulls.is_null(row as usize) => Moments::default(),
            _ => Moments { count: 1.0, mean: self.values[row as usize], squares: 0.0 },
        }
    }

    /// Chan, Golub and LeVeque: no difference of large sums anywhere.
    fn merge(&self, a: Moments, b: Moments) -> Moments {
        if a.count == 0.0 {
            return b;
        }
        if b.count == 0.0 {
            return a;
        }
        let count = a.count + b.count;
        let apart = b.mean - a.mean;
        Moments {
            count,
            mean: a.mean + apart * (b.count / count),
            squares: a.squares + b.squares + apart * apart * (a.count * b.count / count),
        }
    }
}

/// The rank of each row among the values of its column, from 1 on; 0 for nulls.
pub(crate) type Ranks = Arc<Vec<u32>>;

/// The least rank; beyond all ranks where there is none.
pub(crate) struct Least {
    pub(super) ranks: Ranks,
}

/// What [`Least`] keeps of no values.
pub(super) const NONE_LEAST: u32 = u32::MAX;

impl Fold for Least {
    type Partial = u32;

    fn identity(&self) -> u32 {
        NONE_LEAST
    }

    fn of(&self, row: u32) -> u32 {
        match self.ranks[row as usize] {
            0 => NONE_LEAST,
            rank => rank,
        }
    }

    fn merge(&self, a: u32, b: u32) -> u32 {
        a.min(b)
    }
}

/// The greatest rank; 0 where there is none.
pub(crate) struct Greatest {
    pub(super) ranks: Ranks,
}

impl Fold for Greatest {
    type Partial = u32;

    fn identity(&self) -> u32 {
        0
    }

    fn of(&self, row: u32) -> u32 {
        self.ranks[row as usize]
    }

    fn merge(&self, a: u32, b: u32) -> u32 {
        a.max(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(values: &[f64]) -> f64 {
        let fold = RealSum { values: values.to_vec() };
        let all = (0..values.len() as u32).map(|row| fold.of(row));
        all.fold(fold.identity(), |sum, value| fold.merge(sum, value)).total()
    }

    #[test]
    fn sums_of_floats_keep_what_rounding_lost() {
        assert_eq!(real(&[1e16, 1.0, 1.0, -1e16]), 2.0);
        assert_eq!(real(&[0.1; 10]), 1.0);
        assert_eq!(real(&[]), 0.0);
    }

    #[test]
    fn sums_of_floats_know_infinity_and_nan() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert_eq!(real(&[1.0, inf, 2.0]), inf);
        assert_eq!(real(&[-inf, 1.0, -inf]), -inf);
        assert!(real(&[inf, -inf]).is_nan());
        assert!(real(&[1.0, nan]).is_nan());
        assert_eq!(real(&[1e308, 1e308]), inf);
    }

    #[test]
    fn spread_is_sound_far_from_zero() {
        let values: Vec<f64> = (0..1000).map(|i| 1e9 + f64::from(i % 2)).collect();
        let fold = Spread { values, nulls: None };
        let all = (0..1000).map(|row| fold.of(row));
        let moments = all.fold(fold.identity(), |a, b| fold.merge(a, b));
        let variance = moments.squares / (moments.count - 1.0);
        assert!((variance - 250.0 / 999.0).abs() < 1e-9, "{variance}");
    }

    #[test]
    fn an_overflow_is_not_forgotten() {
        let fold = ExactSum { values: vec![i256::MAX, i256::ONE, i256::MINUS_ONE] };
        let all = (0..3).map(|row| fold.of(row));
        assert_eq!(all.fold(fold.identity(), |a, b| fold.merge(a, b)), OVERFLOWED);
    }
}
