//! Reads one page of the list. Pages start after a key, so the thousandth page costs as much as the first.

use rusqlite::{Connection, ToSql};

use super::record::{Cursor, HistoryQuery, MAX_PAGE, Page, cut};
use super::row;

/// Bounds of a search: words, and bytes of its text. The rest is ignored.
const MAX_WORDS: usize = 16;
const MAX_TEXT: usize = 512;

pub(super) fn page(connection: &Connection, asked: &HistoryQuery) -> rusqlite::Result<Page> {
    let limit = if (1..=MAX_PAGE).contains(&asked.limit) { asked.limit } else { MAX_PAGE };
    let Plan { sql, values } = plan(asked);
    let mut statement = connection.prepare_cached(&sql)?;
    let values: Vec<(&str, &dyn ToSql)> = values.iter().map(|(name, value)| (*name, &**value)).collect();
    let mut found = statement.query(&values[..])?;
    let (mut runs, mut last) = (Vec::with_capacity(limit), None);
    while let Some(columns) = found.next()? {
        // A row beyond the page: there is a next page.
        if runs.len() == limit {
            return Ok(Page { runs, next: last });
        }
        last = Some(Cursor(columns.get(0)?));
        match row::read(columns)? {
            Some(run) => runs.push(run),
            None => tracing::warn!("a run in the history has no id that can be read; it is left out of the list"),
        }
    }
    Ok(Page { runs, next: None })
}

struct Plan {
    sql: String,
    values: Vec<(&'static str, Box<dyn ToSql>)>,
}

/// The query of a page. It needs no LIMIT, because the caller steps it only as far as the page needs and SQLite does
/// not sort: every index ends in the order of the list.
fn plan(asked: &HistoryQuery) -> Plan {
    let words = asked.text.as_deref().map(match_expression).filter(|words| !words.is_empty());
    let (from, key) = match &words {
        Some(_) => ("search CROSS JOIN run ON run.seq = search.rowid", "search.rowid"),
        None => ("run", "run.seq"),
    };
    let mut wheres = Vec::new();
    let mut values: Vec<(&'static str, Box<dyn ToSql>)> = Vec::new();
    if let Some(words) = words {
        wheres.push("search MATCH :words".to_owned());
        values.push((":words", Box::new(words)));
    }
    if let Some(before) = asked.before.into_iter().chain(asked.until).min() {
        wheres.push(format!("{key} < :before"));
        values.push((":before", Box::new(before.0)));
    }
    if let Some(from) = asked.from {
        wheres.push(format!("{key} >= :from"));
        values.push((":from", Box::new(from.0)));
    }
    // The most selective filter picks the index. A `+` keeps SQLite from using the index of a column.
    let searched = asked.text.is_some();
    let by_client = asked.client.is_some() && !searched;
    let by_agent = by_client && asked.program.is_some();
    let free = |taken: bool| if taken { "+" } else { "" };
    for (column, placeholder, value, taken) in [
        ("client", ":client", &asked.client, searched),
        ("client_program", ":program", &asked.program, !by_agent),
        ("status", ":status", &asked.status, searched || by_client),
        ("language", ":language", &asked.language, searched || by_client),
    ] {
        if let Some(value) = value {
            if placeholder == ":program" && value.is_empty() {
                wheres.push(format!("{}run.{column} IS NULL", free(taken)));
                continue;
            }
            wheres.push(format!("{}run.{column} = {placeholder}", free(taken)));
            values.push((placeholder, Box::new(value.clone())));
        }
    }
    let wheres = if wheres.is_empty() { String::new() } else { format!("WHERE {}", wheres.join(" AND ")) };
    let sql = format!("SELECT {} FROM {from} {wheres} ORDER BY {key} DESC", row::COLUMNS);
    Plan { sql, values }
}

/// The FTS5 expression of a search. Each word is a quoted prefix, so its characters are no operators: `read_csv pan`
/// finds `read_csv` and `pandas`.
fn match_expression(text: &str) -> String {
    cut(text, MAX_TEXT)
        .split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|word| !word.is_empty())
        .take(MAX_WORDS)
        .map(|word| format!("\"{}\"*", word.replace('"', "\"\"")))
        .collect::<Vec<_>>()
        .join(" ")
}
