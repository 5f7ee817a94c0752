//! Binding of the theta family.

use std::sync::Arc;

use pyo3::prelude::*;

use super::error::to_python;
use super::input::Input;
use super::join::Join;
use crate::predicate::{Comparison, JoinKind, Term};
use crate::theta::{Algorithm, ThetaPlan, ThetaSpec};
use crate::{Error, Result};

/// A term as Python writes it.
#[derive(FromPyObject)]
pub(super) enum TermText {
    /// Left column, comparison, right column.
    Compare(String, String, String),
    /// Left column, `<=` or `<`, right column, width: a number, or nanoseconds as in `10ns`.
    Band(String, String, String, String),
}

/// Describes a theta join.
#[pyfunction]
#[pyo3(signature = (left, right, *, terms, by, how, suffix, algorithm))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python call")]
pub(super) fn theta_join(
    py: Python<'_>,
    left: Py<Input>,
    right: Py<Input>,
    terms: Vec<TermText>,
    by: Vec<(String, String)>,
    how: &str,
    suffix: String,
    algorithm: &str,
) -> PyResult<Join> {
    let plan = || -> Result<ThetaPlan> {
        let kind = JoinKind::from_name(how)
            .ok_or_else(|| unknown("how", how, &JoinKind::ALL.map(JoinKind::name)))?;
        let algorithm = Algorithm::from_name(algorithm)
            .ok_or_else(|| unknown("algorithm", algorithm, &Algorithm::ALL.map(Algorithm::name)))?;
        let terms = terms.into_iter().map(to_term).collect::<Result<_>>()?;
        let spec = ThetaSpec { terms, by, kind, suffix, algorithm };
        ThetaPlan::new(&left.get().schema, &right.get().schema, spec)
    };
    let plan = plan().map_err(|error| to_python(py, &error))?;
    Ok(Join::new(Arc::new(plan), vec![left, right]))
}

fn to_term(text: TermText) -> Result<Term> {
    Ok(match text {
        TermText::Compare(left, symbol, right) => {
            let comparison = Comparison::from_symbol(&symbol).ok_or_else(|| {
                unknown("comparison", &symbol, &Comparison::ALL.map(Comparison::symbol))
            })?;
            Term::Compare { left, comparison, right }
        }
        TermText::Band(left, symbol, right, width) => {
            let strict = match symbol.as_str() {
                "<" => true,
                "<=" => false,
                other => return Err(unknown("comparison", other, &["<", "<="])),
            };
            Term::Band { left, right, width: width.parse()?, strict }
        }
    })
}

fn unknown(what: &str, found: &str, offered: &[&str]) -> Error {
    Error::invalid(format!("unknown {what} {found:?}; expected one of {}", offered.join(", ")))
}
