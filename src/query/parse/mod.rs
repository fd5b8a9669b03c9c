//! SQL text → [`ParsedQuery`]. The grammar is sqlparser's; this module takes the part of it that can be answered and
//! refuses the rest by name.

mod expression;
mod mistake;
mod parsed;

pub use parsed::{
    Literal, Mode, ParsedColumn, ParsedCondition, ParsedOperand, ParsedOrder, ParsedPredicate, ParsedQuery,
    ParsedSelect,
};

use crate::error::{Error, ErrorKind, Result};
use expression::{literal, operand, predicate};
use mistake::not_sql;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, GroupByExpr, LimitClause, ObjectName,
    ObjectNamePart, OrderByExpr, OrderByKind, OrderBySort, Query, Select, SelectFlavor, SelectItem, SetExpr, Statement,
    TableFactor, WildcardAdditionalOptions,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// The longest SQL text taken, in bytes.
const MAX_SQL: usize = 4 << 20;
/// The most tokens taken, values and the commas between them apart. The parser builds a chain of ANDs as a tree as deep
/// as the chain is long, and freeing a tree takes stack.
const MAX_TOKENS: usize = 5_000;

/// Reads one SQL statement.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] when it is not SQL; [`ErrorKind::Unsupported`] names what is not supported.
///
/// ```
/// let query = sideindex::query::parse("SELECT id FROM packages WHERE section = 'net' LIMIT 5")?;
/// assert_eq!((query.table.as_str(), query.order_by.len()), ("packages", 0));
/// # Ok::<(), sideindex::error::Error>(())
/// ```
pub fn parse(sql: &str) -> Result<ParsedQuery> {
    match statement(sql)? {
        Statement::Explain {
            analyze,
            verbose: false,
            query_plan: false,
            estimate: false,
            statement,
            format,
            options,
            ..
        } => {
            refuse("EXPLAIN with options", format.is_some() || options.is_some())?;
            let mode = if analyze { Mode::Analyze } else { Mode::Explain };
            match *statement {
                Statement::Query(query) => Ok(ParsedQuery { mode, ..select_query(*query)? }),
                other => Err(not_a_select(&other)),
            }
        }
        Statement::Explain { .. } => Err(unsupported("EXPLAIN with options")),
        Statement::Query(query) => select_query(*query),
        other => Err(not_a_select(&other)),
    }
}

/// The name of the table a statement asks about, so that its schema can be loaded.
///
/// # Errors
/// As [`parse`].
pub fn table_of(sql: &str) -> Result<String> {
    Ok(parse(sql)?.table)
}

/// Reads a WHERE clause alone.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_predicate(text: &str) -> Result<ParsedPredicate> {
    let mut parser = Parser::new(&PostgreSqlDialect {}).with_tokens_with_locations(tokens(text)?);
    let expression = parser.parse_expr().map_err(|e| not_sql(&e, text))?;
    let next = parser.peek_token();
    if next.token != Token::EOF {
        let error = parser.expected::<()>("the end of the condition", next);
        return Err(error.map_or_else(|e| not_sql(&e, text), |()| Error::invalid("expected the end of the condition")));
    }
    predicate(expression)
}

fn statement(sql: &str) -> Result<Statement> {
    let mut parser = Parser::new(&PostgreSqlDialect {}).with_tokens_with_locations(tokens(sql)?);
    let mut statements = parser.parse_statements().map_err(|e| not_sql(&e, sql))?;
    match (statements.pop(), statements.len()) {
        (Some(statement), 0) => Ok(statement),
        (None, _) => Err(Error::invalid("expected a SELECT statement, found nothing")),
        (Some(_), more) => Err(Error::invalid(format!("expected one statement, found {}", more + 1))),
    }
}

/// Takes a text apart, unless it is too long for the parser.
fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>> {
    if sql.len() > MAX_SQL {
        return Err(Error::invalid(format!("the SQL text has {} bytes: at most {MAX_SQL} are taken", sql.len())));
    }
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql)
        .tokenize_with_location()
        .map_err(|e| not_sql(&ParserError::from(e), sql))?;
    let weighty = |token: &Token| {
        !matches!(
            token,
            Token::Comma
                | Token::Whitespace(_)
                | Token::SingleQuotedString(_)
                | Token::HexStringLiteral(_)
                | Token::Number(..)
        )
    };
    let count = tokens.iter().filter(|t| weighty(&t.token)).count();
    if count > MAX_TOKENS {
        return Err(Error::invalid(format!(
            "the SQL has {count} words and operators: at most {MAX_TOKENS} are taken; long lists go into IN (…), whose values are not counted"
        )));
    }
    Ok(tokens)
}

/// The error for SQL that parses and is not supported.
fn unsupported(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "{what} is not supported; queries have the form SELECT columns or COUNT(*) FROM table WHERE … ORDER BY columns LIMIT n OFFSET m"
        ),
    )
}

