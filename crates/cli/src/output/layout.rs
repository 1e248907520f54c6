//! How a list is laid out: the columns, ids and times of `-o wide` or of a table.

use std::time::Duration;

use slipway_core::time::Timestamp;

use super::{rows, time};

/// The fewest characters of an id that are shown: its millisecond, so that a command that is
/// given them mostly finds one thing, also among those that the table does not show.
pub(crate) const SHORT_ID: usize = 13;

/// The server tells its time in whole seconds.
const RESOLUTION: Duration = Duration::from_secs(1);

/// How results for people are laid out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    /// Columns of the terminal.
    pub(crate) width: Option<u16>,
    /// Every column, whole ids and whole times, however long a line becomes.
    pub(crate) wide: bool,
    /// The time of the server, for ages.
    pub(crate) now: Option<Timestamp>,
}

impl From<Option<u16>> for Layout {
    fn from(width: Option<u16>) -> Self {
        Self { width, ..Self::default() }
    }
}

/// Rows under headings. A cell that is a time becomes an age, and the column `ID` is
/// shortened to what tells its ids apart.
pub(crate) fn list(
    headings: &[&'static str],
    mut cells: Vec<Vec<String>>,
    layout: Layout,
) -> String {
    for (index, heading) in headings.iter().enumerate() {
        let column: Vec<&mut String> =
            cells.iter_mut().filter_map(|row| row.get_mut(index)).collect();
        if *heading == "ID" && !layout.wide {
            shorten_ids(column);
            continue;
        }
        for cell in column {
            if let Ok(at) = cell.parse::<Timestamp>() {
                *cell = match layout.now.filter(|_| !layout.wide) {
                    Some(now) => relative(*heading == "AGE", at, now),
                    None => time(cell),
                };
            }
        }
    }
    if !layout.wide {
        return rows(headings, cells, layout.width);
    }
    let whole = |heading: &&'static str| if *heading == "AGE" { "CREATED" } else { *heading };
    rows(&headings.iter().map(whole).collect::<Vec<_>>(), cells, None)
}

/// `3m` as an age; otherwise `3m ago` or `in 3m`.
fn relative(is_age: bool, at: Timestamp, now: Timestamp) -> String {
    if at > now.plus(RESOLUTION) && !is_age {
        return format!("in {}", span(at.since(now).as_secs()));
    }
    let span = span(now.since(at).as_secs());
    if is_age { span } else { format!("{span} ago") }
}

/// The largest unit that is at least 2, or one of seconds: `119s`, `3m`, `47h`, `5d`.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Cuts each id to the fewest characters that differ between all of them.
fn shorten_ids(ids: Vec<&mut String>) {
    let mut sorted: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let common = |(one, other): (&&str, &&str)| {
        one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
    };
    let neighbours = sorted.iter().zip(sorted.iter().skip(1));
    let mut kept = neighbours.map(common).max().map_or(0, |common| common + 1).max(SHORT_ID);
    // A hyphen at the end tells nothing.
    if sorted.first().is_some_and(|id| id.chars().nth(kept - 1) == Some('-')) {
        kept += 1;
    }
    for id in ids {
        *id = id.chars().take(kept).collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn spans_have_one_unit() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (180, "3m"),
            (7_200, "2h"),
            (172_799, "47h"),
            (432_000, "5d"),
        ] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn times_are_ages_until_somebody_wants_them_whole() {
        let at = "2026-01-31T12:00:00.000000Z";
        let shown = |now: Option<&str>, wide| {
            let now = now.map(|now| now.parse().unwrap());
            let cells = vec![vec![at.to_owned(), at.to_owned()]];
            list(&["AGE", "EXPIRES"], cells, Layout { now, wide, width: None })
        };
        assert_eq!(shown(Some("2026-01-31T12:03:05Z"), false), "AGE  EXPIRES\n3m   3m ago");
        assert_eq!(shown(Some("2026-01-31T11:57:00Z"), false), "AGE  EXPIRES\n0s   in 3m");
        let whole = shown(None, false);
        assert!(whole.ends_with("2026-01-31 12:00:00Z  2026-01-31 12:00:00Z"), "{whole}");
        let wide = shown(Some("2026-01-31T12:03:05Z"), true);
        assert_eq!(wide, whole.replace("AGE    ", "CREATED"));
    }

    proptest! {
        #[test]
        fn short_ids_differ_where_the_ids_do(ids in prop::collection::vec(any::<u128>(), 1..9)) {
            // Neighbours, as ids of one millisecond are.
            let near = ids.iter().flat_map(|id| [*id, id.wrapping_add(1)]);
            let whole: Vec<String> = near.map(|id| Uuid::from_u128(id).to_string()).collect();
            let mut short = whole.clone();
            shorten_ids(short.iter_mut().collect());
            for (one, shown) in whole.iter().zip(&short) {
                prop_assert!(one.starts_with(shown) && shown.len() >= SHORT_ID);
                for (other, beside) in whole.iter().zip(&short) {
                    prop_assert_eq!(one == other, shown == beside);
                }
            }
        }
    }
}
