//! Daily high prices from the folder that `DOVETAIL_DATA` names.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use dovetail::table::Table;

/// The highs of these stocks on the 754 trading days up to 2019-12-31; `None`, loudly, without
/// the folder.
pub fn highs<const N: usize>(names: [&str; N]) -> Option<[Arc<Table>; N]> {
    let Some(folder) = std::env::var_os("DOVETAIL_DATA") else {
        eprintln!("SKIPPED: DOVETAIL_DATA does not name the folder with the stocks' prices");
        return None;
    };
    Some(names.map(|name| {
        let path = Path::new(&folder).join("stocks").join(format!("{name}.csv"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let rows = text.lines().skip(1).map(|line| line.split_once(',').unwrap());
        let highs: Vec<f64> = rows
            .filter(|(date, _)| *date <= "2019-12-31")
            .map(|(_, high)| high.parse().unwrap())
            .collect();
        assert_eq!(highs.len(), 754, "{name}");
        table(highs)
    }))
}

/// A table of one column called high.
pub fn table(highs: Vec<f64>) -> Arc<Table> {
    let column: ArrayRef = Arc::new(Float64Array::from(highs));
    let batch = RecordBatch::try_from_iter([("high", column)]).unwrap();
    Arc::new(Table::new("test", batch.schema(), vec![batch]).unwrap())
}
