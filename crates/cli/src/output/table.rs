//! The two shapes of tables: rows under headings, and names beside values.

use std::fmt::Display;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

use crate::terminal::clean;

/// An id takes 36 columns and two spaces; all other columns together need at
/// least 42.
const ID_WIDTH: usize = 38;
const REST_WIDTH: usize = 42;

/// Rows under headings; `none` if there are none.
///
/// If a table is too wide for the terminal, the ids of its last column go on
/// lines of their own, where they are complete and can be copied. If it is too
/// wide even without them, it is wrapped within its columns.
pub fn rows(headings: &[&str], rows: Vec<Vec<String>>, width: Option<u16>) -> String {
    if rows.is_empty() {
        return "none".to_owned();
    }
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|row| row.iter().map(|cell| clean(cell)).collect()).collect();
    let wide = |width: u16| natural_width(headings, &rows) > usize::from(width);
    match width.filter(|width| wide(*width)) {
        Some(width) => folded(headings, &rows, width)
            .unwrap_or_else(|| wrapped(headings, &rows, Some(width)).join("\n")),
        None => wrapped(headings, &rows, None).join("\n"),
    }
}

/// The table with the last column below each row. `None` if that column has no
/// ids, or if the rest does not fit either.
fn folded(headings: &[&str], rows: &[Vec<String>], width: u16) -> Option<String> {
    let (last, shown) = headings.split_last()?;
    let ids: Vec<&String> = rows.iter().filter_map(|row| row.last()).collect();
    let rest: Vec<Vec<String>> =
        rows.iter().map(|row| row[..row.len().saturating_sub(1)].to_vec()).collect();
    let fits = natural_width(shown, &rest) <= usize::from(width);
    if shown.is_empty() || !fits || !ids.iter().all(|id| is_id(id)) {
        return None;
    }
    let below = std::iter::once(*last).chain(ids.iter().map(|id| id.as_str()));
    let lines = wrapped(shown, &rest, None).into_iter().zip(below);
    Some(lines.map(|(line, id)| format!("{line}\n    {id}")).collect::<Vec<_>>().join("\n"))
}

fn wrapped(headings: &[&str], rows: &[Vec<String>], width: Option<u16>) -> Vec<String> {
    let mut table = empty(width);
    table.set_header(headings.iter().copied());
    for row in rows {
        table.add_row(row.iter());
    }
    let of_ids = |index: usize| rows.iter().all(|row| row.get(index).is_some_and(|id| is_id(id)));
    let ids: Vec<usize> = (0..headings.len()).filter(|index| of_ids(*index)).collect();
    // The last columns first: the id of the row's subject is at its end.
    let whole = width.map_or(0, |width| usize::from(width).saturating_sub(REST_WIDTH) / ID_WIDTH);
    for index in ids.iter().rev().take(whole) {
        if let Some(column) = table.column_mut(*index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    finish(&table)
}

/// The width of the table if nothing is wrapped.
fn natural_width(headings: &[&str], rows: &[Vec<String>]) -> usize {
    let widest = |(index, heading): (usize, &&str)| {
        let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(heading.len()) + 2
    };
    headings.iter().enumerate().map(widest).sum::<usize>().saturating_sub(2)
}

fn is_id(text: &str) -> bool {
    text.len() == 36 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// Names beside values; names without a value are left out.
pub fn facts(facts: Vec<(&str, Option<String>)>, width: Option<u16>) -> String {
    let mut table = empty(width);
    for (name, value) in facts {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            table.add_row([name.to_owned(), clean(&value)]);
        }
    }
    finish(&table).join("\n")
}

fn empty(width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    } else {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table
}

/// Removes the left margin and the spaces that pad the last column.
fn finish(table: &Table) -> Vec<String> {
    let lines = table.lines().map(|line| {
        let line = line.strip_prefix(' ').unwrap_or(&line);
        line.trim_end().to_owned()
    });
    lines.collect()
}

/// A time to the second: `2026-01-31T12:00:00.123456Z` → `2026-01-31 12:00:00Z`.
pub(crate) fn time(text: &str) -> String {
    match text.split_once('.') {
        Some((seconds, _)) if text.ends_with('Z') => format!("{}Z", seconds.replacen('T', " ", 1)),
        _ => text.replacen('T', " ", 1),
    }
}

pub(crate) fn optional_time(text: Option<&String>) -> Option<String> {
    text.map(|text| time(text))
}

pub(crate) fn time_or_dash(text: Option<&String>) -> String {
    or_dash(optional_time(text).as_deref())
}

pub(crate) fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

pub(crate) fn dash_if_empty(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

pub(crate) fn yes_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// `a=1 b=2`.
pub(crate) fn pairs<'a, V: Display + 'a>(
    map: impl IntoIterator<Item = (&'a String, &'a V)>,
) -> String {
    let pairs: Vec<_> = map.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}
