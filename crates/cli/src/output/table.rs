//! The two shapes of tables: rows under headings, and names beside values.

use std::fmt::Display;

use comfy_table::{ContentArrangement, Table, presets};

use crate::terminal::clean;

/// The indentation of cells that are shown below their row.
const INDENT: u16 = 4;

/// Rows under headings; `none` if there are none.
///
/// If a table is too wide for the terminal, its last columns go below each row,
/// every cell on lines of its own, until the rest fits. Columns are not squeezed:
/// that would break words and ids, which have to be copied.
pub fn rows(headings: &[&str], rows: Vec<Vec<String>>, width: Option<u16>) -> String {
    if rows.is_empty() {
        return "none".to_owned();
    }
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|row| row.iter().map(|cell| clean(cell)).collect()).collect();
    let fits = |beside: &usize, width: u16| {
        natural_width(&headings[..*beside], &rows) <= usize::from(width)
    };
    let all = headings.len();
    let beside =
        width.and_then(|width| (0..=all).rev().find(|beside| fits(beside, width))).unwrap_or(all);
    let head = headings.iter().map(|heading| (*heading).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let mut table = empty(None);
    for row in &rows {
        table.add_row(row.iter().take(beside));
    }
    // Without a column beside another there is no line of the table to show.
    let mut beside_lines = if beside > 0 { finish(&table) } else { Vec::new() }.into_iter();
    let mut lines = Vec::new();
    for row in &rows {
        lines.extend(beside_lines.next());
        lines.extend(row.iter().skip(beside).flat_map(|cell| below(cell, width)));
    }
    lines.join("\n")
}

/// The lines of a cell below its row.
fn below(cell: &str, width: Option<u16>) -> Vec<String> {
    // `finish` removes the two columns of padding that the table counts.
    let mut table = empty(width.map(|width| width.saturating_sub(INDENT) + 2));
    table.add_row([cell]);
    let indent = " ".repeat(usize::from(INDENT));
    finish(&table).iter().map(|line| format!("{indent}{line}").trim_end().to_owned()).collect()
}

/// The width of the table if nothing is wrapped.
fn natural_width(headings: &[&str], rows: &[Vec<String>]) -> usize {
    let widest = |(index, heading): (usize, &&str)| {
        let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(heading.len()) + 2
    };
    headings.iter().enumerate().map(widest).sum::<usize>().saturating_sub(2)
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