fn refuse(what: &str, present: bool) -> Result<()> {
    if present { Err(unsupported(what)) } else { Ok(()) }
}

fn not_a_select(statement: &Statement) -> Error {
    let text = statement.to_string();
    let verb = text.split_whitespace().next().unwrap_or_default();
    unsupported(&format!("the statement {verb}"))
}

fn select_query(query: Query) -> Result<ParsedQuery> {
    // Taken apart field by field, so that a new field of a newer sqlparser cannot be overlooked.
    let Query { with, body, order_by, limit_clause, fetch, locks, for_clause, settings, format_clause, pipe_operators } =
        query;
    refuse("WITH", with.is_some())?;
    refuse("FETCH (write LIMIT)", fetch.is_some())?;
    refuse("FOR", !locks.is_empty() || for_clause.is_some())?;
    refuse("SETTINGS", settings.is_some())?;
    refuse("FORMAT", format_clause.is_some())?;
    refuse("|>", !pipe_operators.is_empty())?;
    let select = match *body {
        SetExpr::Select(select) => *select,
        SetExpr::Query(_) => return Err(unsupported("a SELECT in parentheses")),
        SetExpr::SetOperation { op, .. } => return Err(unsupported(&op.to_string())),
        SetExpr::Values(_) => return Err(unsupported("VALUES")),
        SetExpr::Table(_) => return Err(unsupported("TABLE")),
        SetExpr::Insert(s) | SetExpr::Update(s) | SetExpr::Delete(s) | SetExpr::Merge(s) => {
            return Err(not_a_select(&s));
        }
    };
    let mut parsed = select_body(select)?;
    (parsed.limit, parsed.offset) = limit_clause.map(limits).transpose()?.unwrap_or_default();
    if let Some(order_by) = order_by {
        refuse("INTERPOLATE", order_by.interpolate.is_some())?;
        let OrderByKind::Expressions(keys) = order_by.kind else { return Err(unsupported("ORDER BY ALL")) };
        parsed.order_by = keys.into_iter().map(order).collect::<Result<_>>()?;
    }
    if parsed.select == ParsedSelect::Count && !parsed.order_by.is_empty() {
        return Err(unsupported("ORDER BY of a COUNT(*), which is one row,"));
    }
    Ok(parsed)
}

