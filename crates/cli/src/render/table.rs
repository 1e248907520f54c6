//! The two shapes of tables: rows under headings, and name beside value.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};

use crate::terminal::clean;

/// From this width on ids stay whole, so that they can be copied: an id takes
/// 38 columns, and less than 42 are too few for all the rest.
const WIDTH_FOR_WHOLE_IDS: u16 = 80;

/// Rows under headings. Says so if there are none.
pub fn rows(headings: &[&str], rows: Vec<Vec<String>>, width: Option<u16>) -> String {
    if rows.is_empty() {
        return "none".to_owned();
    }
    let mut table = empty(width);
    table.set_header(headings.iter().copied());
    for row in rows {
        table.add_row(row.iter().map(|cell| clean(cell)));
    }
    if width.is_some_and(|width| width >= WIDTH_FOR_WHOLE_IDS) {
        for (column, heading) in table.column_iter_mut().zip(headings) {
            if *heading == "ID" {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    finish(&table)
}

/// Names beside values; what has no value is left out.
pub fn facts(facts: Vec<(&str, Option<String>)>, width: Option<u16>) -> String {
    let mut table = empty(width);
    for (name, value) in facts {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            table.add_row([name.to_owned(), clean(&value)]);
        }
    }
    finish(&table)
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

/// Without the margin on the left and the blanks that fill up the last column.
fn finish(table: &Table) -> String {
    let lines = table.lines().map(|line| {
        let line = line.strip_prefix(' ').unwrap_or(&line);
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A time to the second: `2026-01-31T12:00:00.123456Z` → `2026-01-31 12:00:00Z`.
pub(super) fn time(text: &str) -> String {
    match text.split_once('.') {
        Some((seconds, _)) if text.ends_with('Z') => format!("{}Z", seconds.replacen('T', " ", 1)),
        _ => text.replacen('T', " ", 1),
    }
}

pub(super) fn optional_time(text: Option<&String>) -> Option<String> {
    text.map(|text| time(text))
}

pub(super) fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}
