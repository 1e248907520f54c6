//! "Did you mean": which of the known names a mistyped one is nearest to.

use crate::error::Refusal;

/// Refuses a text that is none of the known ones: names the nearest, or lists them
/// all if none is near.
pub fn not_one_of(field: &str, given: &str, known: &[&str]) -> Refusal {
    let shown: String = given.chars().filter(|c| !c.is_control()).take(63).collect();
    let problem = match nearest(given, known.iter().copied()) {
        Some(meant) => format!("is `{shown}`, which is not known; did you mean `{meant}`?"),
        None => format!("is `{shown}`; it must be one of {}", known.join(", ")),
    };
    Refusal::invalid(field, problem)
}

/// The known name that a person most likely meant, if one is near enough: a
/// third of its letters may be wrong, at least one and at most three. Among
/// equally near names the first one wins.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let allowed = (name.chars().count() / 3).clamp(1, 3);
        if given.chars().count().abs_diff(name.chars().count()) > allowed {
            continue;
        }
        let distance = distance(&normalised(given), &normalised(name));
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Ignores case and the difference between `-` and `_`.
fn normalised(name: &str) -> Vec<char> {
    name.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// How many letters must be inserted, deleted, replaced or swapped with their
/// neighbour (optimal string alignment).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, left) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, right) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(left != right);
            let mut least = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped =
                row > 0 && column > 0 && *left == to[column - 1] && from[row - 1] == *right;
            if swapped {
                least = least.min(before_last[column - 1] + 1);
            }
            current.push(least);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEYS: [&str; 4] = ["token_ttl", "token_env", "listen", "lease"];

    #[test]
    fn slips_find_their_name_and_strangers_find_none() {
        for (given, meant) in [
            ("tokenttl", Some("token_ttl")),
            ("TOKEN-TTL", Some("token_ttl")),
            ("lisetn", Some("listen")),
            ("leese", Some("lease")),
            ("database", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, KEYS), meant, "{given}");
        }
    }

    #[test]
    fn of_equally_near_names_the_first_is_meant() {
        assert_eq!(nearest("web-3", ["web-1", "web-2"]), Some("web-1"));
    }

    proptest! {
        #[test]
        fn a_distance_is_symmetric_and_zero_only_for_the_same(a in "[a-c]{0,6}", b in "[a-c]{0,6}") {
            let (left, right) = (normalised(&a), normalised(&b));
            prop_assert_eq!(distance(&left, &right), distance(&right, &left));
            prop_assert_eq!(distance(&left, &right) == 0, a == b);
        }

        #[test]
        fn one_slip_is_one_away(name in "[a-z]{4,12}", place in 0_usize..4, letter in "[0-9]") {
            let mut slipped: Vec<char> = name.chars().collect();
            slipped[place] = letter.chars().next().unwrap_or('0');
            prop_assert_eq!(distance(&slipped, &normalised(&name)), 1);
            slipped.remove(place);
            prop_assert_eq!(distance(&slipped, &normalised(&name)), 1);
        }
    }
}