fn select_body(select: Select) -> Result<ParsedQuery> {
    let Select {
        select_token: _,
        optimizer_hints,
        distinct,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from,
        lateral_views,
        prewhere,
        selection,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having,
        named_window,
        qualify,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    let grouped = !matches!(&group_by, GroupByExpr::Expressions(keys, with) if keys.is_empty() && with.is_empty());
    for (what, present) in [
        ("an optimizer hint", !optimizer_hints.is_empty()),
        ("DISTINCT", distinct.is_some()),
        ("a SELECT modifier", select_modifiers.is_some()),
        ("TOP (write LIMIT)", top.is_some()),
        ("EXCLUDE", exclude.is_some()),
        ("INTO", into.is_some()),
        ("LATERAL VIEW", !lateral_views.is_empty()),
        ("PREWHERE", prewhere.is_some()),
        ("CONNECT BY", !connect_by.is_empty()),
        ("GROUP BY", grouped),
        ("CLUSTER BY", !cluster_by.is_empty()),
        ("DISTRIBUTE BY", !distribute_by.is_empty()),
        ("SORT BY", !sort_by.is_empty()),
        ("HAVING", having.is_some()),
        ("WINDOW", !named_window.is_empty()),
        ("QUALIFY", qualify.is_some()),
        ("SELECT AS", value_table_mode.is_some()),
        ("a statement that starts with FROM", flavor != SelectFlavor::Standard),
    ] {
        refuse(what, present)?;
    }
    Ok(ParsedQuery {
        mode: Mode::Run,
        table: table(from)?,
        select: columns(projection)?,
        predicate: selection.map(predicate).transpose()?,
        order_by: Vec::new(),
        limit: None,
        offset: None,
    })
}

fn table(from: Vec<sqlparser::ast::TableWithJoins>) -> Result<String> {
    let mut from = from.into_iter();
    let (Some(table), None) = (from.next(), from.next()) else {
        return Err(unsupported("anything but one table in FROM"));
    };
    refuse("JOIN", !table.joins.is_empty())?;
    let TableFactor::Table {
        name,
        alias,
        args,
        with_hints,
        version,
        with_ordinality,
        partitions,
        json_path,
        sample,
        index_directives,
        inheritance,
    } = table.relation
    else {
        return Err(unsupported("anything but a table's name in FROM"));
    };
    refuse("a table alias", alias.is_some())?;
    let plain = args.is_none()
        && with_hints.is_empty()
        && version.is_none()
        && !with_ordinality
        && partitions.is_empty()
        && json_path.is_none()
        && sample.is_none()
        && index_directives.is_empty()
        && inheritance.is_none();
    refuse("an addition to the table's name in FROM", !plain)?;
    single_name(name)
}

fn single_name(name: ObjectName) -> Result<String> {
    let shown = name.to_string();
    match <[ObjectNamePart; 1]>::try_from(name.0) {
        Ok([ObjectNamePart::Identifier(name)]) => Ok(name.value),
        _ => Err(unsupported(&format!(
            "the qualified name {shown} (a name with a dot in it is written in double quotes)"
        ))),
    }
}

fn columns(projection: Vec<SelectItem>) -> Result<ParsedSelect> {
    if let [SelectItem::UnnamedExpr(Expr::Function(function))] = projection.as_slice()
        && is_count_all(function)
    {
        return Ok(ParsedSelect::Count);
    }
    let one = |expression: Expr, alias: Option<String>| match expression {
        Expr::Function(function) if is_count_all(&function) => {
            let beside = if alias.is_some() { "with another name" } else { "beside other columns" };
            Err(unsupported(&format!("COUNT(*) {beside}")))
        }
        expression => Ok(ParsedColumn::One { operand: operand(expression, "in the SELECT list")?, alias }),
    };
    let columns = projection.into_iter().map(|item| match item {
        SelectItem::UnnamedExpr(expression) => one(expression, None),
        SelectItem::ExprWithAlias { expr, alias } => one(expr, Some(alias.value)),
        SelectItem::Wildcard(options) if is_plain(&options) => Ok(ParsedColumn::All),
        SelectItem::Wildcard(_) => Err(unsupported("an addition to SELECT *")),
        SelectItem::QualifiedWildcard(..) => Err(unsupported("a qualified * (write SELECT *)")),
        SelectItem::ExprWithAliases { .. } => Err(unsupported("a column with several names")),
    });
    let columns: Vec<ParsedColumn> = columns.collect::<Result<_>>()?;
    refuse("a SELECT without columns", columns.is_empty())?;
    Ok(ParsedSelect::Columns(columns))
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    opt_ilike.is_none()
        && opt_exclude.is_none()
        && opt_except.is_none()
        && opt_replace.is_none()
        && opt_rename.is_none()
        && opt_alias.is_none()
}

fn is_count_all(function: &sqlparser::ast::Function) -> bool {
    let plain = !function.uses_odbc_syntax
        && function.parameters == FunctionArguments::None
        && function.within_group.is_empty()
        && function.filter.is_none()
        && function.null_treatment.is_none()
        && function.over.is_none();
    let named =
        matches!(function.name.0.as_slice(), [ObjectNamePart::Identifier(n)] if n.value.eq_ignore_ascii_case("count"));
    let star = matches!(
        &function.args,
        FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses })
            if clauses.is_empty() && matches!(args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)])
    );
    plain && named && star
}

fn order(key: OrderByExpr) -> Result<ParsedOrder> {
    refuse("WITH FILL", key.with_fill.is_some())?;
    let descending = match key.options.sort {
        None | Some(OrderBySort::Asc) => false,
        Some(OrderBySort::Desc) => true,
        Some(OrderBySort::Using(_)) => return Err(unsupported("ORDER BY … USING")),
    };
    if matches!(&key.expr, Expr::Value(_)) {
        return Err(unsupported(&format!("ORDER BY {} (name the column)", key.expr)));
    }
    let operand = operand(key.expr, "in ORDER BY")?;
    Ok(ParsedOrder { operand, descending, nulls_first: key.options.nulls_first })
}

/// LIMIT and OFFSET.
fn limits(clause: LimitClause) -> Result<(Option<Literal>, Option<Literal>)> {
    let LimitClause::LimitOffset { limit, offset, limit_by } = clause else {
        return Err(unsupported("LIMIT m, n (write LIMIT n OFFSET m)"));
    };
    refuse("LIMIT BY", !limit_by.is_empty())?;
    let rows = |clause: &str, expression: Expr| match literal(expression)? {
        parameter @ Literal::Parameter(..) => Ok(parameter),
        number => row_count(clause, &number).map(|_| number),
    };
    let limit = limit.map(|l| rows("LIMIT", l)).transpose()?;
    let offset = offset.map(|o| rows("OFFSET", o.value)).transpose()?;
    Ok((limit, offset))
}

/// Reads a number of rows.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for anything but a whole number from 0 up.
pub(crate) fn row_count(clause: &str, literal: &Literal) -> Result<u64> {
    match literal {
        Literal::Number(number) | Literal::Untyped(number) => number.parse().ok(),
        _ => None,
    }
    .ok_or_else(|| Error::invalid(format!("{clause}: expected a whole number of rows from 0 up, found {literal}")))
}

#[cfg(test)]
mod tests;
