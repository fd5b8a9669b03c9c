//! Which paths there are: pure, from the bound query and the schema.

use super::path::{Access, EntryRange, GetPath, IndexPath, Path};
use crate::error::Result;
use crate::query::bind::{BoundQuery, Column, Predicate, Slot, Test};
use crate::schema::domain::Domain;
use crate::schema::{Code, Definition, Operand, TableSchema};
use std::sync::Arc;

/// The most ranges that are read for terms beyond the first: so many combinations of the values of IN lists.
const MAX_RANGES: usize = 4_096;
/// The most ways in which one definition is considered for one AND, when it tests arrays several times.
const MAX_VARIANTS: usize = 16;

/// Once so many paths are known, the first way that is found for a part of a query is taken; a query long enough to have
/// more would take longer to plan than to answer.
const MAX_PATHS: usize = 200;

/// Every path that can find the rows of a query.
#[derive(Debug, Clone)]
pub(crate) struct Candidates {
    /// The slots of the query, in its order, then further terms of the definitions used.
    pub(crate) slots: Vec<Slot>,
    /// The paths, numbered.
    pub(crate) paths: Vec<Path>,
    /// The alternatives; none when only a scan answers.
    pub(crate) roots: Vec<Access>,
}

/// Finds every path of a query.
pub(crate) fn candidates(query: &BoundQuery, schema: &TableSchema) -> Candidates {
    let mut finder =
        Finder { schema, found: Candidates { slots: query.slots.clone(), paths: Vec::new(), roots: Vec::new() } };
    let roots = finder.accesses(&query.predicate, &[]);
    Candidates { roots, ..finder.found }
}

struct Finder<'a> {
    schema: &'a TableSchema,
    found: Candidates,
}

impl Finder<'_> {
    /// The ways to find the rows that satisfy `predicate` and all of `outer`; only the former leads to them.
    fn accesses(&mut self, predicate: &Predicate, outer: &[Predicate]) -> Vec<Access> {
        let conjuncts = predicate.conjuncts();
        let tests: Vec<(usize, &Arc<Test>)> = conjuncts
            .iter()
            .enumerate()
            .filter_map(|(i, c)| if let Predicate::Test(test) = c { Some((i, test)) } else { None })
            .collect();
        if predicate.is_false() {
            return vec![Access::Nothing];
        }
        let rest = |used: &[usize]| {
            let unused = conjuncts.iter().enumerate().filter(|(i, _)| !used.contains(i)).map(|(_, c)| c);
            outer.iter().chain(unused).cloned().collect::<Vec<_>>()
        };
        let mut ways = Vec::new();
        for (_, test) in &tests {
            if test.column == Column::RowKey
                && let Some(keys) = test.some().and_then(Domain::points)
            {
                let path = GetPath { keys: keys.into_iter().cloned().collect(), text: test.text.clone() };
                ways.push(self.add(Path::Get(path)));
            }
        }
        let schema = self.schema;
        // A partial definition has not all rows.
        for definition in schema.active_definitions().filter(|d| d.filter.is_none()) {
            if self.is_enough(&ways) {
                break;
            }
            for shape in shapes(definition, &self.tests_by_term(definition, &tests)) {
                // A definition whose attributes are not all declared cannot be verified.
                let Some(terms) = definition.terms.iter().map(|term| self.slot(&term.operand)).collect() else { break };
                let plain = |code: &Code| Operand { code: *code, functions: Vec::new() };
                let Some(covered) = definition.covered.iter().map(|code| self.slot(&plain(code))).collect() else {
                    break;
                };
                let path = IndexPath {
                    definition: Arc::new(definition.clone()),
                    terms,
                    covered,
                    ranges: shape.ranges,
                    fixed: shape.fixed,
                    restricted: shape.used.len(),
                    text: shape.used.iter().map(|(_, t)| t.text.as_str()).collect::<Vec<_>>().join(" AND "),
                    residual: Predicate::And(rest(&shape.used.iter().map(|(i, _)| *i).collect::<Vec<_>>())),
                };
                ways.push(self.add(Path::Index(path)));
            }
        }
        for (i, conjunct) in conjuncts.iter().enumerate() {
            if self.is_enough(&ways) {
                break;
            }
            if let Predicate::Or(arms) = conjunct {
                let outer = rest(&[i]);
                let arms: Vec<Vec<Access>> = arms.iter().map(|arm| self.accesses(arm, &outer)).collect();
                if arms.iter().all(|ways| !ways.is_empty()) {
                    ways.push(Access::Union(arms));
                }
            }
        }
        ways
    }

    fn is_enough(&self, ways: &[Access]) -> bool {
        !ways.is_empty() && self.found.paths.len() >= MAX_PATHS
    }

    fn add(&mut self, path: Path) -> Access {
        self.found.paths.push(path);
        Access::Path(self.found.paths.len() - 1)
    }

    fn slot(&mut self, operand: &Operand) -> Option<usize> {
        let known = self.found.slots.iter().position(|s| s.operand() == *operand);
        known.or_else(|| {
            let attribute = self.schema.attribute_by_code(operand.code)?.clone();
            self.found.slots.push(Slot { attribute, functions: operand.functions.clone() });
            Some(self.found.slots.len() - 1)
        })
    }

    /// For each term of a definition the tests of its attribute, with their places among the conjuncts.
    fn tests_by_term<'t>(
        &self,
        definition: &Definition,
        tests: &[(usize, &'t Arc<Test>)],
    ) -> Vec<Vec<(usize, &'t Arc<Test>)>> {
        let of = |operand: &Operand| {
            let tested = |test: &Test| match test.column {
                Column::Attribute(slot) => test.some().is_some() && self.found.slots[slot].operand() == *operand,
                Column::RowKey => false,
            };
            tests.iter().filter(|(_, test)| tested(test)).copied().collect()
        };
        definition.terms.iter().map(|term| of(&term.operand)).collect()
    }
}

