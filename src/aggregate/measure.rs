//! The columns that are folded, each once, and the partials that come of it.

use std::sync::Arc;

use arrow_array::Array;
use arrow_buffer::{ArrowNativeType, NullBuffer, NullBufferBuilder, i256};
use rayon::prelude::*;

use super::finish::Recipe;
use super::fold::{
    ExactSum, Fold, Greatest, Least, Moments, Ranks, RealSum, Spread, Twofold, Values,
};
use super::request::{Aggregates, Function, Resolved};
use crate::Result;
use crate::key::{Column, Keys, NumberType, Numbers, numbers, ordered_keys};
use crate::table::Table;

/// A loop over rows, whatever they are folded into.
pub(crate) trait Kernel: Sync {
    /// The partial of every output row.
    fn run<F: Fold>(&self, fold: &F) -> Result<Vec<F::Partial>>;
}

/// One fold over one column.
pub(crate) enum Measure {
    Values(Values),
    Long(ExactSum<i64>),
    Wide(ExactSum<i128>),
    Widest(ExactSum<i256>),
    Real(RealSum),
    Spread(Spread),
    Least(Least),
    Greatest(Greatest),
}

/// Partials of one measure, one per output row.
pub(crate) enum Partials {
    Small(Vec<u32>),
    Long(Vec<i64>),
    Wide(Vec<i128>),
    Widest(Vec<i256>),
    Real(Vec<Twofold>),
    Moments(Vec<Moments>),
}

impl Measure {
    /// The partials that `kernel` finds.
    pub(crate) fn run(&self, kernel: &impl Kernel) -> Result<Partials> {
        Ok(match self {
            Self::Values(fold) => Partials::Small(kernel.run(fold)?),
            Self::Long(fold) => Partials::Long(kernel.run(fold)?),
            Self::Wide(fold) => Partials::Wide(kernel.run(fold)?),
            Self::Widest(fold) => Partials::Widest(kernel.run(fold)?),
            Self::Real(fold) => Partials::Real(kernel.run(fold)?),
            Self::Spread(fold) => Partials::Moments(kernel.run(fold)?),
            Self::Least(fold) => Partials::Small(kernel.run(fold)?),
            Self::Greatest(fold) => Partials::Small(kernel.run(fold)?),
        })
    }

    /// Merges `more[i]` into `all[slots[i]]`, for every `i`.
    pub(crate) fn merge(&self, all: &mut Partials, slots: &[u32], more: Partials) {
        match (self, all, more) {
            (Self::Values(f), Partials::Small(all), Partials::Small(m)) => merge(f, all, slots, m),
            (Self::Long(f), Partials::Long(all), Partials::Long(m)) => merge(f, all, slots, m),
            (Self::Wide(f), Partials::Wide(all), Partials::Wide(m)) => merge(f, all, slots, m),
            (Self::Widest(f), Partials::Widest(a), Partials::Widest(m)) => merge(f, a, slots, m),
            (Self::Real(f), Partials::Real(all), Partials::Real(m)) => merge(f, all, slots, m),
            (Self::Spread(f), Partials::Moments(a), Partials::Moments(m)) => merge(f, a, slots, m),
            (Self::Least(f), Partials::Small(all), Partials::Small(m)) => merge(f, all, slots, m),
            (Self::Greatest(f), Partials::Small(a), Partials::Small(m)) => merge(f, a, slots, m),
            _ => unreachable!("partials of another measure"),
        }
    }
}

fn merge<F: Fold>(fold: &F, all: &mut [F::Partial], slots: &[u32], more: Vec<F::Partial>) {
    for (&slot, partial) in slots.iter().zip(more) {
        let all = &mut all[slot as usize];
        *all = fold.merge(*all, partial);
    }
}

/// What is folded for some aggregates, and what is made of it.
pub(crate) struct Measures {
    pub(crate) list: Vec<Measure>,
    pub(super) recipes: Vec<Recipe>,
}

