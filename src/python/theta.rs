//! Bindings of the theta family.

use std::sync::Arc;

use pyo3::prelude::*;

use super::error::to_python;
use super::input::Input;
use super::join::Join;
use crate::predicate::{Comparison, JoinKind, Term};
use crate::theta::{
    Algorithm, ChainPlan, ChainSpec, PartitionedOptions, Repartition, ThetaPlan, ThetaSpec,
};
use crate::{Error, Result};

/// A term as Python writes it.
#[derive(FromPyObject)]
pub(super) enum TermText {
    /// Left column, comparison, right column.
    Compare(String, String, String),
    /// Left column, `<=` or `<`, right column, width: a number, or nanoseconds as in `10ns`.
    Band(String, String, String, String),
}

/// `dovetail.Partitioning`, read by its attributes.
#[derive(FromPyObject)]
pub(super) struct Partitioning {
    partitions: usize,
    prefilter: bool,
    amalgamation: bool,
    repartition: Splits,
    ceiling: bool,
    window: Option<usize>,
    seed: u64,
}

/// Whether oversized partitions are split, or how: "once".
#[derive(FromPyObject)]
enum Splits {
    Switch(bool),
    #[expect(dead_code, reason = "Python has checked the word, of which there is one")]
    Word(String),
}

impl From<Partitioning> for PartitionedOptions {
    fn from(given: Partitioning) -> Self {
        let Partitioning { partitions, prefilter, amalgamation, ceiling, window, seed, .. } = given;
        let repartition = match given.repartition {
            Splits::Switch(true) => Repartition::UntilBalanced,
            Splits::Switch(false) => Repartition::Never,
            Splits::Word(_) => Repartition::Once,
        };
        Self { partitions, prefilter, amalgamation, repartition, ceiling, window, seed }
    }
}

/// Describes a theta join.
#[pyfunction]
#[pyo3(signature = (left, right, *, terms, by, how, suffix, algorithm, options=None))]
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
    options: Option<Partitioning>,
) -> PyResult<Join> {
    let plan = || -> Result<ThetaPlan> {
        let kind = JoinKind::from_name(how)
            .ok_or_else(|| unknown("how", how, &JoinKind::ALL.map(JoinKind::name)))?;
        let algorithm = to_algorithm(algorithm, options)?;
        let spec = ThetaSpec { terms: to_terms(terms)?, by, kind, suffix, algorithm };
        ThetaPlan::new(&left.get().schema, &right.get().schema, spec)
    };
    let plan = plan().map_err(|error| to_python(py, &error))?;
    Ok(Join::new(Arc::new(plan), vec![left, right]))
}

/// Describes a chain; `links` has the terms between each two neighbours.
#[pyfunction]
#[pyo3(signature = (inputs, *, names, links, by, suffix, algorithm, options=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python call")]
pub(super) fn chain_join(
    py: Python<'_>,
    inputs: Vec<Py<Input>>,
    names: Vec<String>,
    links: Vec<Vec<TermText>>,
    by: Vec<String>,
    suffix: String,
    algorithm: &str,
    options: Option<Partitioning>,
) -> PyResult<Join> {
    let plan = || -> Result<ChainPlan> {
        let algorithm = to_algorithm(algorithm, options)?;
        let links = links.into_iter().map(to_terms).collect::<Result<_>>()?;
        let schemas: Vec<_> = inputs.iter().map(|input| input.get().schema.clone()).collect();
        ChainPlan::new(&schemas, ChainSpec { names, links, by, suffix, algorithm })
    };
    let plan = plan().map_err(|error| to_python(py, &error))?;
    Ok(Join::new(Arc::new(plan), inputs))
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

pub(super) fn to_algorithm(name: &str, options: Option<Partitioning>) -> Result<Algorithm> {
    let names = Algorithm::ALL.map(Algorithm::name);
    let found = Algorithm::from_name(name).ok_or_else(|| unknown("algorithm", name, &names))?;
    found.given(options.map(Into::into))
}

pub(super) fn to_terms(texts: Vec<TermText>) -> Result<Vec<Term>> {
    texts.into_iter().map(to_term).collect()
}

pub(super) fn unknown(what: &str, found: &str, offered: &[&str]) -> Error {
    Error::invalid(format!("unknown {what} {found:?}; expected one of {}", offered.join(", ")))
}
