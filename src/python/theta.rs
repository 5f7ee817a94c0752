//! Binding of the theta family.

use std::sync::Arc;

use pyo3::prelude::*;

use super::error::to_python;
use super::input::Input;
use super::join::Join;
use crate::predicate::{Comparison, JoinKind, Term};
use crate::theta::{Algorithm, ThetaPlan, ThetaSpec};
use crate::{Error, Result};

/// Describes a theta join; `terms` are (left column, comparison, right column).
#[pyfunction]
#[pyo3(signature = (left, right, *, terms, by, how, suffix, algorithm))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python call")]
pub(super) fn theta_join(
    py: Python<'_>,
    left: Py<Input>,
    right: Py<Input>,
    terms: Vec<(String, String, String)>,
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

fn to_term((left, symbol, right): (String, String, String)) -> Result<Term> {
    let comparison = Comparison::from_symbol(&symbol)
        .ok_or_else(|| unknown("comparison", &symbol, &Comparison::ALL.map(Comparison::symbol)))?;
    Ok(Term { left, comparison, right })
}

fn unknown(what: &str, found: &str, offered: &[&str]) -> Error {
    Error::invalid(format!("unknown {what} {found:?}; expected one of {}", offered.join(", ")))
}
