//! Resolves the request for a chain against the schemas of its inputs.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::super::plan::{Algorithm, BoundTerm};
use super::Chain;
use super::pairwise::Pairwise;
use crate::key::{check_equality, check_ordered};
use crate::operator::{Operator, Plan};
use crate::output::Layout;
use crate::predicate::{Comparison, Term};
use crate::table::Table;
use crate::{Error, Result};

/// What the user asked for: each input is compared with the next.
#[derive(Clone, Debug)]
pub struct ChainSpec {
    /// What the inputs are called, in order.
    pub names: Vec<String>,
    /// All of `links[i]` hold between a row of input i and one of input i + 1.
    pub links: Vec<Vec<Term>>,
    /// Columns that every input has and that are equal in all of them.
    pub by: Vec<String>,
    /// What a name that an earlier input has too gets, before the number of its input.
    pub suffix: String,
    /// How to compute it.
    pub algorithm: Algorithm,
}

/// Where a chain is begun: each input is put into the order of one column, which the input before
/// it on the way compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the first input to the last.
    Down,
    /// From the last input to the first.
    Up,
}

/// A request for a chain that fits its inputs.
#[derive(Clone, Debug)]
pub struct ChainPlan {
    pub(super) spec: ChainSpec,
    pub(super) links: Vec<Vec<BoundTerm>>,
    /// Equality columns of each input.
    pub(super) by: Vec<Vec<usize>>,
    pub(super) way: Way,
    pub(super) layout: Layout,
}

impl ChainPlan {
    /// Checks columns, types and names; reads no data.
    pub fn new(schemas: &[SchemaRef], spec: ChainSpec) -> Result<Self> {
        check_shape(schemas.len(), &spec)?;
        let find = |input: usize, name: &str| {
            schemas[input].index_of(name).map_err(|_| {
                let fields = schemas[input].fields().iter();
                let names: Vec<_> = fields.map(|field| field.name().as_str()).collect();
                let input = &spec.names[input];
                Error::invalid(format!("{input} has no column {name:?}; its columns are {names:?}"))
            })
        };
        let mut links = Vec::with_capacity(spec.links.len());
        for (number, terms) in spec.links.iter().enumerate() {
            let mut link: Vec<BoundTerm> = Vec::with_capacity(terms.len());
            for term in terms {
                let Term::Compare { left, comparison, right } = term else {
                    return Err(Error::unsupported(format!(
                        "chain_join links its inputs by comparisons, not by bands: {term}"
                    )));
                };
                let (left, right) = (find(number, left)?, find(number + 1, right)?);
                let bound = BoundTerm { left, comparison: *comparison, right };
                // What is said twice holds once.
                if !link.contains(&bound) {
                    link.push(bound);
                }
            }
            check_types(schemas, &spec, number, &link)?;
            links.push(link);
        }
        let by = (0..schemas.len())
            .map(|input| spec.by.iter().map(|name| find(input, name)).collect())
            .collect::<Result<Vec<Vec<usize>>>>()?;
        if !spec.by.is_empty() {
            let label = |input: usize, index: usize| label(&spec, schemas, input, index);
            let labels: Vec<Vec<String>> = by
                .iter()
                .enumerate()
                .map(|(input, columns)| columns.iter().map(|&i| label(input, i)).collect())
                .collect();
            let sides: Vec<Vec<_>> = labels
                .iter()
                .zip(&by)
                .zip(schemas)
                .map(|((labels, columns), schema)| {
                    let types = columns.iter().map(|&index| schema.field(index).data_type());
                    labels.iter().map(String::as_str).zip(types).collect()
                })
                .collect();
            check_equality(&sides)?;
        }
        let way = check_algorithm(&spec, &links)?;
        let layout = Layout::of_many(schemas, &by, &spec.suffix)?;
        Ok(Self { spec, links, by, way, layout })
    }

    /// How a column is called in errors.
    pub(super) fn label(&self, inputs: &[Arc<Table>], input: usize, index: usize) -> String {
        let name = inputs[input].schema().field(index).name();
        format!("column {name:?} of {}", self.spec.names[input])
    }
}

fn label(spec: &ChainSpec, schemas: &[SchemaRef], input: usize, index: usize) -> String {
    format!("column {:?} of {}", schemas[input].field(index).name(), spec.names[input])
}

