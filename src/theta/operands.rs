//! The columns that terms compare, by number: those of the inputs and, behind those of the left
//! one, two for each band.
//!
//! A band becomes two comparisons, of the right column with the low and with the high end of the
//! band around each left row. So the kernels know comparisons only.

use super::plan::{BoundBand, BoundTerm, ThetaPlan, label};
use crate::Result;
use crate::key::{Column, band_ends};
use crate::predicate::Comparison;
use crate::table::Table;

impl BoundBand {
    /// The two comparisons that the band numbered `number` is, where the left input has `columns`.
    pub(super) fn lowered(&self, columns: usize, number: usize) -> [BoundTerm; 2] {
        let low = columns + 2 * number;
        [(low, Comparison::LessOrEqual), (low + 1, Comparison::GreaterOrEqual)]
            .map(|(end, comparison)| BoundTerm { left: end, comparison, right: self.right })
    }
}

/// All columns that a plan compares.
pub(super) struct Operands<'a> {
    tables: [&'a Table; 2],
    /// Low and high end of each band.
    ends: Vec<Column>,
}

impl<'a> Operands<'a> {
    pub(super) fn new(plan: &ThetaPlan, left: &'a Table, right: &'a Table) -> Result<Self> {
        let mut operands = Self { tables: [left, right], ends: vec![] };
        for band in &plan.bands {
            let (ours, theirs) = (operands.get(0, band.left), operands.get(1, band.right));
            operands.ends.extend(band_ends(&ours, &theirs, &band.width, band.strict)?);
        }
        Ok(operands)
    }

    /// Column `index` of `side`, 0 for the left one and 1 for the right one.
    pub(super) fn get(&self, side: usize, index: usize) -> Column {
        let table = self.tables[side];
        match index.checked_sub(table.schema().fields().len()) {
            Some(end) => self.ends[end].clone(),
            None => table.key_column(index, label(["left", "right"][side], table.schema(), index)),
        }
    }
}
