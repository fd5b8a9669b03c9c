//! Random conditions: a tree of the test's own, and its SQL.

use crate::data::{Fun, V, apply, random_key};
use fastrand::Rng;
use sideindex::query;
use std::collections::BTreeMap;

/// A column: of the fixture, or the row key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Id,
    Column(usize),
}

/// A column under functions, the innermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    pub name: Name,
    pub functions: Vec<Fun>,
}

#[derive(Debug, Clone)]
pub enum Literal {
    Value(V),
    Key(Vec<u8>),
    Null,
}

#[derive(Debug, Clone, Copy)]
pub enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Debug, Clone)]
pub enum Cond {
    And(Vec<Cond>),
    Or(Vec<Cond>),
    Not(Box<Cond>),
    Compare(Operand, Op, Literal),
    Between(Operand, Literal, Literal),
    In(Operand, Vec<Literal>),
    /// With a backslash as the escape character; none is NULL.
    Like(Operand, Option<String>),
    IsNull(Operand),
}

/// What conditions are made over.
pub struct Ground<'a> {
    pub columns: &'a [crate::fixture::Column],
    /// The row keys that there are.
    pub keys: Vec<&'a [u8]>,
    pub most_rows: usize,
}

impl<'a> Ground<'a> {
    pub fn new<R>(columns: &'a [crate::fixture::Column], rows: &'a BTreeMap<Vec<u8>, R>, most_rows: usize) -> Self {
        Self { columns, keys: rows.keys().map(Vec::as_slice).collect(), most_rows }
    }

    pub fn operand(&self, rng: &mut Rng) -> Operand {
        match rng.usize(0..=self.columns.len()) {
            0 => Operand { name: Name::Id, functions: Vec::new() },
            n => self.of_column(n - 1, rng),
        }
    }

    /// A column of the fixture, now and then under functions.
    pub fn of_column(&self, column: usize, rng: &mut Rng) -> Operand {
        let functions = if self.is_text(column) && rng.u8(0..3) == 0 { Fun::random(rng) } else { Vec::new() };
        Operand { name: Name::Column(column), functions }
    }

    fn is_text(&self, column: usize) -> bool {
        self.columns[column].kind == crate::data::Kind::Text
    }

    pub fn is_array(&self, operand: &Operand) -> bool {
        matches!(operand.name, Name::Column(c) if self.columns[c].array)
    }

    pub fn literal(&self, operand: &Operand, rng: &mut Rng) -> Literal {
        if rng.u8(0..40) == 0 {
            return Literal::Null;
        }
        match operand.name {
            Name::Id => Literal::Key(if self.keys.is_empty() || rng.u8(0..3) == 0 {
                random_key(rng, self.most_rows)
            } else {
                self.keys[rng.usize(0..self.keys.len())].to_vec()
            }),
            Name::Column(c) => {
                let value = V::random(self.columns[c].kind, rng);
                Literal::Value(if rng.u8(0..4) == 0 { value } else { apply(&operand.functions, &value) })
            }
        }
    }

    pub fn cond(&self, rng: &mut Rng, depth: usize) -> Cond {
        if depth > 0 && rng.u8(0..5) < 3 {
            if rng.u8(0..5) == 0 {
                return Cond::Not(Box::new(self.cond(rng, depth - 1)));
            }
            let parts = (0..rng.usize(2..=3)).map(|_| self.cond(rng, depth - 1)).collect();
            return if rng.u8(0..5) < 3 { Cond::And(parts) } else { Cond::Or(parts) };
        }
        let operand = self.operand(rng);
        self.test(operand, rng)
    }

    pub fn test(&self, operand: Operand, rng: &mut Rng) -> Cond {
        let is_text = match operand.name {
            Name::Id => true,
            Name::Column(c) => self.is_text(c),
        };
        let some = |rng: &mut Rng| self.literal(&operand, rng);
        match rng.u8(0..14) {
            0..=4 => Cond::Compare(operand.clone(), Op::Eq, some(rng)),
            5..=6 => {
                let op = [Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge][rng.usize(0..5)];
                Cond::Compare(operand.clone(), op, some(rng))
            }
            7 => {
                let (low, high) = (some(rng), some(rng));
                Cond::Between(operand, low, high)
            }
            8..=9 => {
                let list = (0..rng.usize(1..=4)).map(|_| some(rng)).collect();
                Cond::In(operand, list)
            }
            10 => Cond::IsNull(operand),
            11 => Cond::Not(Box::new(self.test(operand, rng))),
            _ if is_text => Cond::Like(operand.clone(), pattern(&operand, rng)),
            _ => Cond::Compare(operand.clone(), Op::Eq, some(rng)),
        }
    }
}

fn pattern(operand: &Operand, rng: &mut Rng) -> Option<String> {
    if rng.u8(0..40) == 0 {
        return None;
    }
    let parts: &[&str] = match operand.name {
        Name::Id => &["r", "1", "r1", "%", "_", "a"],
        Name::Column(_) => &["a", "b", "%", "_", "\\%", "\\\\", "é", "aaaaaaaaaaaaaaa", "%"],
    };
    let mut pattern: String = (0..rng.usize(0..4)).map(|_| parts[rng.usize(0..parts.len())]).collect();
    if rng.u8(0..3) == 0 {
        pattern.push('%');
    }
    Some(pattern)
}

