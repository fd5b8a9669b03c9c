//! Which paths there are: pure, from the bound query and the schema.

use super::key_range::{KeyRange, key_range};
use super::path::{Access, EntryRange, GetPath, IndexPath, Path, row_range};
use super::{partial, rows};
use crate::error::Result;
use crate::query::bind::{BoundQuery, Column, Output, Predicate, Slot, Test};
use crate::schema::domain::{Domain, Edge};
use crate::schema::{Code, Condition, Definition, Key, Operand, TableSchema, term};
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
    /// At most so many rows are asked for.
    pub(crate) goal: Option<u64>,
}

/// Finds every path of a query.
pub(crate) fn candidates(query: &BoundQuery, schema: &TableSchema) -> Candidates {
    let goal = query.limit.filter(|_| query.output != Output::Count).map(|limit| limit.saturating_add(query.offset));
    let found = Candidates { slots: query.slots.clone(), paths: Vec::new(), roots: Vec::new(), goal };
    let mut finder = Finder { schema, found };
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
            if test.column != Column::RowKey {
                continue;
            }
            let Some(domain) = test.some() else { continue };
            if let Some(keys) = domain.points() {
                let path = GetPath { keys: keys.into_iter().cloned().collect(), text: test.text.clone() };
                ways.push(self.add(Path::Get(path)));
            } else if is_bounded(domain) {
                let all = Predicate::And(rest(&[]));
                let ranges = domain.intervals().iter().map(row_range).collect();
                let path = rows::path(&all, &self.found.slots, ranges, Some(test.text.clone()));
                ways.push(self.add(Path::Rows(path)));
            }
        }
        let schema = self.schema;
        ways.extend(schema.key().and_then(|key| self.by_key_parts(key, &tests, rest(&[]))));
        let all = [conjuncts, outer].concat();
        for definition in schema.active_definitions() {
            if self.is_enough(&ways) {
                break;
            }
            if !definition.is_of_this_unicode() {
                continue;
            }
            // A partial definition has not all rows.
            if let Some(filter) = &definition.filter
                && !partial::is_implied(&filter.tree, &all, &self.found.slots)
            {
                continue;
            }
            for shape in shapes(definition, &self.tests_by_term(definition, &tests)) {
                // A definition whose attributes are not all declared cannot be verified.
                let Some(terms) = definition.terms.iter().map(|term| self.slot(&term.operand)).collect() else { break };
                let plain = |code: &Code| Operand { code: *code, functions: Vec::new() };
                let Some(covered) = definition.covered.iter().map(|code| self.slot(&plain(code))).collect() else {
                    break;
                };
                let filter = match &definition.filter {
                    Some(filter) => partial::predicate(&filter.tree, &mut |operand| self.slot(operand)),
                    None => Some(Predicate::And(Vec::new())),
                };
                let Some(filter) = filter else { break };
                let answered = |i: usize| {
                    let told = definition.filter.as_ref();
                    shape.answers(i) || told.is_some_and(|f| partial::tells(&f.tree, &conjuncts[i], &self.found.slots))
                };
                let used: Vec<usize> = (0..conjuncts.len()).filter(|i| answered(*i)).collect();
                let residual = Predicate::And(rest(&used));
                let path = IndexPath {
                    definition: Arc::new(definition.clone()),
                    terms,
                    covered,
                    filter,
                    ranges: shape.ranges,
                    fixed: shape.fixed,
                    restricted: shape.used.len(),
                    text: shape.used.iter().map(|(_, t)| t.text.as_str()).collect::<Vec<_>>().join(" AND "),
                    residual,
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

    /// The rows that tests of the leading parts of their keys lead to; all of `all` is left to be tested.
    fn by_key_parts(&mut self, key: &Key, tests: &[(usize, &Arc<Test>)], all: Vec<Predicate>) -> Option<Access> {
        let mut of_parts: Vec<Option<&Test>> = vec![None; key.parts().len()];
        for (_, test) in tests {
            let Column::Attribute(slot) = test.column else { continue };
            let slot = &self.found.slots[slot];
            if let Some(place) = slot.attribute.key_part
                && slot.functions.is_empty()
                && test.some().is_some()
            {
                *of_parts.get_mut(place)? = Some(test);
            }
        }
        let domains: Vec<Option<&Domain>> = of_parts.iter().map(|test| test.and_then(Test::some)).collect();
        let KeyRange { intervals, used, whole } = key_range(key, &domains).ok()??;
        let texts: Vec<&str> = used.iter().filter_map(|place| of_parts[*place].map(|t| t.text.as_str())).collect();
        let text = texts.join(" AND ");
        if intervals.is_empty() {
            return Some(Access::Nothing);
        }
        Some(self.add(if whole {
            Path::Get(GetPath { keys: intervals.into_iter().map(|i| i.start).collect(), text })
        } else {
            let ranges = intervals.into_iter().map(|i| (Some(i.start), i.stop)).collect();
            Path::Rows(rows::path(&Predicate::And(all), &self.found.slots, ranges, Some(text)))
        }))
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
                Column::Attribute(slot) => {
                    let leads = test.within().is_some() || test.condition == Condition::Null;
                    leads && self.found.slots[slot].operand() == *operand
                }
                Column::RowKey => false,
            };
            tests.iter().filter(|(_, test)| tested(test)).copied().collect()
        };
        definition.terms.iter().map(|term| of(&term.operand)).collect()
    }
}