impl Measures {
    /// The measures of `aggregates` over the rows of `table`.
    pub(crate) fn new(aggregates: &Aggregates, table: &Table) -> Result<Self> {
        let mut measures = Self { list: vec![], recipes: vec![] };
        let mut known: Vec<((Part, usize), Option<usize>)> = vec![];
        let mut orders: Vec<(usize, Order)> = vec![];
        for Resolved { aggregate, column, label, .. } in &aggregates.list {
            let Some(index) = *column else {
                measures.recipes.push(Recipe::Count { values: None });
                continue;
            };
            let column = || table.key_column(index, label.clone());
            let mut measure = |part: Part| -> Result<Option<usize>> {
                if let Some((_, at)) = known.iter().find(|(key, _)| *key == (part, index)) {
                    return Ok(*at);
                }
                let at = part.measure(&column())?.map(|measure| {
                    measures.list.push(measure);
                    measures.list.len() - 1
                });
                known.push(((part, index), at));
                Ok(at)
            };
            let recipe = match aggregate.function {
                Function::Count => Recipe::Count { values: measure(Part::Values)? },
                Function::Sum | Function::Mean => {
                    let (sum, values) = (measure(Part::Sum)?, measure(Part::Values)?);
                    let sum = sum.unwrap_or_default();
                    match aggregate.function {
                        Function::Sum => Recipe::Sum { sum, values },
                        _ => Recipe::Mean { sum, values, scale: scale_of(&column()) },
                    }
                }
                Function::Var | Function::Std => {
                    let moments = measure(Part::Spread)?.unwrap_or_default();
                    Recipe::Spread { moments, root: aggregate.function == Function::Std }
                }
                Function::Min | Function::Max => {
                    let least = aggregate.function == Function::Min;
                    let order = match orders.iter().find(|(other, _)| *other == index) {
                        Some((_, order)) => order.clone(),
                        None => {
                            let order = Order::new(&column())?;
                            orders.push((index, order.clone()));
                            order
                        }
                    };
                    let ranks = order.ranks;
                    measures.list.push(match least {
                        true => Measure::Least(Least { ranks }),
                        false => Measure::Greatest(Greatest { ranks }),
                    });
                    let rank = measures.list.len() - 1;
                    Recipe::Pick { rank, least, rows: order.rows, column: index }
                }
            };
            measures.recipes.push(recipe);
        }
        Ok(measures)
    }

    /// The columns that aggregates pick values from.
    pub(crate) fn picked(&self) -> Vec<usize> {
        let picked = self.recipes.iter().filter_map(|recipe| match recipe {
            Recipe::Pick { column, .. } => Some(*column),
            _ => None,
        });
        let mut columns: Vec<usize> = picked.collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The partials that `kernel` finds, measure by measure.
    pub(crate) fn run(&self, kernel: &impl Kernel) -> Result<Vec<Partials>> {
        self.list.par_iter().map(|measure| measure.run(kernel)).collect()
    }
}

/// What several aggregates of one column may need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Values,
    Sum,
    Spread,
}

impl Part {
    /// Its measure over `column`; `None` for counting values where none is null.
    fn measure(self, column: &Column) -> Result<Option<Measure>> {
        Ok(match self {
            Self::Values => nulls(column).map(|nulls| Measure::Values(Values { nulls })),
            Self::Sum => {
                let (numbers, nulls) = numbers(column)?;
                Some(sum(numbers, nulls))
            }
            Self::Spread => {
                let (numbers, nulls) = numbers(column)?;
                let values = spread(numbers, nulls.as_ref(), scale_of(column));
                Some(Measure::Spread(Spread { values, nulls }))
            }
        })
    }
}

fn scale_of(column: &Column) -> i8 {
    match NumberType::of(&column.data_type) {
        Some(NumberType::Decimal { scale, .. }) => scale,
        _ => 0,
    }
}

/// The nulls of a column of any type; `None` if there are none.
fn nulls(column: &Column) -> Option<NullBuffer> {
    let mut builder = NullBufferBuilder::new(column.len());
    for chunk in &column.chunks {
        match chunk.logical_nulls() {
            Some(nulls) => builder.append_buffer(&nulls),
            None => builder.append_n_non_nulls(chunk.len()),
        }
    }
    builder.finish().filter(|nulls| nulls.null_count() > 0)
}

/// The narrowest sum that no choice of rows overflows.
fn sum(numbers: Numbers, nulls: Option<NullBuffer>) -> Measure {
    match numbers {
        Numbers::Float(values) => Measure::Real(RealSum { values: zeroed(values, nulls) }),
        Numbers::Long(values) => {
            let values = zeroed(values, nulls);
            let magnitude: u128 = values.iter().map(|value| value.unsigned_abs() as u128).sum();
            match i64::try_from(magnitude) {
                Ok(_) => Measure::Long(ExactSum { values }),
                Err(_) => {
                    let values = values.into_iter().map(i128::from).collect();
                    Measure::Wide(ExactSum { values })
                }
            }
        }
        Numbers::Wide(values) => {
            let values = zeroed(values, nulls);
            let magnitudes = values.iter().map(|value| value.unsigned_abs());
            let magnitude = magnitudes.fold(0, u128::saturating_add);
            if i64::try_from(magnitude).is_ok() {
                let values = values.into_iter().map(|value| value as i64).collect();
                Measure::Long(ExactSum { values })
            } else if i128::try_from(magnitude).is_ok() {
                Measure::Wide(ExactSum { values })
            } else {
                let values = values.into_iter().map(i256::from_i128).collect();
                Measure::Widest(ExactSum { values })
            }
        }
        Numbers::Widest(values) => {
            let values = zeroed(values, nulls);
            match values.iter().map(|value| value.to_i128()).collect::<Option<Vec<_>>>() {
                Some(values) => sum(Numbers::Wide(values), None),
                None => Measure::Widest(ExactSum { values }),
            }
        }
    }
}

