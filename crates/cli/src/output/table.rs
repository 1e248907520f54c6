//! The two shapes of tables: rows under headings, and names beside values.

use std::fmt::Display;

use comfy_table::{ContentArrangement, Table, presets};

use super::fit::{Fit, fit};
use super::wrap::wrap;
use crate::terminal::clean;

/// Rows under headings, one line each; `none` if there are none.
///
/// What does not fit the terminal is shortened with `…`, and columns for which there is
/// no room at all are left out from the right; a `…` ends the headings then. Without a
/// width nothing is left out.
pub fn rows(headings: &[&str], rows: Vec<Vec<String>>, width: Option<u16>) -> String {
    if rows.is_empty() {
        return "none".to_owned();
    }
    let head = headings.iter().map(|heading| (*heading).to_owned()).collect();
    let cleaned = |row: Vec<String>| row.iter().map(|cell| clean(cell)).collect();
    let lines: Vec<Vec<String>> =
        std::iter::once(head).chain(rows.into_iter().map(cleaned)).collect();
    let natural: Vec<usize> = (0..headings.len())
        .map(|index| lines.iter().filter_map(move |line| line.get(index)).map(|cell| length(cell)))
        .map(|lengths| lengths.max().unwrap_or(0))
        .collect();
    let least: Vec<usize> = headings.iter().map(|heading| length(heading)).collect();
    let Fit { widths, complete } = match width {
        Some(width) => fit(&natural, &least, usize::from(width)),
        None => Fit { widths: natural, complete: true },
    };
    let shown = lines.iter().enumerate().map(|(number, line)| {
        let mut text = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            let cell = shorten(cell, *width);
            let space = " ".repeat(width - length(&cell) + 2);
            text.push_str(&cell);
            text.push_str(&space);
        }
        if number == 0 && !complete {
            text.push('…');
        }
        text.trim_end().to_owned()
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// At most so many characters.
fn shorten(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// What a table of two columns adds to their widths.
const PADDING: usize = 4;

/// Names beside values; names without a value are left out. The lines of a value stay
/// lines.
pub fn facts(facts: Vec<(&str, Option<String>)>, width: Option<u16>) -> String {
    let mut table = empty(width);
    let names = facts.iter().map(|(name, _)| length(name)).max().unwrap_or(0);
    // The table itself would wrap an indented line without its indent.
    let room = width.map(|width| width.saturating_sub(u16::try_from(names + PADDING).unwrap_or(0)));
    for (name, value) in facts {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            let wrapped = |line: &str| match line.starts_with(' ') {
                true => wrap(&clean(line), room),
                false => clean(line),
            };
            let lines: Vec<_> = value.lines().map(wrapped).collect();
            table.add_row([name.to_owned(), lines.join("\n")]);
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

/// `shop (0192f0c1-…)`, or the id of what has no name.
pub(crate) fn name_and_id(name: Option<&str>, id: &str) -> String {
    name.map_or_else(|| id.to_owned(), |name| format!("{name} ({id})"))
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