/// Spells conditions, some of their literals as parameters.
pub struct Speller<'a> {
    pub columns: &'a [crate::fixture::Column],
    pub rng: &'a mut Rng,
    /// The values of `$1`, `$2`, …; none where there are to be no parameters.
    pub parameters: Option<Vec<query::Literal>>,
}

impl Speller<'_> {
    pub fn operand(&mut self, operand: &Operand) -> String {
        let name = match operand.name {
            Name::Id => "id".to_owned(),
            Name::Column(c) => match self.columns[c].name {
                plain @ ("a" | "b" | "h_1") => plain.to_owned(),
                other => format!("\"{other}\""),
            },
        };
        operand.functions.iter().fold(name, |inner, f| {
            let function = ["trim", "lower", "nfkc"][*f as usize];
            let function = if self.rng.u8(0..4) == 0 { function.to_uppercase() } else { function.to_owned() };
            format!("{function}({inner})")
        })
    }

    pub fn cond(&mut self, cond: &Cond) -> String {
        match cond {
            Cond::And(parts) => self.join(parts, " AND "),
            Cond::Or(parts) => self.join(parts, " OR "),
            Cond::Not(inner) => {
                // Both spellings of a negation.
                if self.rng.bool() {
                    match inner.as_ref() {
                        Cond::Between(..) | Cond::In(..) | Cond::Like(..) => return self.test(inner, "NOT "),
                        Cond::IsNull(operand) => return format!("{} IS NOT NULL", self.operand(operand)),
                        _ => {}
                    }
                }
                format!("NOT ({})", self.cond(inner))
            }
            test => self.test(test, ""),
        }
    }

    fn test(&mut self, cond: &Cond, not: &str) -> String {
        match cond {
            Cond::Compare(operand, op, literal) => {
                let (there, back) = match op {
                    Op::Eq => ("=", "="),
                    Op::Ne => (["!=", "<>"][self.rng.usize(0..2)], "<>"),
                    Op::Lt => ("<", ">"),
                    Op::Le => ("<=", ">="),
                    Op::Gt => (">", "<"),
                    Op::Ge => (">=", "<="),
                };
                let (name, value) = (self.operand(operand), self.literal(literal));
                if self.rng.u8(0..5) == 0 {
                    format!("{value} {back} {name}")
                } else {
                    format!("{name} {there} {value}")
                }
            }
            Cond::Between(operand, low, high) => {
                format!("{} {not}BETWEEN {} AND {}", self.operand(operand), self.literal(low), self.literal(high))
            }
            Cond::In(operand, list) => {
                let list: Vec<String> = list.iter().map(|l| self.literal(l)).collect();
                format!("{} {not}IN ({})", self.operand(operand), list.join(", "))
            }
            Cond::Like(operand, pattern) => {
                let literal = pattern.clone().map_or(Literal::Null, |p| Literal::Value(V::Text(p)));
                format!("{} {not}LIKE {}", self.operand(operand), self.literal(&literal))
            }
            Cond::IsNull(operand) => format!("{} IS NULL", self.operand(operand)),
            Cond::And(_) | Cond::Or(_) | Cond::Not(_) => panic!("{cond:?} is no test"),
        }
    }

    fn join(&mut self, parts: &[Cond], between: &str) -> String {
        let mut texts = Vec::new();
        for part in parts {
            texts.push(match part {
                // AND binds more tightly than OR, so that parentheses may be left out.
                Cond::And(_) if between == " OR " && self.rng.bool() => self.cond(part),
                Cond::And(_) | Cond::Or(_) => format!("({})", self.cond(part)),
                _ => self.cond(part),
            });
        }
        texts.join(between)
    }

    pub fn literal(&mut self, literal: &Literal) -> String {
        if let Some(parameters) = &mut self.parameters
            && self.rng.u8(0..4) == 0
        {
            let untyped = self.rng.bool();
            parameters.push(match literal {
                Literal::Null => query::Literal::Null,
                Literal::Key(key) => query::Literal::Bytes(key.clone()),
                Literal::Value(v) if untyped => query::Literal::Untyped(v.text()),
                Literal::Value(V::Text(text)) => query::Literal::Text(text.clone()),
                Literal::Value(V::Bool(b)) => query::Literal::Bool(*b),
                Literal::Value(number) => query::Literal::Number(number.text()),
            });
            return format!("${}", parameters.len());
        }
        let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
        match literal {
            Literal::Null => "NULL".to_owned(),
            Literal::Key(key) => match std::str::from_utf8(key) {
                Ok(text) if self.rng.bool() => quote(text),
                _ => format!("X'{}'", key.iter().map(|b| format!("{b:02x}")).collect::<String>()),
            },
            Literal::Value(V::Text(text)) => quote(text),
            Literal::Value(V::Int(i)) => i.to_string(),
            Literal::Value(V::Float(f)) if self.rng.bool() => format!("{f}"),
            Literal::Value(V::Float(f)) => format!("{f:e}"),
            Literal::Value(V::Bool(b)) => b.to_string().to_uppercase(),
        }
    }
}