/// `values` with zeros where they are null.
fn zeroed<T: ArrowNativeType>(mut values: Vec<T>, nulls: Option<NullBuffer>) -> Vec<T> {
    if let Some(nulls) = nulls {
        for (value, valid) in values.iter_mut().zip(&nulls) {
            *value = if valid { *value } else { T::default() };
        }
    }
    values
}

/// Floats whose distances from each other are those of the numbers: integers and decimals are
/// moved to begin at zero, where floats have digits to spare. What is not finite becomes NaN.
fn spread(numbers: Numbers, nulls: Option<&NullBuffer>, scale: i8) -> Vec<f64> {
    let finite = |value: f64| if value.is_finite() { value } else { f64::NAN };
    match numbers {
        Numbers::Float(values) => values.into_iter().map(finite).collect(),
        Numbers::Long(values) => {
            let least = least(&values, nulls).into();
            let moved = values.into_iter().map(|value| i128::from(value).wrapping_sub(least));
            moved.map(|value| scaled(value as f64, scale)).collect()
        }
        Numbers::Wide(values) => {
            spread(Numbers::Widest(values.into_iter().map(i256::from_i128).collect()), nulls, scale)
        }
        Numbers::Widest(values) => {
            let least = least(&values, nulls);
            let moved = values.into_iter().map(|value| value.wrapping_sub(least));
            moved.map(|value| scaled(wide_to_f64(value), scale)).collect()
        }
    }
}

/// The least value that is not null.
fn least<T: ArrowNativeType + Ord>(values: &[T], nulls: Option<&NullBuffer>) -> T {
    let valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let values = values.iter().enumerate().filter(|(row, _)| valid(*row));
    values.map(|(_, value)| *value).min().unwrap_or_default()
}

/// The float nearest to an integer, or its neighbour.
pub(super) fn wide_to_f64(value: i256) -> f64 {
    if let Some(value) = value.to_i128() {
        return value as f64;
    }
    let (low, high) = value.wrapping_abs().to_parts();
    let magnitude = high as u128 as f64 * 2_f64.powi(128) + low as f64;
    if value.is_negative() { -magnitude } else { magnitude }
}

/// `value` divided by 10^scale.
pub(super) fn scaled(value: f64, scale: i8) -> f64 {
    match scale {
        0 => value,
        1.. => value / 10_f64.powi(scale.into()),
        _ => value * 10_f64.powi(-i32::from(scale)),
    }
}

/// The rows of a column by value; of equal values, which may differ in bits, by row.
#[derive(Clone)]
struct Order {
    ranks: Ranks,
    /// The row of each rank.
    rows: Arc<Vec<u32>>,
}

impl Order {
    fn new(column: &Column) -> Result<Self> {
        let keys = ordered_keys(std::slice::from_ref(column))?.into_iter().next();
        let keys = keys.ok_or_else(|| crate::Error::internal("one column in, none out"))?;
        let mut rows: Vec<u32> = (0..keys.len() as u32).collect();
        rows.retain(|&row| !keys.is_null(row as usize));
        Ok(match &keys.keys {
            Keys::U64(of) => Self::of_keys(rows, of),
            Keys::U128(of) => Self::of_keys(rows, of),
        })
    }

    fn of_keys<K: Ord + Copy + Send>(rows: Vec<u32>, keys: &[K]) -> Self {
        let mut sorted: Vec<(K, u32)> =
            rows.into_iter().map(|row| (keys[row as usize], row)).collect();
        sorted.par_sort_unstable();
        let rows: Vec<u32> = sorted.into_iter().map(|(_, row)| row).collect();
        let mut ranks = vec![0; keys.len()];
        for (&row, rank) in rows.iter().zip(1..) {
            ranks[row as usize] = rank;
        }
        Self { ranks: Arc::new(ranks), rows: Arc::new(rows) }
    }
}