/// Whether a set of row keys is a part of the table: not both its start and its end.
fn is_bounded(domain: &Domain) -> bool {
    let intervals = domain.intervals();
    let open = |edge: Option<&Edge>| edge.is_none_or(|e| matches!(e, Edge::Start | Edge::End));
    !(open(intervals.first().map(|i| &i.from)) && open(intervals.last().map(|i| &i.to)))
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
    /// The ranges hold more than the last test lets through.
    is_wide: bool,
}

impl Shape<'_> {
    /// Whether the test at a place holds for every right entry the shape finds. That some element is in a set is not that
    /// every element is.
    fn answers(&self, place: usize) -> bool {
        let answered = |test: &Test| matches!(test.condition, Condition::Some(_) | Condition::Null);
        let last = self.used.last().map(|(i, _)| *i);
        let found = self.used.iter().any(|(i, test)| *i == place && answered(test));
        found && !(self.is_wide && last == Some(place))
    }
}

/// The ways to use a definition: values for its leading terms, then perhaps ranges of the next one. Of several tests of
/// one array each is a way of its own, for one entry holds one element and need satisfy only one of them.
fn shapes<'t>(definition: &Definition, tests: &[Vec<(usize, &'t Arc<Test>)>]) -> Vec<Shape<'t>> {
    let mut open =
        vec![Shape { used: Vec::new(), prefixes: vec![Vec::new()], fixed: 0, ranges: Vec::new(), is_wide: false }];
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
    if test.condition == Condition::Null {
        // A row without a first term has no entry; a later one that is missing is there as null.
        if first {
            return None;
        }
        longer.fixed += usize::from(shape.fixed == shape.used.len());
        let null = definition.shape(shape.used.len()).encode(&[term::NULL]).ok()?.into_owned();
        longer.prefixes.iter_mut().for_each(|prefix| prefix.extend_from_slice(&null));
        return Some(longer);
    }
    let domain = test.within()?;
    if let Some(points) = domain.points()
        && fits(points.len())
    {
        let key_form = definition.shape(shape.used.len());
        // The binder encodes whole terms.
        let mut forms: Vec<_> = points.iter().map(|v| key_form.encode(v)).collect::<Result<_>>().ok()?;
        // In the order of the keys, each once.
        forms.sort_unstable();
        forms.dedup();
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
    for prefix in &shape.prefixes {
        let mut ranges = Vec::with_capacity(intervals.len());
        for interval in intervals {
            let (range, is_wide) = EntryRange::interval(definition, prefix, place, interval).ok()?;
            ranges.push(range);
            longer.is_wide |= is_wide;
        }
        if definition.shape(place).descending {
            ranges.reverse();
        }
        longer.ranges.extend(EntryRange::joined(ranges));
    }
    Some(longer)
}