/// One way to use a definition.
#[derive(Clone)]
struct Shape<'t> {
    /// The test that restricts each leading term.
    used: Vec<(usize, &'t Arc<Test>)>,
    /// The encoded leading terms.
    prefixes: Vec<Vec<u8>>,
    fixed: usize,
    ranges: Vec<EntryRange>,
}

/// The ways to use a definition: values for its leading terms, then perhaps ranges of the next one. Of several tests of
/// one array each is a way of its own, for one entry holds one element and need satisfy only one of them.
fn shapes<'t>(definition: &Definition, tests: &[Vec<(usize, &'t Arc<Test>)>]) -> Vec<Shape<'t>> {
    let mut open = vec![Shape { used: Vec::new(), prefixes: vec![Vec::new()], fixed: 0, ranges: Vec::new() }];
    let mut closed = Vec::new();
    for tests in tests {
        let mut next = Vec::new();
        for shape in open {
            let mut longer = false;
            for (place, test) in tests {
                if next.len() + closed.len() >= MAX_VARIANTS {
                    break;
                }
                match extended(definition, &shape, *place, test) {
                    Some(shape) if shape.ranges.is_empty() => next.push(shape),
                    Some(shape) => closed.push(shape),
                    None => continue,
                }
                longer = true;
            }
            if !longer && !shape.used.is_empty() {
                closed.push(shape);
            }
        }
        open = next;
    }
    closed.extend(open);
    for shape in &mut closed {
        if shape.ranges.is_empty() {
            shape.ranges = shape.prefixes.iter().map(|terms| EntryRange::prefix(definition, terms)).collect();
        }
    }
    closed
}

/// The shape with its next term restricted by a test, if that can be read.
fn extended<'t>(definition: &Definition, shape: &Shape<'t>, place: usize, test: &'t Arc<Test>) -> Option<Shape<'t>> {
    let mut longer = shape.clone();
    longer.used.push((place, test));
    let first = shape.used.is_empty();
    let fits = |n: usize| first || shape.prefixes.len().saturating_mul(n) <= MAX_RANGES;
    let domain = test.some()?;
    if let Some(points) = domain.points()
        && fits(points.len())
    {
        let key_form = definition.shape(shape.used.len());
        // The binder encodes whole terms.
        let forms: Vec<_> = points.iter().map(|v| key_form.encode(v)).collect::<Result<_>>().ok()?;
        if points.len() == 1 && shape.fixed == shape.used.len() {
            longer.fixed += 1;
        }
        longer.prefixes = shape
            .prefixes
            .iter()
            .flat_map(|p| forms.iter().map(move |v| [p.as_slice(), v.as_ref()].concat()))
            .collect();
        return Some(longer);
    }
    let intervals = domain.intervals();
    // The entries of a definition that is not ordered are spread by their first term.
    if (first && !definition.ordered) || !fits(intervals.len()) {
        return None;
    }
    let place = shape.used.len();
    longer.ranges = shape
        .prefixes
        .iter()
        .flat_map(|p| intervals.iter().map(move |i| EntryRange::interval(definition, p, place, i)))
        .collect::<Result<_>>()
        .ok()?;
    if definition.shape(place).descending {
        // Apart from each other and in the order of the keys.
        longer.ranges.reverse();
    }
    Some(longer)
}
