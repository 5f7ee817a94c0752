//! Resolves a request against the schemas of its inputs.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::auto::Auto;
use super::nested_loop::NestedLoop;
use super::partitioned::{Partitioned, PartitionedOptions};
use crate::key::{check_band, check_equality, check_ordered};
use crate::operator::{Operator, Plan};
use crate::output::Layout;
use crate::predicate::{Comparison, JoinKind, Term, Width};
use crate::table::Table;
use crate::{Error, Result};

/// How a theta join is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Sort once, then list matches: whatever is fastest.
    Auto,
    /// Compare every pair.
    NestedLoop,
    /// Prefilter, amalgamated partitions, split where oversized.
    Prefap(PartitionedOptions),
    /// FastThetaJoin: Prefap without prefilter and amalgamation.
    Ftj(PartitionedOptions),
    /// Cross filter strategy: partitions against the whole other side.
    Cfs(PartitionedOptions),
    /// One-bucket theta: sorted blocks of equal count, dealt at random.
    Obt(PartitionedOptions),
    /// Range-based method: sorted, ranges between sampled keys.
    Rbm(PartitionedOptions),
}

impl Algorithm {
    /// All algorithms, with their default options.
    pub const ALL: [Self; 7] = [
        Self::Auto,
        Self::NestedLoop,
        Self::Prefap(PartitionedOptions::DEFAULT),
        Self::Ftj(PartitionedOptions::DEFAULT),
        Self::Cfs(PartitionedOptions::DEFAULT),
        Self::Obt(PartitionedOptions::DEFAULT),
        Self::Rbm(PartitionedOptions::DEFAULT),
    ];

    /// The algorithm called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::NestedLoop => "nested_loop",
            Self::Prefap(_) => "prefap",
            Self::Ftj(_) => "ftj",
            Self::Cfs(_) => "cfs",
            Self::Obt(_) => "obt",
            Self::Rbm(_) => "rbm",
        }
    }

    /// Its options, if it partitions.
    pub fn options(self) -> Option<PartitionedOptions> {
        match self {
            Self::Auto | Self::NestedLoop => None,
            Self::Prefap(options)
            | Self::Ftj(options)
            | Self::Cfs(options)
            | Self::Obt(options)
            | Self::Rbm(options) => Some(options),
        }
    }

    /// The same algorithm with these options; one that does not partition has none.
    pub fn with_options(self, options: PartitionedOptions) -> Self {
        match self {
            Self::Auto | Self::NestedLoop => self,
            Self::Prefap(_) => Self::Prefap(options),
            Self::Ftj(_) => Self::Ftj(options),
            Self::Cfs(_) => Self::Cfs(options),
            Self::Obt(_) => Self::Obt(options),
            Self::Rbm(_) => Self::Rbm(options),
        }
    }

    /// The same algorithm with `options`, if any; an error if it has none.
    pub fn given(self, options: Option<PartitionedOptions>) -> Result<Self> {
        match options {
            Some(_) if self.options().is_none() => {
                let partitioned = Self::ALL.into_iter().filter(|other| other.options().is_some());
                let names: Vec<_> = partitioned.map(Self::name).collect();
                Err(Error::invalid(format!(
                    "options= are for the algorithms that partition ({}), not for algorithm={:?}",
                    names.join(", "),
                    self.name()
                )))
            }
            Some(options) => Ok(self.with_options(options)),
            None => Ok(self),
        }
    }

    /// Whether options and comparison are ones that the algorithm can work with.
    pub(super) fn check(self, comparison: Comparison) -> Result<()> {
        let Some(options) = self.options() else { return Ok(()) };
        let most = PartitionedOptions::MAX_PARTITIONS;
        if !(1..=most).contains(&options.partitions) {
            return Err(Error::invalid(format!(
                "partitions={}; expected 1 to {most}",
                options.partitions
            )));
        }
        if options.window == Some(0) {
            return Err(Error::invalid("window=0; expected at least 1 row"));
        }
        if comparison == Comparison::NotEqual {
            return Err(self.out_of_scope(&format!("not by {comparison}")));
        }
        Ok(())
    }

    pub(super) fn out_of_scope(self, found: &str) -> Error {
        Error::unsupported(format!(
            "algorithm={:?} joins by exactly one of <, <=, > and >=, {found}: use the default \
             algorithm",
            self.name()
        ))
    }
}

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct ThetaSpec {
    /// All of these hold for a pair.
    pub terms: Vec<Term>,
    /// Pairs of columns that are equal besides.
    pub by: Vec<(String, String)>,
    /// Which rows come out.
    pub kind: JoinKind,
    /// What a right column's name gets when it is taken.
    pub suffix: String,
    /// How to compute it.
    pub algorithm: Algorithm,
}

/// A comparison between columns by number; see [`operands`](super::operands) for those of bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BoundTerm {
    pub left: usize,
    pub comparison: Comparison,
    pub right: usize,
}

impl BoundTerm {
    /// The same with the sides exchanged.
    pub fn turned(&self) -> Self {
        Self { left: self.right, comparison: self.comparison.turned(), right: self.left }
    }
}