fn check_shape(inputs: usize, spec: &ChainSpec) -> Result<()> {
    if inputs < 2 {
        return Err(Error::invalid(format!(
            "a chain of {inputs} inputs; expected two or more, each compared with the next"
        )));
    }
    if spec.names.len() != inputs || spec.links.len() != inputs - 1 {
        return Err(Error::invalid(format!(
            "a chain of {inputs} inputs with {} names and {} links; expected a name each and a \
             link between each two neighbours",
            spec.names.len(),
            spec.links.len()
        )));
    }
    match spec.links.iter().position(Vec::is_empty) {
        None => Ok(()),
        Some(link) => Err(Error::invalid(format!(
            "no comparison between {} and {}; a chain compares each input with the next",
            spec.names[link],
            spec.names[link + 1]
        ))),
    }
}

/// All columns of a link are encoded together, so all must compare.
fn check_types(
    schemas: &[SchemaRef],
    spec: &ChainSpec,
    number: usize,
    link: &[BoundTerm],
) -> Result<()> {
    let columns = link.iter().flat_map(|term| [(number, term.left), (number + 1, term.right)]);
    let labelled: Vec<(String, _)> = columns
        .map(|(input, index)| {
            (label(spec, schemas, input, index), schemas[input].field(index).data_type())
        })
        .collect();
    check_ordered(&labelled.iter().map(|(label, kind)| (label.as_str(), *kind)).collect::<Vec<_>>())
}

/// Which way round the algorithm can go, if any.
fn check_algorithm(spec: &ChainSpec, links: &[Vec<BoundTerm>]) -> Result<Way> {
    let algorithm = spec.algorithm;
    let between = |link: usize| format!("{} and {}", spec.names[link], spec.names[link + 1]);
    if algorithm != Algorithm::Auto {
        for (number, link) in links.iter().enumerate() {
            let [term] = link[..] else {
                let between = between(number);
                let found = format!("not by {} comparisons between {between}", link.len());
                return Err(algorithm.out_of_scope(&found));
            };
            algorithm.check(term.comparison)?;
        }
        if !spec.by.is_empty() {
            return Err(algorithm.out_of_scope("without equality columns"));
        }
        return Ok(Way::Down);
    }
    for (number, link) in links.iter().enumerate() {
        if link.iter().filter(|term| term.comparison == Comparison::NotEqual).count() > 1 {
            return Err(Error::unsupported(format!(
                "more than one != between {}; a chain takes one at most between neighbours",
                between(number)
            )));
        }
    }
    let one = |column: fn(&BoundTerm) -> usize| {
        let differ = |link: &Vec<BoundTerm>| link.iter().any(|t| column(t) != column(&link[0]));
        links.iter().position(differ)
    };
    match (one(|term| term.right), one(|term| term.left)) {
        (None, _) => Ok(Way::Down),
        (_, None) => Ok(Way::Up),
        (Some(link), Some(other)) => {
            let (link, where_else) = (link.min(other), link.max(other));
            let besides = match link == where_else {
                true => String::new(),
                false => format!(", and the other way round between {}", between(where_else)),
            };
            Err(Error::unsupported(format!(
                "several columns on both sides between {}{besides}; in a chain all comparisons \
                 between neighbours are with one column of the later input, or everywhere with \
                 one of the earlier: join two of the inputs with theta_join first",
                between(link)
            )))
        }
    }
}

impl Plan for ChainPlan {
    fn schema(&self) -> &SchemaRef {
        self.layout.schema()
    }

    fn bind(&self, inputs: &[Arc<Table>]) -> Result<Arc<dyn Operator>> {
        if inputs.len() != self.spec.names.len() {
            return Err(Error::internal("a chain was bound to other inputs than it has"));
        }
        let (plan, inputs) = (self.clone(), inputs.to_vec());
        Ok(match self.spec.algorithm {
            Algorithm::Auto => Arc::new(Chain::new(plan, inputs)),
            _ => Arc::new(Pairwise::new(plan, inputs)?),
        })
    }
}

impl fmt::Display for ChainPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("chain_join")?;
        let mut word = "where";
        for (terms, names) in self.spec.links.iter().zip(self.spec.names.windows(2)) {
            for term in terms {
                // A plan has comparisons only.
                if let Term::Compare { left, comparison, right } = term {
                    write!(f, " {word} {}.{left} {comparison} {}.{right}", names[0], names[1])?;
                    word = "and";
                }
            }
        }
        for (position, name) in self.spec.by.iter().enumerate() {
            write!(f, "{} {name}", if position == 0 { " by" } else { "," })?;
        }
        Ok(())
    }
}