/// A band between columns by number.
#[derive(Clone, Debug)]
pub(super) struct BoundBand {
    pub left: usize,
    pub right: usize,
    pub width: Width,
    pub strict: bool,
}

/// A request that fits its inputs.
#[derive(Clone, Debug)]
pub struct ThetaPlan {
    pub(super) spec: ThetaSpec,
    /// All comparisons, those with the ends of bands among them.
    pub(super) terms: Vec<BoundTerm>,
    pub(super) bands: Vec<BoundBand>,
    pub(super) by: Vec<(usize, usize)>,
    pub(super) layout: Layout,
}

impl ThetaPlan {
    /// Checks columns, types and names; reads no data.
    pub fn new(left: &Schema, right: &Schema, spec: ThetaSpec) -> Result<Self> {
        if spec.kind != JoinKind::Inner && spec.algorithm != Algorithm::Auto {
            return Err(Error::unsupported(format!(
                "algorithm={:?} offers how=\"inner\" only, not how={:?}: use the default algorithm",
                spec.algorithm.name(),
                spec.kind.name()
            )));
        }
        Self::resolve(left, right, spec)
    }

    /// As [`new`](Self::new), whatever the algorithm offers.
    pub(super) fn resolve(left: &Schema, right: &Schema, spec: ThetaSpec) -> Result<Self> {
        let mut terms = Vec::with_capacity(spec.terms.len());
        let mut bands = Vec::new();
        for term in &spec.terms {
            let (Term::Compare { left: l, right: r, .. } | Term::Band { left: l, right: r, .. }) =
                term;
            let (l, r) = (find(left, "left", l)?, find(right, "right", r)?);
            let (left_label, right_label) = (label("left", left, l), label("right", right, r));
            let ours = (&*left_label, left.field(l).data_type());
            let theirs = (&*right_label, right.field(r).data_type());
            match term {
                Term::Compare { comparison, .. } => {
                    check_ordered(&[ours, theirs])?;
                    terms.push(BoundTerm { left: l, comparison: *comparison, right: r });
                }
                Term::Band { width, strict, .. } => {
                    check_band(ours, theirs, width)?;
                    let band =
                        BoundBand { left: l, right: r, width: width.clone(), strict: *strict };
                    terms.extend(band.lowered(left.fields().len(), bands.len()));
                    bands.push(band);
                }
            }
        }
        let mut by = Vec::with_capacity(spec.by.len());
        for (left_name, right_name) in &spec.by {
            let (l, r) = (find(left, "left", left_name)?, find(right, "right", right_name)?);
            check_equality(&[
                vec![(&label("left", left, l), left.field(l).data_type())],
                vec![(&label("right", right, r), right.field(r).data_type())],
            ])?;
            by.push((l, r));
        }
        if spec.algorithm.options().is_some() {
            if !bands.is_empty() {
                return Err(spec.algorithm.out_of_scope("not by a band"));
            }
            match &terms[..] {
                [term] => spec.algorithm.check(term.comparison)?,
                _ => {
                    let found = format!("not by {} comparisons", terms.len());
                    return Err(spec.algorithm.out_of_scope(&found));
                }
            }
            if !by.is_empty() {
                return Err(spec.algorithm.out_of_scope("without equality columns"));
            }
        }
        let layout = Layout::new(left, right, &by, spec.kind, &spec.suffix)?;
        Ok(Self { spec, terms, bands, by, layout })
    }
}

impl Plan for ThetaPlan {
    fn schema(&self) -> &SchemaRef {
        self.layout.schema()
    }

    fn bind(&self, inputs: &[Arc<Table>]) -> Result<Arc<dyn Operator>> {
        let [left, right] = inputs else {
            return Err(Error::internal("a theta join has two inputs"));
        };
        let (plan, left, right) = (self.clone(), Arc::clone(left), Arc::clone(right));
        Ok(match self.spec.algorithm {
            Algorithm::Auto => Arc::new(Auto::new(plan, left, right)),
            Algorithm::NestedLoop => Arc::new(NestedLoop::new(plan, left, right)?),
            Algorithm::Prefap(_)
            | Algorithm::Ftj(_)
            | Algorithm::Cfs(_)
            | Algorithm::Obt(_)
            | Algorithm::Rbm(_) => Arc::new(Partitioned::new(plan, left, right)?),
        })
    }
}

impl fmt::Display for ThetaPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "theta_join {}", self.spec.kind)?;
        for (position, term) in self.spec.terms.iter().enumerate() {
            write!(f, "{} {term}", if position == 0 { " where" } else { " and" })?;
        }
        for (position, (left, right)) in self.spec.by.iter().enumerate() {
            let word = if position == 0 { " by" } else { " and" };
            write!(f, "{word} left.{left} = right.{right}")?;
        }
        Ok(())
    }
}

/// How a column is called in errors.
pub(super) fn label(side: &str, schema: &Schema, index: usize) -> String {
    format!("{side} column {:?}", schema.field(index).name())
}

fn find(schema: &Schema, side: &str, name: &str) -> Result<usize> {
    schema.index_of(name).map_err(|_| {
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        Error::invalid(format!("{side} input has no column {name:?}; its columns are {names:?}"))
    })
}
